"""Looks for a Kueue that runs in the same cluster: two deciders would admit twice.

Used by controllers and the CLI for readiness.
"""

from __future__ import annotations

from typing import Any, Final

from sluice.api import names
from sluice.api.times import to_ms
from sluice.clock import Clock, SystemClock
from sluice.kube.client import Client
from sluice.kube.resources import LEASES

_DURATION_S_DEFAULT: Final = 15.0


class ForeignLeader:
    """Watches for a fresh Lease of Kueue's name in any namespace."""

    def __init__(
        self, client: Client, *, name: str = names.KUEUE_LEASE, clock: Clock | None = None
    ) -> None:
        self._client = client
        self._name = name
        self._clock = clock or SystemClock()
        self._seen: dict[str, tuple[str, float]] = {}

    async def find(self, *, timeout_s: float = 10.0) -> str | None:
        """Return a sentence about the Kueue that holds such a Lease, None when there is none.

        A Lease is fresh while its renewTime is recent by our wall clock, or was seen to change
        recently by our monotonic one: clocks that differ must not hide it.

        Raises:
            KubeError: Leases cannot be listed.
        """
        selector = f"metadata.name={self._name}"
        leases = await self._client.list(LEASES, field_selector=selector, timeout_s=timeout_s)
        for lease in leases.get("items") or ():
            holder = self._fresh_holder(lease)
            if holder:
                place = names.key(lease["metadata"].get("namespace", ""), self._name)
                return (
                    f"Kueue runs in this cluster: {holder} holds Lease {place};"
                    " scale its deployment to zero first, so that no Workload is admitted twice"
                )
        return None

    def _fresh_holder(self, lease: dict[str, Any]) -> str:
        spec = lease.get("spec") or {}
        holder, renewed = spec.get("holderIdentity") or "", spec.get("renewTime") or ""
        if not holder or not renewed:
            return ""
        duration_s = float(spec.get("leaseDurationSeconds") or _DURATION_S_DEFAULT)
        uid = lease["metadata"].get("uid", "")
        known = self._seen.get(uid)
        now_s = self._clock.monotonic_s()
        if known is None:  # first sight: only the wall clock can tell
            self._seen[uid] = (renewed, now_s - duration_s)
        elif known[0] != renewed:
            self._seen[uid] = (renewed, now_s)
        # A clock that runs ahead of ours must not keep a dead holder fresh for hours.
        wall_age_s = abs(self._clock.now_ms() - to_ms(renewed)) / 1000
        age_s = min(wall_age_s, now_s - self._seen[uid][1])
        return str(holder) if age_s < duration_s else ""


async def foreign_leader(client: Client, *, clock: Clock | None = None) -> str | None:
    """Look once; see ``ForeignLeader.find``."""
    return await ForeignLeader(client, clock=clock).find()
