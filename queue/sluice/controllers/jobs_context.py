"""What the parts of a job controller share: one kind's integration, caches, writer and options."""

from __future__ import annotations

from dataclasses import dataclass

from sluice.clock import Clock
from sluice.controllers.caches import Caches, Json
from sluice.controllers.lookups import CachedLookups
from sluice.controllers.notes import Notes, job_controller
from sluice.controllers.options import JobOptions
from sluice.controllers.write import Writer
from sluice.engine.lifecycle_facts import NORMAL, WARNING, Note
from sluice.engine.lifecycle_status import Moment
from sluice.jobs.integration import JobIntegration


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """The surroundings of one job kind's controller."""

    integration: JobIntegration
    caches: Caches
    lookups: CachedLookups
    writer: Writer
    notes: Notes
    options: JobOptions
    clock: Clock

    def note(self, job: Json, reason: str, message: str, *, warning: bool = False) -> None:
        """Record an event on a job."""
        note = Note(reason=reason, message=message, type=WARNING if warning else NORMAL)
        self.notes.record(job, job_controller(self.integration.kind.framework), note)

    def moment(self, workload: Json) -> Moment:
        """Return the present moment of a Workload."""
        generation = workload["metadata"].get("generation", 0)
        return Moment(now_ms=self.clock.now_ms(), generation=generation)
