"""Events on objects, as the controllers write them: best effort, and bounded in rate.

Two events for each admission would be half of all writes when many Workloads pass in a short time,
and the API server is what runs out first. So they are thinned out beyond the rate of `pace`;
conditions and metrics still tell everything. Warnings are never thinned out.
Reporting controllers are those of docs/spec/api.md 4.11.
"""

from __future__ import annotations

from typing import Any, Final

from sluice.controllers.pace import Informing, Pace
from sluice.engine.lifecycle_facts import WARNING, Note
from sluice.kube.events import EventDraft, EventRecorder, reference

WORKLOAD_CONTROLLER: Final = "kueue-workload-controller"
ADMISSION_CONTROLLER: Final = "kueue-admission"


def job_controller(framework: str) -> str:
    """Return the reporting controller of a job kind."""
    return f"{framework}-kueue-controller"


class Notes:
    """Records events within a rate.

    Attributes:
        thinned_count: Normal events left out because too many came at once.
    """

    def __init__(self, recorder: EventRecorder, pace: Pace) -> None:
        self._recorder = recorder
        self._pace = pace
        self.thinned_count = 0

    def record(self, raw: dict[str, Any], controller: str, note: Note) -> None:
        """Record an event on an object; returns at once."""
        if note.type != WARNING and self._pace.wait_s(Informing.EVENTS) > 0:
            self.thinned_count += 1
            return
        self._recorder.record(
            EventDraft(
                regarding=reference(raw),
                reason=note.reason,
                note=note.message,
                warning=note.type == WARNING,
                controller=controller,
            )
        )
