"""Events on objects, as the controllers write them: best effort, and bounded in rate.

Two events for each admission would be half of all writes when many Workloads pass in a short time,
and the API server is what runs out first. So a bucket lets a burst through and thins out what
exceeds the rate; conditions and metrics still tell everything. Warnings are never thinned out.
Reporting controllers are those of docs/spec/api.md 4.11.
"""

from __future__ import annotations

from typing import Any, Final

from sluice.clock import Clock
from sluice.engine.lifecycle_facts import WARNING, Note
from sluice.kube.events import EventDraft, EventRecorder, reference
from sluice.kube.limits import TokenBucket

WORKLOAD_CONTROLLER: Final = "kueue-workload-controller"
ADMISSION_CONTROLLER: Final = "kueue-admission"
EVENTS_PER_S: Final = 50.0
EVENTS_BURST: Final = 500


def job_controller(framework: str) -> str:
    """Return the reporting controller of a job kind."""
    return f"{framework}-kueue-controller"


class Notes:
    """Records events within a rate.

    Attributes:
        thinned_count: Normal events left out because too many came at once.
    """

    def __init__(self, recorder: EventRecorder, clock: Clock) -> None:
        self._recorder = recorder
        self._bucket = TokenBucket(qps=EVENTS_PER_S, burst=EVENTS_BURST, clock=clock)
        self.thinned_count = 0

    def record(self, raw: dict[str, Any], controller: str, note: Note) -> None:
        """Record an event on an object; returns at once."""
        if self._bucket.reserve() > 0 and note.type != WARNING:
            self._bucket.give_back()
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
