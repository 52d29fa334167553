"""What the lifecycle rules know besides the Workload itself, and what they answer.

Facts are the records that the engine observes, so that the manager, the simulator and tests feed
the same rules. Pure data. Made by ``sluice.controllers.workloads``; read by the ``lifecycle``
modules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sluice.api import conditions
from sluice.api.conditions import ConditionType
from sluice.api.records import ClusterQueue, LocalQueue
from sluice.engine.lifecycle_status import Json, Moment

NORMAL: Final = "Normal"
WARNING: Final = "Warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeuing:
    """``waitForPodsReady.requeuingStrategy`` of the configuration (docs/spec/api.md 4.5).

    Attributes:
        backoff_base_s: First delay.
        backoff_max_s: Longest delay.
        count_max: Evictions after which the Workload is deactivated; None for no limit.
    """

    backoff_base_s: int = 60
    backoff_max_s: int = 3600
    count_max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleOptions:
    """Settings of the lifecycle rules.

    Attributes:
        pods_ready_timeout_ms: Time for pods to become ready; None when the feature is off.
        recovery_timeout_ms: Time for failed pods to come back; None or 0 for no limit.
        requeuing: Back-off after pods were not ready in time.
        finish_orphans: Gate FinishOrphanedWorkloads.
        granular_reasons: Gate UnadmittedWorkloadsObservability.
        retain_finished_ms: ``objectRetentionPolicies.workloads.afterFinished``; None keeps.
        retain_deactivated_ms: ``afterDeactivatedByKueue``; None keeps.
    """

    pods_ready_timeout_ms: int | None = 1_800_000
    recovery_timeout_ms: int | None = 1_800_000
    requeuing: Requeuing = Requeuing()
    finish_orphans: bool = True
    granular_reasons: bool = True
    retain_finished_ms: int | None = None
    retain_deactivated_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything around one Workload.

    Attributes:
        local_queue_name: ``spec.queueName``.
        local_queue: None when there is no such LocalQueue.
        cluster_queue_name: The one that holds its quota, else the LocalQueue's; may be empty.
        cluster_queue: None when there is no such ClusterQueue.
        cluster_queue_active: Status of its Active condition, as the engine has it; read only for
            a Workload that is not admitted.
        parked: Reason and message of the scheduler, when it parked the Workload without writing
            them and they shall be written now.
    """

    local_queue_name: str
    local_queue: LocalQueue | None
    cluster_queue_name: str
    cluster_queue: ClusterQueue | None
    cluster_queue_active: bool = True
    parked: tuple[str, str] | None = None


def required_checks(queue: ClusterQueue, assigned: Iterable[str] | None) -> list[str]:
    """Return the names of the checks that a Workload needs, sorted (docs/spec/api.md 4.3).

    Args:
        queue: Its ClusterQueue.
        assigned: Flavors of its admission, or None while it has none.
    """
    all_flavors = {flavor.name for group in queue.resource_groups for flavor in group.flavors}
    flavors = None if assigned is None else set(assigned)
    names: set[str] = set()
    for rule in queue.checks:
        effective = set(rule.on_flavors) or all_flavors
        if effective >= all_flavors if flavors is None else effective & flavors:
            names.add(rule.name)
    return sorted(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """An event to record on the Workload."""

    reason: str
    message: str
    type: str = NORMAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a Workload needs now; several rules may have had their say.

    Attributes:
        status: The new status, None when it stays.
        active: New ``spec.active``, None when it stays.
        drop_finalizer: Take our finalizer off.
        delete: Delete the Workload.
        delete_owner: Delete the job that owns it (or the Workload itself when nobody does).
        notes: Events to record once the status is written.
        look_again_ms: Time at which a rule may say something new; None for never.
    """

    status: Json | None = None
    active: bool | None = None
    drop_finalizer: bool = False
    delete: bool = False
    delete_owner: bool = False
    notes: tuple[Note, ...] = ()
    look_again_ms: int | None = None


@dataclass(slots=True, kw_only=True)
class Draft:
    """The Workload as the rules change it, one after the other.

    Attributes:
        workload: The Workload as it came, never changed.
        status: The status so far.
        at: Time and generation of this evaluation.
        look_again_ms: Earliest time that any rule asked for.
    """

    workload: Json
    status: Json
    at: Moment
    active: bool | None = None
    drop_finalizer: bool = False
    delete: bool = False
    delete_owner: bool = False
    notes: list[Note] = field(default_factory=list)
    look_again_ms: int | None = None

    def condition(self, kind: ConditionType) -> Mapping[str, Any] | None:
        """Return a condition of the status so far."""
        return conditions.find(self.status.get("conditions"), kind)

    def is_true(self, kind: ConditionType) -> bool:
        """Tell whether a condition is True so far."""
        return conditions.is_true(self.status.get("conditions"), kind)

    def wait_until(self, at_ms: int) -> None:
        """Ask to be looked at again at a time."""
        if self.look_again_ms is None or at_ms < self.look_again_ms:
            self.look_again_ms = at_ms

    def step(self) -> Step:
        """Return the result."""
        changed = self.status != (self.workload.get("status") or {})
        return Step(
            status=self.status if changed else None,
            active=self.active,
            drop_finalizer=self.drop_finalizer,
            delete=self.delete,
            delete_owner=self.delete_owner,
            notes=tuple(self.notes),
            look_again_ms=self.look_again_ms,
        )
