"""From a reviewed object to an outcome: which rules apply to which kind.

No I/O of its own; what jobs depend on is looked up through the Lookups passed in. Called by the
application through the table of ``routes``. Source: docs/spec/api.md 2.0 to 2.4.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sluice.api.edits import Edits
from sluice.api.errors import FieldError
from sluice.api.validate.gates import Gates
from sluice.jobs.admission.context import Context, LookupFailed, Lookups, Options, Refused
from sluice.jobs.admission.registry import JobAdmission
from sluice_webhook.review import (
    AdmissionRequest,
    Allowed,
    Denied,
    Operation,
    Outcome,
    denied_for,
)

Handler = Callable[[AdmissionRequest], Awaitable[Outcome]]
Default = Callable[[Edits, Gates], None]
OnCreate = Callable[[Mapping[str, Any], Gates], list[FieldError]]
OnUpdate = Callable[[Mapping[str, Any], Mapping[str, Any], Gates], list[FieldError]]


async def allow(request: AdmissionRequest) -> Outcome:
    """Take the object as it is: the answer for kinds that are not enabled."""
    del request
    return Allowed()


@dataclass(frozen=True, slots=True, kw_only=True)
class KueueDefaults:
    """Defaults of one kind of group ``kueue.x-k8s.io``."""

    default: Default
    gates: Gates

    async def __call__(self, request: AdmissionRequest) -> Outcome:
        """Return the patch of a new object."""
        if request.operation is not Operation.CREATE:
            return Allowed()
        edits = Edits(request.obj)
        self.default(edits, self.gates)
        return Allowed(patch=edits.operations)


@dataclass(frozen=True, slots=True, kw_only=True)
class KueueValidation:
    """Validation of one kind of group ``kueue.x-k8s.io``."""

    on_create: OnCreate
    on_update: OnUpdate
    gates: Gates

    async def __call__(self, request: AdmissionRequest) -> Outcome:
        """Return whether an object may be stored."""
        if request.operation is Operation.CREATE:
            return denied_for(self.on_create(request.obj, self.gates))
        if request.operation is Operation.UPDATE:
            return denied_for(self.on_update(request.old, request.obj, self.gates))
        return Allowed()


async def _explained(decision: Awaitable[Outcome]) -> Outcome:
    """Return a decision, or a denial that says why there could be none."""
    try:
        return await decision
    except Refused as error:
        return Denied(message=str(error))
    except LookupFailed as error:
        # 503 makes clients try again, which a 403 would not.
        message = f"{error}; try again"
        return Denied(message=message, code=503, reason="ServiceUnavailable")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDefaults:
    """Defaults of one job kind."""

    admission: JobAdmission
    options: Options
    lookups: Lookups

    async def __call__(self, request: AdmissionRequest) -> Outcome:
        """Return the patch of a new job."""
        if request.operation is not Operation.CREATE:
            return Allowed()
        return await _explained(self._decide(request))

    async def _decide(self, request: AdmissionRequest) -> Outcome:
        edits = Edits(request.obj)
        await self.admission.default(edits, _context(self, request))
        return Allowed(patch=edits.operations)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobValidation:
    """Validation of one job kind."""

    admission: JobAdmission
    options: Options
    lookups: Lookups

    async def __call__(self, request: AdmissionRequest) -> Outcome:
        """Return whether a job may be stored."""
        if request.operation not in (Operation.CREATE, Operation.UPDATE):
            return Allowed()
        return await _explained(self._decide(request))

    async def _decide(self, request: AdmissionRequest) -> Outcome:
        context = _context(self, request)
        if request.operation is Operation.CREATE:
            return denied_for(await self.admission.on_create(request.obj, context))
        return denied_for(await self.admission.on_update(request.old, request.obj, context))


def _context(handler: JobDefaults | JobValidation, request: AdmissionRequest) -> Context:
    return Context(namespace=request.namespace, options=handler.options, lookups=handler.lookups)
