"""Put a server together from its parts; the only module here that knows their implementations."""

from __future__ import annotations

from collections.abc import Sequence

from sluice.local.apiserver.seams import (
    Admission,
    AdmissionRequest,
    Cluster,
    Converter,
    Json,
    JsonView,
    Parts,
)
from sluice.local.apiserver.status import ApiError, Reason
from sluice.local.merge import Merger
from sluice.local.schema import Compiler


class NoWebhooks:
    """Admission and conversion of a server that calls no webhooks."""

    async def mutate(self, request: AdmissionRequest) -> Json | None:
        """Return the object as it is."""
        return request.obj

    async def validate(self, request: AdmissionRequest) -> None:
        """Allow everything."""

    async def convert(
        self, conversion: JsonView, objects: Sequence[Json], desired_api_version: str
    ) -> list[Json]:
        """Refuse: there is nobody to ask."""
        raise ApiError(Reason.INTERNAL_ERROR, "this API server calls no conversion webhooks")

    async def close(self) -> None:
        """Nothing is open."""


def _admission(cluster: Cluster) -> Admission:
    return NoWebhooks()


def _converter(cluster: Cluster) -> Converter:
    return NoWebhooks()


def parts_without_webhooks() -> Parts:
    """Return parts for a server that never calls out: schemas and merges only."""
    return Parts(schemas=Compiler(), merger=Merger(), admission=_admission, converter=_converter)
