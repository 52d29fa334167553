"""Keeps CreditPolicies' status what the engine's ledgers say: the checkpoint they go on from.

A status is written after a settlement, so at most once a period for each policy, and when a
condition changes. Settlements that move more than a threshold are logged, one line each; the
annotation ``sluicegate.io/credits-log-threshold`` of a policy changes it from one unit-hour.
Source: docs/spec/credits.md 4. Made by `manager`.
"""

from __future__ import annotations

from typing import Final

from sluice.api import names, times
from sluice.api.errors import NotFound
from sluice.clock import Clock
from sluice.controllers import credits_status
from sluice.controllers.caches import Caches
from sluice.controllers.reconcile import DONE, Reconciler, Result
from sluice.controllers.scheduler import Scheduler
from sluice.controllers.write import Writer
from sluice.engine.commands import Command
from sluice.engine.credits.service import PolicySettlement, PolicyState
from sluice.jobs.difference import Json, same
from sluice.kube.informer import Handlers
from sluice.log import get_logger

log = get_logger(__name__)

THRESHOLD_ANNOTATION: Final = f"{names.OWN_GROUP}/credits-log-threshold"
THRESHOLD_UNIT_HOURS: Final = 1.0


class CreditController:
    """Reconciles the status of CreditPolicies; keys are their names."""

    def __init__(
        self, caches: Caches, scheduler: Scheduler, writer: Writer, *, clock: Clock, workers: int
    ) -> None:
        """Make a controller.

        Args:
            caches: Where policies are read.
            scheduler: Owns the engine and says when a cycle has run.
            writer: How policies are written.
            clock: Time.
            workers: Policies written at once.
        """
        self._policies = caches.credit_policies
        self._credits = scheduler.engine.credits
        self._scheduler = scheduler
        self._writer = writer
        self._clock = clock
        self._states: dict[str, PolicyState] = {}
        self._resumed: set[str] = set()
        self.reconciler = Reconciler(
            "credit-policies",
            self._reconcile,
            workers=workers,
            all_keys=lambda: self._policies.store.all_keys(),
        )

    def attach(self) -> None:
        """Look at a policy when it or its ledger changes."""
        self._policies.add_handlers(
            Handlers(
                added=lambda key, _: self.reconciler.add(key),
                updated=lambda key, _, __: self.reconciler.add(key),
                deleted=lambda key, _: self._forget(key),
            )
        )
        self._scheduler.cycle_observers.append(self._cycle_done)

    def start(self) -> None:
        """Begin to lead: ledgers go on from the newest statuses, whoever wrote them."""
        self._credits.restart()
        self._states.clear()
        self._resumed.clear()

    def _forget(self, name: str) -> None:
        self._states.pop(name, None)
        self._resumed.discard(name)

    def _cycle_done(self, duration_s: float, commands: tuple[Command, ...]) -> None:
        """File what a cycle settled or changed; costs nothing without policies."""
        del duration_s, commands
        if not self._credits.is_on:
            return
        for settlement in self._credits.take_settlements():
            self._log(settlement)
            self.reconciler.add(settlement.policy)
        for policy in self._credits.policies():
            state = self._credits.state(policy.name)
            if state is not None and self._states.get(policy.name) != state:
                self._states[policy.name] = state
                self.reconciler.add(policy.name)
            self._log_resumption(policy.name)

    def _log_resumption(self, name: str) -> None:
        resumed = self._credits.resumption(name)
        if resumed is None or name in self._resumed:
            return
        self._resumed.add(name)
        log.info(
            "credits resumed from a checkpoint",
            fields={
                "policy": name,
                "settled_at": times.from_ms(resumed.settled_ms),
                "resumed_at": times.from_ms(resumed.at_ms),
            },
        )

    def _log(self, done: PolicySettlement) -> None:
        if done.settlement.skipped_ms:
            log.warning(
                "a gap of more than a day was settled as its last day",
                fields=credits_status.log_fields(done.policy, done.settlement),
            )
        elif credits_status.moved_unit_hours(done.settlement) > self._threshold(done.policy):
            log.info(
                "credits settled", fields=credits_status.log_fields(done.policy, done.settlement)
            )

    def _threshold(self, name: str) -> float:
        raw = self._policies.store.raw(name)
        annotations = ((raw or {}).get("metadata") or {}).get("annotations") or {}
        try:
            return float(annotations.get(THRESHOLD_ANNOTATION, THRESHOLD_UNIT_HOURS))
        except ValueError:
            return THRESHOLD_UNIT_HOURS

    async def _reconcile(self, name: str) -> Result:
        raw = self._policies.store.raw(name)
        if raw is None:
            return DONE
        desired = self._desired(name, raw)
        if desired is None or same(desired, raw.get("status") or {}):
            return DONE
        try:
            await self._writer.status(self._policies, raw, desired)
        except NotFound:
            return DONE
        return DONE

    def _desired(self, name: str, raw: Json) -> Json | None:
        return credits_status.status_of(
            self._credits,
            name,
            raw.get("status") or {},
            now_ms=self._clock.now_ms(),
            seen=raw["metadata"].get("generation", 0),
        )
