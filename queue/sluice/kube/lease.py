"""Leader election on a Lease, with rules that keep two leaders from ever overlapping.

Measured against a server that lets writes hang (docs/adr): time is monotonic and local, a holder's
Lease counts as fresh for its whole duration after *we* saw it change, every request has less time
than is left, writes carry the resourceVersion, and leading ends ``renew_deadline_s`` after the
start of the last renewal that succeeded, whatever a running request does. Since a stalled event
loop may run callbacks late, whoever writes as the leader also asks ``is_leading`` right before.

Used by controllers and the CLI.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sluice.api.errors import (
    AlreadyExists,
    Conflict,
    InvariantViolation,
    KubeError,
    NotFound,
)
from sluice.api.times import micro_from_ms
from sluice.clock import Clock, SystemClock
from sluice.kube.backoff import DICE
from sluice.kube.client import Client
from sluice.kube.resources import LEASES
from sluice.log import get_logger

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """Durations of leader election, in seconds (docs/spec/api.md 6, leaderElection).

    Attributes:
        duration_s: How long others wait after the last renewal they saw.
        renew_deadline_s: How long the leader goes on after its last renewal.
        retry_period_s: Time between two tries.
    """

    duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0

    def __post_init__(self) -> None:
        """Check the order that safety rests on."""
        if not self.duration_s > self.renew_deadline_s > self.retry_period_s * 1.2 > 0:
            raise ValueError(
                "leader election needs leaseDuration > renewDeadline > 1.2 * retryPeriod > 0,"
                f" not {self.duration_s:g}s, {self.renew_deadline_s:g}s, {self.retry_period_s:g}s"
            )


class Observation:
    """What this process saw of a Lease, and when by its own monotonic clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: tuple[object, ...] | None = None
        self._seen_at_s = 0.0

    def is_held_by_other(self, spec: Mapping[str, Any], identity: str) -> bool:
        """Note the Lease's state and return whether another holder must be respected."""
        holder = spec.get("holderIdentity") or ""
        state = (holder, spec.get("renewTime"), spec.get("leaseTransitions"))
        if state != self._seen:
            self._seen, self._seen_at_s = state, self._clock.monotonic_s()
        if not holder or holder == identity:
            return False
        age_s = self._clock.monotonic_s() - self._seen_at_s
        return age_s < float(spec.get("leaseDurationSeconds") or 0)


