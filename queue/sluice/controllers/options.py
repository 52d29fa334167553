"""Settings of the manager, as plain values; the composition root makes them from Kueue's file.

Nothing here reads a file or the environment. Used by `manager` and handed to the controllers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sluice.api import names
from sluice.api.selectors import EVERYTHING, LabelSelector
from sluice.engine.lifecycle_facts import LifecycleOptions
from sluice.engine.options import EngineOptions
from sluice.jobs.admission.context import Options as AdmissionOptions
from sluice.jobs.workload import WorkloadOptions
from sluice.kube.lease import LeaseTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionOptions:
    """Leader election; without it the process leads from the start.

    Attributes:
        namespace: Where the Lease lives.
        name: Its name.
        times: Durations.
    """

    namespace: str = names.SYSTEM_NAMESPACE
    name: str = names.OWN_LEASE
    times: LeaseTimes = field(default_factory=LeaseTimes)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """How jobs are handled (docs/spec/api.md 2.3 and 6).

    Attributes:
        frameworks: ``integrations.frameworks``.
        manages_unqueued: ``manageJobsWithoutQueueName``.
        managed_namespaces: ``managedJobsNamespaceSelector``, compiled.
        workload: How Workloads are made.
        reclaimable_pods: Gate ReclaimablePods.
        queue_labels: Gate AssignQueueLabelsForPods.
        topology: Gate TopologyAwareScheduling.
        pods_ready: ``waitForPodsReady`` is on.
        admission: Options of the ancestor search, which the webhook shares.
    """

    frameworks: tuple[str, ...] = ("batch/job",)
    manages_unqueued: bool = False
    managed_namespaces: LabelSelector = EVERYTHING
    workload: WorkloadOptions = field(default_factory=WorkloadOptions)
    reclaimable_pods: bool = True
    queue_labels: bool = True
    topology: bool = True
    pods_ready: bool = True
    admission: AdmissionOptions = field(default_factory=AdmissionOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """How many keys of a kind are worked on at once, and how many commands are written at once."""

    jobs: int = 5
    workloads: int = 10
    queues: int = 5
    priority_classes: int = 1
    topology: int = 4
    commands: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerOptions:
    """Settings of one manager.

    Attributes:
        identity: Unique for each process, a restart included.
        election: None to lead without a Lease.
        engine: Settings of the scheduler.
        lifecycle: Settings of the Workload rules.
        jobs: Settings of the job controllers.
        workers: Concurrency.
        sync_timeout_s: Time for the first lists (``controller.cacheSyncTimeout``).
        status_interval_s: Least time between two writes of one queue's status.
        tune_gc: Freeze what is in memory after the first lists, so that collections stay short;
            for a process that runs nothing else.
    """

    identity: str
    election: ElectionOptions | None = field(default_factory=ElectionOptions)
    engine: EngineOptions = field(default_factory=EngineOptions)
    lifecycle: LifecycleOptions = field(default_factory=LifecycleOptions)
    jobs: JobOptions = field(default_factory=JobOptions)
    workers: Workers = Workers()
    sync_timeout_s: float = 120.0
    status_interval_s: float = 1.0
    tune_gc: bool = False
