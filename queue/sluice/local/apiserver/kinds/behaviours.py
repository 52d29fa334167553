"""Which built-in kind behaves specially; a kind not listed has no rules of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sluice.local.apiserver.kinds import cluster, core, workloads
from sluice.local.apiserver.kinds.jobs import CronJobBehaviour, JobBehaviour
from sluice.local.apiserver.kinds.pods import PodBehaviour
from sluice.local.apiserver.resources import Behaviour

_ADMISSION = "admissionregistration.k8s.io"
_RBAC = cluster.RBAC_GROUP

BEHAVIOURS: dict[tuple[str, str], Callable[[], Behaviour]] = {
    ("", "Namespace"): core.NamespaceBehaviour,
    ("", "Pod"): PodBehaviour,
    ("", "Node"): core.NodeBehaviour,
    ("", "Secret"): core.SecretBehaviour,
    ("", "Service"): core.ServiceBehaviour,
    ("", "ConfigMap"): core.ConfigMapBehaviour,
    ("", "Event"): core.NoGeneration,
    ("events.k8s.io", "Event"): core.NoGeneration,
    ("", "ServiceAccount"): core.NoGeneration,
    ("", "LimitRange"): core.LimitRangeBehaviour,
    ("", "ResourceQuota"): core.NoGeneration,
    ("", "PersistentVolumeClaim"): core.NoGeneration,
    ("", "PodTemplate"): workloads.PodTemplateBehaviour,
    ("batch", "Job"): JobBehaviour,
    ("batch", "CronJob"): CronJobBehaviour,
    ("apps", "Deployment"): workloads.DeploymentBehaviour,
    ("apps", "ReplicaSet"): workloads.ReplicaSetBehaviour,
    ("apps", "StatefulSet"): workloads.StatefulSetBehaviour,
    ("apps", "DaemonSet"): workloads.DaemonSetBehaviour,
    ("coordination.k8s.io", "Lease"): cluster.LeaseBehaviour,
    ("node.k8s.io", "RuntimeClass"): core.NoGeneration,
    ("scheduling.k8s.io", "PriorityClass"): cluster.PriorityClassBehaviour,
    (_RBAC, "Role"): core.NoGeneration,
    (_RBAC, "RoleBinding"): cluster.BindingBehaviour,
    (_RBAC, "ClusterRole"): core.NoGeneration,
    (_RBAC, "ClusterRoleBinding"): cluster.BindingBehaviour,
    (_ADMISSION, "MutatingWebhookConfiguration"): partial(
        cluster.WebhookConfigurationBehaviour, is_mutating=True
    ),
    (_ADMISSION, "ValidatingWebhookConfiguration"): partial(
        cluster.WebhookConfigurationBehaviour, is_mutating=False
    ),
}