class Elector:
    """Campaigns for one Lease and runs the leader's work while holding it."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str,
        identity: str,
        times: LeaseTimes | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Make an elector.

        Args:
            client: Where the Lease lives.
            namespace: Its namespace.
            name: Its name.
            identity: Unique for each process, a restart included.
            times: Durations.
            clock: Monotonic time for decisions, wall time for what is written.
        """
        self._client = client
        self._namespace = namespace
        self._name = name
        self.identity = identity
        self._times = times or LeaseTimes()
        self._clock = clock or SystemClock()
        self._observation = Observation(self._clock)
        self._lease: dict[str, Any] | None = None
        self._leads_until_s: float | None = None
        self.holder = ""

    @property
    def is_leading(self) -> bool:
        """Whether this process may act as the leader at this very moment."""
        return self._leads_until_s is not None and self._clock.monotonic_s() < self._leads_until_s

    async def run(self, lead: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Wait for the Lease, then run ``lead`` until it ends or the Lease is lost.

        The work is cancelled when the Lease is lost, and the Lease released when the work has
        stopped while we still held it, by cancellation too.

        Returns:
            True when the work ended by itself, False when the Lease was lost.

        Raises:
            InvariantViolation: Cancelled work went on until the Lease could be another's.
        """
        await self._acquire()
        log.info("leading", fields={"lease": self._name, "identity": self.identity})
        work = asyncio.create_task(lead(), name=f"leader-{self._name}")
        try:
            ended = await self._renew_while(work)
        finally:
            await self._stop(work)
            await self._release()
        if ended:
            work.result()  # a failure of the work is the caller's
        else:
            log.warning("leadership lost", fields={"lease": self._name, "holder": self.holder})
        return ended

    async def _acquire(self) -> None:
        while True:
            started_s = self._clock.monotonic_s()
            try:
                async with asyncio.timeout(self._times.renew_deadline_s):
                    if await self._try(self._times.renew_deadline_s):
                        self._leads_until_s = started_s + self._times.renew_deadline_s
                        if self.is_leading:
                            return
            except (KubeError, TimeoutError) as error:
                log.warning("lease not read", fields={"lease": self._name, "error": str(error)})
            await asyncio.sleep(self._times.retry_period_s * DICE.uniform(1.0, 1.2))

    async def _renew_while(self, work: asyncio.Future[None]) -> bool:
        """Renew until the work ends (True) or the Lease is lost (False)."""
        times = self._times
        while True:
            left_s = self._left_s()
            await asyncio.wait({work}, timeout=max(0.0, min(times.retry_period_s, left_s)))
            if work.done():
                return True
            left_s = self._left_s()
            if left_s <= 0:
                return False
            # Half the deadline for a request, so that one that hangs leaves time for another.
            timeout_s = min(left_s, max(times.retry_period_s, times.renew_deadline_s / 2))
            started_s = self._clock.monotonic_s()
            try:
                async with asyncio.timeout(timeout_s):
                    if not await self._try(timeout_s):
                        return False
                self._leads_until_s = started_s + times.renew_deadline_s
            except (KubeError, TimeoutError) as error:
                fields = {"lease": self._name, "error": str(error), "left_s": round(left_s, 1)}
                log.warning("lease not renewed", fields=fields)

    def _left_s(self) -> float:
        assert self._leads_until_s is not None
        return self._leads_until_s - self._clock.monotonic_s()

    async def _try(self, timeout_s: float) -> bool:
        """Take or renew the Lease; False when another holds it or was faster."""
        if self._lease is not None:
            try:
                return await self._put(self._lease, timeout_s)
            except (Conflict, NotFound):
                self._lease = None  # someone wrote it: look who
        try:
            lease = await self._client.get(
                LEASES, self._namespace, self._name, timeout_s=timeout_s, retry=False
            )
        except NotFound:
            return await self._create(timeout_s)
        spec = lease.setdefault("spec", {})
        self.holder = spec.get("holderIdentity") or ""
        if self._observation.is_held_by_other(spec, self.identity):
            return False
        try:
            return await self._put(lease, timeout_s)
        except Conflict:
            return False

    async def _create(self, timeout_s: float) -> bool:
        lease = LEASES.skeleton(self._namespace, self._name)
        lease["spec"] = self._claim({})
        try:
            self._lease = await self._client.create(
                LEASES, self._namespace, lease, timeout_s=timeout_s, retry=False
            )
        except AlreadyExists:
            return False
        self.holder = self.identity
        return True

    async def _put(self, lease: dict[str, Any], timeout_s: float) -> bool:
        body = {**lease, "spec": self._claim(lease["spec"])}
        self._lease = await self._client.replace(
            LEASES, self._namespace, self._name, body, timeout_s=timeout_s, retry=False
        )
        self.holder = self.identity
        return True

    def _claim(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return the spec with this process as its holder."""
        now = micro_from_ms(self._clock.now_ms())
        claimed = {
            **spec,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(1, round(self._times.duration_s)),
            "renewTime": now,
        }
        if spec.get("holderIdentity") != self.identity:
            claimed["acquireTime"] = now
            claimed["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1 if spec else 0
        return claimed

    async def _stop(self, work: asyncio.Future[None]) -> None:
        """Cancel the work and wait until it has stopped, while the Lease still keeps others off."""
        if work.done():
            return
        work.cancel()
        grace_s = max(0.1, self._left_s() + self._times.duration_s - self._times.renew_deadline_s)
        done, _ = await asyncio.wait({work}, timeout=grace_s)
        if not done:
            self._leads_until_s = None
            raise InvariantViolation(
                f"the leader's work did not stop within {grace_s:.1f}s of losing lease"
                f" {self._name}; the process must end"
            )

    async def _release(self) -> None:
        """Give the Lease back, so that the next leader need not wait for it to run out."""
        was_leading, self._leads_until_s = self.is_leading, None
        if not was_leading or self._lease is None:
            return
        timeout_s = self._times.retry_period_s
        with suppress(KubeError, TimeoutError):
            async with asyncio.timeout(timeout_s):
                try:
                    await self._put_released(self._lease, timeout_s)
                except Conflict:  # the renewal that cancellation cut short may have arrived
                    lease = await self._client.get(
                        LEASES, self._namespace, self._name, timeout_s=timeout_s, retry=False
                    )
                    if lease["spec"].get("holderIdentity") == self.identity:
                        await self._put_released(lease, timeout_s)
        self._lease = None

    async def _put_released(self, lease: dict[str, Any], timeout_s: float) -> None:
        spec = {
            **lease["spec"],
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": micro_from_ms(self._clock.now_ms()),
        }
        body = {**lease, "spec": spec}
        await self._client.replace(
            LEASES, self._namespace, self._name, body, timeout_s=timeout_s, retry=False
        )
        self.holder = ""
