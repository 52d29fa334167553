"""Identifier types and well-known names of the public API.

One place for every label, annotation, finalizer and controller name, so that a misspelling is a
type error or a missing attribute. Anyone may import it. Source: docs/spec/api.md section 3.
"""

from typing import Final, NewType

WorkloadKey = NewType("WorkloadKey", str)
"""``namespace/name`` of a Workload."""
LocalQueueKey = NewType("LocalQueueKey", str)
"""``namespace/name`` of a LocalQueue."""
ClusterQueueName = NewType("ClusterQueueName", str)
CohortName = NewType("CohortName", str)
FlavorName = NewType("FlavorName", str)
ResourceName = NewType("ResourceName", str)
PodSetName = NewType("PodSetName", str)
CheckName = NewType("CheckName", str)

GROUP: Final = "kueue.x-k8s.io"
V1BETA1: Final = "v1beta1"
V1BETA2: Final = "v1beta2"
API_VERSION: Final = f"{GROUP}/{V1BETA2}"
OWN_GROUP: Final = "sluicegate.io"
OWN_API_VERSION: Final = f"{OWN_GROUP}/v1alpha1"

SYSTEM_NAMESPACE: Final = "sluice-system"
"""Namespace of our own manifests; the configuration file may name another."""
OWN_LEASE: Final = "manager.sluicegate.io"
KUEUE_LEASE: Final = "c1f6bfd2.kueue.x-k8s.io"
FIELD_MANAGER: Final = "sluice"
ADMISSION_FIELD_MANAGER: Final = "kueue-admission"

DEFAULT_LOCAL_QUEUE: Final = "default"
DEFAULT_PRIORITY_CLASS: Final = "default"

# Labels.
QUEUE_LABEL: Final = f"{GROUP}/queue-name"
PRIORITY_CLASS_LABEL: Final = f"{GROUP}/priority-class"
MAX_EXEC_TIME_LABEL: Final = f"{GROUP}/max-exec-time-seconds"
PREBUILT_WORKLOAD: Final = f"{GROUP}/prebuilt-workload-name"
"""Label and annotation of the same name; the annotation wins (docs/spec/api.md 2.3.4)."""
MANAGED_LABEL: Final = f"{GROUP}/managed"
POD_SET_LABEL: Final = f"{GROUP}/podset"
LOCAL_QUEUE_LABEL: Final = f"{GROUP}/local-queue-name"
CLUSTER_QUEUE_LABEL: Final = f"{GROUP}/cluster-queue-name"
JOB_UID_LABEL: Final = f"{GROUP}/job-uid"
MULTIKUEUE_ORIGIN_LABEL: Final = f"{GROUP}/multikueue-origin"
MULTIKUEUE_WORKER_POD_LABEL: Final = f"{GROUP}/multikueue-worker-workload-pod"
POD_GROUP_NAME: Final = f"{GROUP}/pod-group-name"

# Annotations.
WORKLOAD_ANNOTATION: Final = f"{GROUP}/workload"
WORKLOAD_SLICE_NAME: Final = f"{GROUP}/workload-slice-name"
WORKLOAD_SLICE_REPLACES: Final = f"{GROUP}/workload-slice-replacement-for"
ELASTIC_JOB: Final = f"{GROUP}/elastic-job"
MIN_PARALLELISM: Final = f"{GROUP}/job-min-parallelism"
COMPLETIONS_EQUAL_PARALLELISM: Final = f"{GROUP}/job-completions-equal-parallelism"
STOPPING: Final = f"{GROUP}/stopping"
ADMISSION_GATED_BY: Final = f"{GROUP}/admission-gated-by"
PRIORITY_BOOST: Final = f"{GROUP}/priority-boost"
ALLOWED_FLAVORS: Final = f"{GROUP}/workload-allowed-resource-flavors"
REQUIRED_TOPOLOGY: Final = f"{GROUP}/podset-required-topology"
PREFERRED_TOPOLOGY: Final = f"{GROUP}/podset-preferred-topology"
UNCONSTRAINED_TOPOLOGY: Final = f"{GROUP}/podset-unconstrained-topology"
SLICE_REQUIRED_TOPOLOGY: Final = f"{GROUP}/podset-slice-required-topology"
SLICE_SIZE: Final = f"{GROUP}/podset-slice-size"
SLICE_CONSTRAINTS: Final = f"{GROUP}/podset-slice-required-topology-constraints"
POD_SET_GROUP: Final = f"{GROUP}/podset-group-name"
POD_INDEX_OFFSET: Final = f"{GROUP}/pod-index-offset"
PROVISIONING_PREFIX: Final = "provreq.kueue.x-k8s.io/"

# Finalizers and scheduling gates.
IN_USE_FINALIZER: Final = f"{GROUP}/resource-in-use"
MANAGED_FINALIZER: Final = f"{GROUP}/managed"
ADMISSION_GATE: Final = f"{GROUP}/admission"
TOPOLOGY_GATE: Final = f"{GROUP}/topology"
ELASTIC_JOB_GATE: Final = f"{GROUP}/elastic-job"

# Controllers.
MULTIKUEUE_CONTROLLER: Final = f"{GROUP}/multikueue"
PROVISIONING_CONTROLLER: Final = f"{GROUP}/provisioning-request"

HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
NAMESPACE_NAME_LABEL: Final = "kubernetes.io/metadata.name"


def key(namespace: str, name: str) -> str:
    """Return ``namespace/name``, or just the name of a cluster-scoped object."""
    return f"{namespace}/{name}" if namespace else name


def split_key(value: str) -> tuple[str, str]:
    """Return (namespace, name) of a key; the namespace is empty for a cluster-scoped object."""
    namespace, _, name = value.rpartition("/")
    return namespace, name
