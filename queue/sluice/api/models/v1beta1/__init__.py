"""The kinds of kueue.x-k8s.io/v1beta1."""

from sluice.api.models.v1beta1.admission_check import AdmissionCheck
from sluice.api.models.v1beta1.cluster_queue import ClusterQueue
from sluice.api.models.v1beta1.cohort import Cohort
from sluice.api.models.v1beta1.local_queue import LocalQueue
from sluice.api.models.v1beta1.multikueue import MultiKueueCluster, MultiKueueConfig
from sluice.api.models.v1beta1.provisioning_request_config import ProvisioningRequestConfig
from sluice.api.models.v1beta1.resource_flavor import ResourceFlavor
from sluice.api.models.v1beta1.topology import Topology
from sluice.api.models.v1beta1.workload import Workload
from sluice.api.models.v1beta1.workload_priority_class import WorkloadPriorityClass

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
