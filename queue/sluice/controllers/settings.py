"""From Kueue's configuration file to the manager's options. Called by the composition root."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from sluice.api import names, quantity
from sluice.api.configuration import Settings
from sluice.api.configuration_models import Configuration
from sluice.api.names import ResourceName
from sluice.controllers.options import ElectionOptions, JobOptions, ManagerOptions, Workers
from sluice.engine.lifecycle_facts import LifecycleOptions, Requeuing
from sluice.engine.options import (
    AdmissionFairSharing,
    EngineOptions,
    FairSharing,
    FairStrategy,
    RequeuingTimestamp,
    Transformation,
    TransformationStrategy,
    gates_from,
)
from sluice.jobs.admission.context import Options as AdmissionOptions
from sluice.jobs.workload import WorkloadOptions
from sluice.kube.lease import LeaseTimes

_READY_GATE: Final = "DisableWaitForPodsReady"


def manager_options(settings: Settings, *, identity: str, tune_gc: bool = False) -> ManagerOptions:
    """Return the options that a configuration asks for.

    Args:
        settings: The configuration, validated.
        identity: Unique for each process, a restart included.
        tune_gc: This process runs nothing but Sluice.
    """
    configuration = settings.configuration
    return ManagerOptions(
        identity=identity,
        election=_election(configuration),
        engine=_engine(settings),
        lifecycle=_lifecycle(settings),
        jobs=_jobs(settings),
        workers=_workers(configuration),
        sync_timeout_s=configuration.controller.cache_sync_timeout_ms / 1000,
        tune_gc=tune_gc,
    )


def _election(configuration: Configuration) -> ElectionOptions | None:
    given = configuration.leader_election
    if not given.leader_elect:
        return None
    # Kueue's own name would make us wait for a Kueue that left, or it for us: two programs with
    # different rules must not take turns.
    name = names.OWN_LEASE if given.resource_name == names.KUEUE_LEASE else given.resource_name
    return ElectionOptions(
        namespace=given.resource_namespace or configuration.namespace,
        name=name,
        times=LeaseTimes(
            duration_s=given.lease_duration_ms / 1000,
            renew_deadline_s=given.renew_deadline_ms / 1000,
            retry_period_s=given.retry_period_ms / 1000,
        ),
    )


def _waits_for_pods(settings: Settings) -> bool:
    given = settings.configuration.wait_for_pods_ready
    return given is not None and not settings.gates.enabled(_READY_GATE)


def _engine(settings: Settings) -> EngineOptions:
    configuration, resources = settings.configuration, settings.configuration.resources
    ready = configuration.wait_for_pods_ready if _waits_for_pods(settings) else None
    fair, usage = configuration.fair_sharing, configuration.admission_fair_sharing
    return EngineOptions(
        gates=gates_from(settings.gates.values),
        fair_sharing=None
        if fair is None
        else FairSharing(strategies=tuple(map(FairStrategy, fair.preemption_strategies))),
        admission_fair_sharing=None
        if usage is None
        else AdmissionFairSharing(
            half_life_ms=usage.usage_half_life_ms,
            sampling_interval_ms=usage.usage_sampling_interval_ms,
            resource_weights=tuple(
                (ResourceName(name), float(weight))
                for name, weight in sorted(usage.resource_weights.items())
            ),
        ),
        exclude_resource_prefixes=() if resources is None else resources.exclude_resource_prefixes,
        transformations=_transformations(configuration),
        ignore_undeclared=resources is not None
        and resources.quota_check_strategy == "IgnoreUndeclared",
        requeuing_timestamp=RequeuingTimestamp.EVICTION
        if ready is None
        else RequeuingTimestamp(ready.requeuing_strategy.timestamp),
        block_admission=ready is not None and ready.block_admission,
    )


def _transformations(configuration: Configuration) -> tuple[Transformation, ...]:
    resources = configuration.resources
    if resources is None:
        return ()
    return tuple(
        Transformation(
            input=ResourceName(given.input),
            strategy=TransformationStrategy(given.strategy),
            outputs=tuple(
                (ResourceName(name), Fraction(quantity.parse(factor)))
                for name, factor in sorted(given.outputs.items())
            ),
            multiply_by=ResourceName(given.multiply_by) if given.multiply_by else None,
        )
        for given in resources.transformations
    )


def _lifecycle(settings: Settings) -> LifecycleOptions:
    configuration, gates = settings.configuration, settings.gates
    ready = configuration.wait_for_pods_ready
    retention = configuration.object_retention_policies
    kept = None if retention is None else retention.workloads
    waits = _waits_for_pods(settings)
    strategy = None if ready is None else ready.requeuing_strategy
    return LifecycleOptions(
        pods_ready_timeout_ms=ready.timeout_ms if ready is not None and waits else None,
        recovery_timeout_ms=None if ready is None else ready.recovery_timeout_ms,
        requeuing=Requeuing()
        if strategy is None
        else Requeuing(
            backoff_base_s=strategy.backoff_base_s,
            backoff_max_s=strategy.backoff_max_s,
            count_max=strategy.backoff_limit_count,
        ),
        finish_orphans=gates.enabled("FinishOrphanedWorkloads"),
        granular_reasons=gates.enabled("UnadmittedWorkloadsObservability"),
        retain_finished_ms=None if kept is None else kept.after_finished_ms,
        retain_deactivated_ms=None if kept is None else kept.after_deactivated_ms,
    )


def _jobs(settings: Settings) -> JobOptions:
    configuration, gates = settings.configuration, settings.gates
    integrations = configuration.integrations
    return JobOptions(
        frameworks=integrations.frameworks,
        manages_unqueued=configuration.manage_jobs_without_queue_name,
        managed_namespaces=settings.managed_namespaces,
        workload=WorkloadOptions(
            label_keys_to_copy=integrations.label_keys_to_copy,
            partial_admission=gates.enabled("PartialAdmission"),
            short_names=gates.enabled("ShortWorkloadNames"),
        ),
        reclaimable_pods=gates.enabled("ReclaimablePods"),
        queue_labels=gates.enabled("AssignQueueLabelsForPods"),
        topology=gates.enabled("TopologyAwareScheduling"),
        pods_ready=_waits_for_pods(settings),
        admission=AdmissionOptions(
            manages_unqueued=configuration.manage_jobs_without_queue_name,
            managed_namespaces=settings.managed_namespaces,
            gates=gates.values,
            frameworks=frozenset(integrations.frameworks),
        ),
    )


def _workers(configuration: Configuration) -> Workers:
    given = configuration.controller.group_kind_concurrency
    default = Workers()
    return Workers(
        jobs=given.get("Job.batch", default.jobs),
        workloads=given.get(f"Workload.{names.GROUP}", default.workloads),
        queues=max(
            given.get(f"ClusterQueue.{names.GROUP}", default.queues),
            given.get(f"LocalQueue.{names.GROUP}", default.queues),
        ),
        commands=default.commands,
    )
