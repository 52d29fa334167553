"""Gauges and counters of fair-share credits, computed from the ledgers when they are scraped.

Amounts are in unit-hours. Only the leader has ledgers, so only it has series. Made by the
composition root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from sluice.api.records_credit import UNIT_HOUR
from sluice.controllers.metrics import Role
from sluice.engine.engine import Engine

_LABELS: Final = ("policy", "cohort", "kind", "name", "replica_role")


class CreditMetrics:
    """Source of the series of credit accounts."""

    def __init__(self, engine: Engine, *, role: Callable[[], Role]) -> None:
        self._engine = engine
        self._role = role

    def snapshot(self) -> Iterable[Metric]:
        """Return the families as they are now; none without a CreditPolicy."""
        ledgers = self._engine.credits
        if not ledgers.is_on:
            return
        role = self._role().value
        balance = GaugeMetricFamily(
            "sluice_credits_balance_unit_hours", "Balance of an account", labels=_LABELS
        )
        totals = {
            field: CounterMetricFamily(f"sluice_credits_{field}_unit_hours", text, labels=_LABELS)
            for field, text in (
                ("earned", "What others paid for what an account left to them"),
                ("spent", "What an account paid for what it borrowed"),
                ("unpaid", "What an account owed and could not pay"),
            )
        }
        active = GaugeMetricFamily(
            "sluice_credit_policy_active",
            "1 if the policy works, 0 if it is inert",
            labels=("policy", "replica_role"),
        )
        for policy in ledgers.policies():
            state = ledgers.state(policy.name)
            is_active = state is not None and state.is_active
            active.add_metric((policy.name, role), float(is_active))
            book = ledgers.book(policy.name)
            for account in book.accounts.values() if book is not None and is_active else ():
                at = account.id
                labels = (policy.name, at.parent, at.kind, at.name, role)
                balance.add_metric(labels, account.balance / UNIT_HOUR)
                totals["earned"].add_metric(labels, account.earned / UNIT_HOUR)
                totals["spent"].add_metric(labels, account.spent / UNIT_HOUR)
                totals["unpaid"].add_metric(labels, account.unpaid / UNIT_HOUR)
        yield balance
        yield from totals.values()
        yield active
