"""The kinds of kueue.x-k8s.io/v1beta2."""

from sluice.api.models.v1beta2.admission_check import AdmissionCheck
from sluice.api.models.v1beta2.cluster_queue import ClusterQueue
from sluice.api.models.v1beta2.cohort import Cohort
from sluice.api.models.v1beta2.local_queue import LocalQueue
from sluice.api.models.v1beta2.multikueue import MultiKueueCluster, MultiKueueConfig
from sluice.api.models.v1beta2.provisioning_request_config import ProvisioningRequestConfig
from sluice.api.models.v1beta2.resource_flavor import ResourceFlavor
from sluice.api.models.v1beta2.topology import Topology
from sluice.api.models.v1beta2.workload import Workload
from sluice.api.models.v1beta2.workload_priority_class import WorkloadPriorityClass

__all__ = [
    "AdmissionCheck",
    "ClusterQueue",
    "Cohort",
    "LocalQueue",
    "MultiKueueCluster",
    "MultiKueueConfig",
    "ProvisioningRequestConfig",
    "ResourceFlavor",
    "Topology",
    "Workload",
    "WorkloadPriorityClass",
]
