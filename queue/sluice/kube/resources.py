"""The kinds of Kubernetes objects that are read or written, and their REST paths.

Data only, so that no path is spelled twice. Anyone above the pure layers may import it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from sluice.api import names

_PATH_SAFE: Final = ":@!$&'()*+,;=~"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind as the API server serves it.

    Attributes:
        group: API group; empty for the core group.
        version: API version such as ``v1``.
        plural: Lower-case plural in paths.
        kind: Kind in objects.
        namespaced: Whether its objects live in a namespace.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Return ``group/version``, or just the version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """Return ``plural.group``, the name that RBAC messages and metrics use."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path of a collection, an object or its subresource.

        An empty namespace means all namespaces (a collection) or a cluster-scoped object.

        Raises:
            ValueError: A namespace for a cluster-scoped kind, an object of a namespaced kind
                without a namespace, or a subresource without a name.
        """
        if namespace and not self.namespaced:
            raise ValueError(f"{self.full_name} is cluster-scoped: it takes no namespace")
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self.full_name} {name!r} needs a namespace")
        if subresource and not name:
            raise ValueError(f"subresource {subresource!r} of {self.full_name} needs a name")
        parts = [f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"]
        if namespace:
            parts += ["namespaces", quote(namespace, safe=_PATH_SAFE)]
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=_PATH_SAFE))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    def skeleton(self, namespace: str, name: str) -> dict[str, Any]:
        """Return a new object of this kind with apiVersion, kind and metadata only."""
        metadata: dict[str, Any] = {"name": name}
        if namespace:
            metadata["namespace"] = namespace
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata}


def _core(plural: str, kind: str, *, namespaced: bool = True) -> Resource:
    return Resource(group="", version="v1", plural=plural, kind=kind, namespaced=namespaced)


def _kueue(plural: str, kind: str, *, namespaced: bool = False) -> Resource:
    return Resource(
        group=names.GROUP, version=names.V1BETA2, plural=plural, kind=kind, namespaced=namespaced
    )


def _v1(group: str, plural: str, kind: str, *, namespaced: bool = True) -> Resource:
    return Resource(group=group, version="v1", plural=plural, kind=kind, namespaced=namespaced)


# Kueue's eleven kinds (docs/spec/api.md 1.0).
ADMISSION_CHECKS: Final = _kueue("admissionchecks", "AdmissionCheck")
CLUSTER_QUEUES: Final = _kueue("clusterqueues", "ClusterQueue")
COHORTS: Final = _kueue("cohorts", "Cohort")
LOCAL_QUEUES: Final = _kueue("localqueues", "LocalQueue", namespaced=True)
MULTIKUEUE_CLUSTERS: Final = _kueue("multikueueclusters", "MultiKueueCluster")
MULTIKUEUE_CONFIGS: Final = _kueue("multikueueconfigs", "MultiKueueConfig")
PROVISIONING_CONFIGS: Final = _kueue("provisioningrequestconfigs", "ProvisioningRequestConfig")
RESOURCE_FLAVORS: Final = _kueue("resourceflavors", "ResourceFlavor")
TOPOLOGIES: Final = _kueue("topologies", "Topology")
WORKLOADS: Final = _kueue("workloads", "Workload", namespaced=True)
WORKLOAD_PRIORITY_CLASSES: Final = _kueue("workloadpriorityclasses", "WorkloadPriorityClass")

KUEUE_KINDS: Final = (
    ADMISSION_CHECKS,
    CLUSTER_QUEUES,
    COHORTS,
    LOCAL_QUEUES,
    MULTIKUEUE_CLUSTERS,
    MULTIKUEUE_CONFIGS,
    PROVISIONING_CONFIGS,
    RESOURCE_FLAVORS,
    TOPOLOGIES,
    WORKLOADS,
    WORKLOAD_PRIORITY_CLASSES,
)

# Our own kinds (docs/spec/credits.md 4).
CREDIT_POLICIES: Final = Resource(
    group=names.OWN_GROUP,
    version="v1alpha1",
    plural="creditpolicies",
    kind="CreditPolicy",
    namespaced=False,
)

# Core.
CONFIG_MAPS: Final = _core("configmaps", "ConfigMap")
ENDPOINTS: Final = _core("endpoints", "Endpoints")
LIMIT_RANGES: Final = _core("limitranges", "LimitRange")
NAMESPACES: Final = _core("namespaces", "Namespace", namespaced=False)
NODES: Final = _core("nodes", "Node", namespaced=False)
POD_TEMPLATES: Final = _core("podtemplates", "PodTemplate")
PODS: Final = _core("pods", "Pod")
SECRETS: Final = _core("secrets", "Secret")
SERVICE_ACCOUNTS: Final = _core("serviceaccounts", "ServiceAccount")
SERVICES: Final = _core("services", "Service")

# Other built-in groups.
BATCH_JOBS: Final = _v1("batch", "jobs", "Job")
DEPLOYMENTS: Final = _v1("apps", "deployments", "Deployment")
STATEFUL_SETS: Final = _v1("apps", "statefulsets", "StatefulSet")
LEASES: Final = _v1("coordination.k8s.io", "leases", "Lease")
EVENTS: Final = _v1("events.k8s.io", "events", "Event")
PRIORITY_CLASSES: Final = _v1(
    "scheduling.k8s.io", "priorityclasses", "PriorityClass", namespaced=False
)
RUNTIME_CLASSES: Final = _v1("node.k8s.io", "runtimeclasses", "RuntimeClass", namespaced=False)
CUSTOM_RESOURCE_DEFINITIONS: Final = _v1(
    "apiextensions.k8s.io",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
MUTATING_WEBHOOKS: Final = _v1(
    "admissionregistration.k8s.io",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATING_WEBHOOKS: Final = _v1(
    "admissionregistration.k8s.io",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
TOKEN_REVIEWS: Final = _v1("authentication.k8s.io", "tokenreviews", "TokenReview", namespaced=False)
SUBJECT_ACCESS_REVIEWS: Final = _v1(
    "authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
DEVICE_CLASSES: Final = _v1("resource.k8s.io", "deviceclasses", "DeviceClass", namespaced=False)
RESOURCE_CLAIM_TEMPLATES: Final = _v1(
    "resource.k8s.io", "resourceclaimtemplates", "ResourceClaimTemplate"
)
PROVISIONING_REQUESTS: Final = _v1(
    "autoscaling.x-k8s.io", "provisioningrequests", "ProvisioningRequest"
)
