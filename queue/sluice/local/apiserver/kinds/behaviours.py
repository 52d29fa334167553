"""Which built-in kind behaves specially; a kind not listed has no rules of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sluice.local.apiserver.kinds import core
from sluice.local.apiserver.kinds.jobs import CronJobBehaviour, JobBehaviour
from sluice.local.apiserver.kinds.pods import PodBehaviour
from sluice.local.apiserver.resources import Behaviour

_ADMISSION = "admissionregistration.k8s.io"
_RBAC = "rbac.authorization.k8s.io"

BEHAVIOURS: dict[tuple[str, str], Callable[[], Behaviour]] = {
    ("", "Namespace"): core.NamespaceBehaviour,
    ("", "Pod"): PodBehaviour,
    ("", "Node"): core.NodeBehaviour,
    ("", "Secret"): core.SecretBehaviour,
    ("", "Service"): core.ServiceBehaviour,
    ("", "ConfigMap"): core.NoGeneration,
    ("", "Event"): core.NoGeneration,
    ("events.k8s.io", "Event"): core.NoGeneration,
    ("", "ServiceAccount"): core.NoGeneration,
    ("", "LimitRange"): core.NoGeneration,
    ("", "ResourceQuota"): core.NoGeneration,
    ("", "PersistentVolumeClaim"): core.NoGeneration,
    ("", "PodTemplate"): core.PodTemplateBehaviour,
    ("batch", "Job"): JobBehaviour,
    ("batch", "CronJob"): CronJobBehaviour,
    ("apps", "Deployment"): core.DeploymentBehaviour,
    ("apps", "ReplicaSet"): core.TemplateBehaviour,
    ("apps", "StatefulSet"): core.TemplateBehaviour,
    ("apps", "DaemonSet"): core.TemplateBehaviour,
    ("coordination.k8s.io", "Lease"): core.NoGeneration,
    ("node.k8s.io", "RuntimeClass"): core.NoGeneration,
    ("scheduling.k8s.io", "PriorityClass"): core.PriorityClassBehaviour,
    (_RBAC, "Role"): core.NoGeneration,
    (_RBAC, "RoleBinding"): core.NoGeneration,
    (_RBAC, "ClusterRole"): core.NoGeneration,
    (_RBAC, "ClusterRoleBinding"): core.NoGeneration,
    (_ADMISSION, "MutatingWebhookConfiguration"): partial(
        core.WebhookConfigurationBehaviour, is_mutating=True
    ),
    (_ADMISSION, "ValidatingWebhookConfiguration"): partial(
        core.WebhookConfigurationBehaviour, is_mutating=False
    ),
}
