"""Admission fair sharing: what LocalQueues have consumed lately (docs/spec/algorithm.md 5.4).

A ledger per LocalQueue: consumed resources that decay with a half-life, and penalties of Workloads
that were let in but not yet settled. Amounts are exact integers in billionths of a core or unit.
Read by the order of pending Workloads and of preemption candidates; fed by the engine.
"""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

from sluice.api import quantity
from sluice.api.names import LocalQueueKey, ResourceName, WorkloadKey
from sluice.engine.options import AdmissionFairSharing

_NANO: Final = 10**9
_CPU_NANO: Final = 10**6
"""Billionths of a core in a milliCPU."""


def nano(resource: str, amount: int) -> int:
    """Return an amount in the resource's unit as billionths of a core or unit."""
    return amount * (_CPU_NANO if resource == quantity.CPU else _NANO)


def _times(value: int, factor: float) -> int:
    """Multiply exactly by the shortest decimal form of a float, cut toward zero."""
    product = value * Fraction(repr(factor))
    return product.numerator // product.denominator if product >= 0 else math.ceil(product)


def _number(value: int) -> float:
    whole, rest = divmod(value, _NANO)
    return float(whole) if rest == 0 else float(value) * 1e-9


class _Account:
    """The ledger of one LocalQueue."""

    __slots__ = ("cached", "consumed", "penalties", "updated_ms", "weight")

    def __init__(self) -> None:
        self.weight = 1.0
        self.consumed: dict[ResourceName, int] = {}
        self.penalties: dict[WorkloadKey, dict[ResourceName, int]] = {}
        self.updated_ms: int | None = None
        self.cached: float | None = None


class UsageLedger:
    """Consumed resources and penalties of all LocalQueues; inert when the feature is off."""

    __slots__ = ("_accounts", "_options", "_weights", "is_on")

    def __init__(self, options: AdmissionFairSharing | None) -> None:
        self.is_on = options is not None
        self._options = options or AdmissionFairSharing()
        self._weights = dict(self._options.resource_weights)
        self._accounts: dict[LocalQueueKey, _Account] = {}

    def _account(self, key: LocalQueueKey) -> _Account:
        account = self._accounts.get(key)
        if account is None:
            account = _Account()
            self._accounts[key] = account
        return account

    def alpha(self, elapsed_ms: int) -> float:
        """Return the part of the past that fades in a time; 0 without a half-life (5.4.1)."""
        half_life = self._options.half_life_ms
        if half_life == 0:
            return 0.0
        return 1.0 - math.pow(0.5, (elapsed_ms / 1000.0) / (half_life / 1000.0))

    def open(
        self,
        key: LocalQueueKey,
        weight: float,
        consumed: Iterable[tuple[ResourceName, str]],
        updated_ms: int | None,
    ) -> None:
        """Take over a LocalQueue's weight, and its stored usage the first time (5.4.3)."""
        account = self._account(key)
        account.weight = weight
        account.cached = None
        if account.updated_ms is None and updated_ms is not None:
            account.consumed = {
                name: math.trunc(quantity.parse(text) * _NANO) for name, text in consumed
            }
            account.updated_ms = updated_ms

    def close(self, key: LocalQueueKey) -> None:
        """Forget a LocalQueue that is gone."""
        self._accounts.pop(key, None)

    def usage(self, key: LocalQueueKey) -> float:
        """Return the weighted usage that orders a LocalQueue (5.4.2)."""
        account = self._accounts.get(key)
        if account is None:
            return 0.0
        if account.cached is None:
            account.cached = self._compute(account)
        return account.cached

    def _compute(self, account: _Account) -> float:
        if account.weight <= 0:
            return math.inf
        totals = dict(account.consumed)
        for penalty in account.penalties.values():
            for name, value in penalty.items():
                totals[name] = totals.get(name, 0) + value
        total = 0.0
        for name in sorted(totals):
            total += self._weights.get(name, 1.0) * _number(totals[name])
        return total / account.weight

    def charge(
        self, key: LocalQueueKey, workload: WorkloadKey, requests: Mapping[ResourceName, int]
    ) -> None:
        """Record the entry penalty of a Workload, in place of a former one (5.4.4).

        Args:
            key: Its LocalQueue.
            workload: The Workload.
            requests: Its total requests in the resources' units.
        """
        factor = self.alpha(self._options.sampling_interval_ms)
        account = self._account(key)
        account.penalties[workload] = {
            name: _times(nano(name, amount), factor) for name, amount in requests.items()
        }
        account.cached = None

    def drop(self, key: LocalQueueKey, workload: WorkloadKey) -> bool:
        """Forget a penalty without charging it; tell whether there was one."""
        account = self._accounts.get(key)
        if self._options.is_frozen or account is None or workload not in account.penalties:
            return False
        del account.penalties[workload]
        account.cached = None
        return True

    def settle(
        self,
        key: LocalQueueKey,
        workload: WorkloadKey,
        admitted: Mapping[ResourceName, int],
        now_ms: int,
    ) -> bool:
        """Turn a penalty into consumed usage because its Workload is admitted (5.4.4).

        Args:
            key: Its LocalQueue.
            workload: The Workload.
            admitted: What admitted Workloads of the queue use, in the resources' units.
            now_ms: Time of the admission.

        Returns:
            Whether there was a penalty.
        """
        account = self._accounts.get(key)
        if self._options.is_frozen or account is None or workload not in account.penalties:
            return False
        penalty = account.penalties.pop(workload)
        self._decay(account, admitted, now_ms)
        for name, value in penalty.items():
            account.consumed[name] = account.consumed.get(name, 0) + value
        account.cached = None
        return True

    def sample(self, key: LocalQueueKey, admitted: Mapping[ResourceName, int], now_ms: int) -> None:
        """Bring consumed usage up to date (5.4.3)."""
        if not self._options.is_frozen:
            account = self._account(key)
            self._decay(account, admitted, now_ms)
            account.cached = None

    def _decay(self, account: _Account, admitted: Mapping[ResourceName, int], now_ms: int) -> None:
        before = account.updated_ms
        elapsed = 0 if before is None else max(0, now_ms - before)
        account.updated_ms = now_ms if before is None else max(before, now_ms)
        if self._options.half_life_ms == 0:
            account.consumed = {}
            return
        alpha = self.alpha(elapsed)
        consumed = {name: _times(value, 1.0 - alpha) for name, value in account.consumed.items()}
        for name, amount in admitted.items():
            consumed[name] = consumed.get(name, 0) + _times(nano(name, amount), alpha)
        account.consumed = consumed

    def sample_due_ms(self, key: LocalQueueKey) -> int | None:
        """Return when the next sample of a LocalQueue is due; None when sampling is off."""
        account = self._accounts.get(key)
        if not self.is_on or self._options.is_frozen or account is None:
            return None
        if account.updated_ms is None:
            return 0
        return account.updated_ms + self._options.sampling_interval_ms

    def consumed(
        self, key: LocalQueueKey
    ) -> tuple[tuple[tuple[ResourceName, str], ...], int | None]:
        """Return consumed resources as quantity texts in name order, and when computed."""
        account = self._accounts.get(key)
        if account is None:
            return (), None
        return (
            tuple((name, _text(account.consumed[name])) for name in sorted(account.consumed)),
            account.updated_ms,
        )


def _text(value: int) -> str:
    """Return billionths as a quantity text."""
    for factor, suffix in ((_NANO, ""), (10**6, "m"), (10**3, "u")):
        if value % factor == 0:
            return f"{value // factor}{suffix}"
    return f"{value}n"
