"""The job kinds whose admission is implemented: the JobAdmission protocol and the table.

The webhook asks here for each enabled framework; a kind that is enabled without an entry, or not
enabled at all, is let through unchanged. Adding one means a module beside ``batch.py`` and an entry
in `ADMISSIONS`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from sluice.api.edits import Edits
from sluice.api.errors import FieldError
from sluice.jobs.admission.batch import BatchJobAdmission
from sluice.jobs.admission.context import Context
from sluice.jobs.integration import JobKind


class JobAdmission(Protocol):
    """Defaults and validation of one job kind.

    Every method may raise InvalidObject (a value of the wrong JSON type), LookupFailed or Refused.
    """

    @property
    def kind(self) -> JobKind:
        """Return the identity of the kind."""
        ...

    async def default(self, edits: Edits, context: Context) -> None:
        """Add to a new object what it leaves out."""
        ...

    async def on_create(self, new: Mapping[str, Any], context: Context) -> list[FieldError]:
        """Return what is wrong with a new object."""
        ...

    async def on_update(
        self, old: Mapping[str, Any], new: Mapping[str, Any], context: Context
    ) -> list[FieldError]:
        """Return what is wrong with a changed object."""
        ...


ADMISSIONS: Final[tuple[JobAdmission, ...]] = (BatchJobAdmission(),)


def select(frameworks: Iterable[str]) -> dict[str, JobAdmission]:
    """Return the implemented admissions of the enabled frameworks, by framework."""
    enabled = frozenset(frameworks)
    return {a.kind.framework: a for a in ADMISSIONS if a.kind.framework in enabled}
