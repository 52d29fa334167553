"""What a pod asks for, from a template to integers per resource (docs/spec/algorithm.md 1.10).

Runtime class overhead, LimitRange defaults, limits as requests, init containers and sidecars,
pod-level resources, excluded prefixes, transformations, rounding. The result is shared among equal
templates of a namespace. `RequestRules` is fed by `sluice.engine.world` and read when a Workload is
queued, requeued or charged.
"""

import hashlib
from fractions import Fraction
from typing import Final

from sluice.api import quantity
from sluice.api.amount import clamp
from sluice.api.names import ResourceName
from sluice.api.records import Container, LimitRange, PodTemplate, RuntimeClass
from sluice.api.records_pod import Resources
from sluice.engine import limits
from sluice.engine.options import Transformation, TransformationStrategy

_CACHE_MAX: Final = 16384
_FNV_OFFSET: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3
_MASK: Final = (1 << 64) - 1
_order: dict[str, tuple[int, str]] = {}

Amounts = dict[ResourceName, Fraction]


def resource_order(name: str) -> tuple[int, str]:
    """Return the key that requests are sorted by: FNV-1a of the name, then the name (0.3)."""
    key = _order.get(name)
    if key is None:
        value = _FNV_OFFSET
        for byte in name.encode():
            value = ((value ^ byte) * _FNV_PRIME) & _MASK
        key = (value, name)
        if len(_order) < _CACHE_MAX:
            _order[name] = key
    return key


class PodRequests:
    """What one pod of a template asks for.

    Attributes:
        names: Resources counted against quota, in the order of 0.3.
        amounts: Their amounts per pod, after transformations, at least 0.
        raw: Effective requests from the spec with overhead, before prefixes and transformations:
            (resource, amount), in name order.
        shape: Digest of everything that makes two pods equivalent (2.7).
        problem: Why such a pod can never be admitted (1.11), empty when nothing is wrong.
    """

    __slots__ = ("amounts", "names", "problem", "raw", "shape")

    def __init__(
        self,
        names: tuple[ResourceName, ...],
        amounts: tuple[int, ...],
        raw: tuple[tuple[ResourceName, int], ...],
        shape: bytes,
        problem: str,
    ) -> None:
        self.names = names
        self.amounts = amounts
        self.raw = raw
        self.shape = shape
        self.problem = problem


class RequestRules:
    """Computes and remembers `PodRequests`; knows LimitRanges and RuntimeClasses.

    ``version`` counts the changes after which requests may differ.
    """

    __slots__ = ("_cache", "_classes", "_prefixes", "_ranges", "_transformations", "version")

    def __init__(
        self, prefixes: tuple[str, ...], transformations: tuple[Transformation, ...]
    ) -> None:
        self._prefixes = prefixes
        self._transformations = {t.input: t for t in transformations}
        self._ranges: dict[str, dict[str, LimitRange]] = {}
        self._classes: dict[str, RuntimeClass] = {}
        self._cache: dict[tuple[str, bytes], PodRequests] = {}
        self.version = 0

    def set_limit_range(self, record: LimitRange) -> None:
        """Add or replace a LimitRange."""
        self._ranges.setdefault(record.namespace, {})[record.name] = record
        self._forget()

    def drop_limit_range(self, namespace: str, name: str) -> None:
        """Forget a LimitRange."""
        self._ranges.get(namespace, {}).pop(name, None)
        self._forget()

    def set_runtime_class(self, record: RuntimeClass) -> None:
        """Add or replace a RuntimeClass."""
        self._classes[record.name] = record
        self._forget()

    def drop_runtime_class(self, name: str) -> None:
        """Forget a RuntimeClass."""
        self._classes.pop(name, None)
        self._forget()

    def _forget(self) -> None:
        self._cache.clear()
        self.version += 1

    def of(self, template: PodTemplate, namespace: str) -> PodRequests:
        """Return what a pod of the template asks for in a namespace."""
        key = (namespace, template.key)
        found = self._cache.get(key)
        if found is None:
            if len(self._cache) >= _CACHE_MAX:
                self._cache.clear()
            found = self._compute(template, namespace)
            self._cache[key] = found
        return found

    def _compute(self, template: PodTemplate, namespace: str) -> PodRequests:
        ranges = self._ranges.get(namespace)
        bounds = limits.combine([ranges[name] for name in sorted(ranges)]) if ranges else {}
        container = bounds.get("Container")
        containers = [limits.fill(c, container) for c in template.containers]
        inits = [limits.fill(c, container) for c in template.init_containers]
        pod_requests, pod_limits = limits.fill_pod(template, bounds.get("Pod"))
        overhead = template.overhead
        if not overhead and template.runtime_class in self._classes:
            fixed = self._classes[template.runtime_class].overhead
            overhead = tuple((name, quantity.parse(text)) for name, text in fixed)
        effective = _effective(containers, inits, pod_requests, overhead)
        counted = self._transform(
            {n: v for n, v in effective.items() if not n.startswith(self._prefixes)}
            if self._prefixes
            else effective
        )
        names = tuple(sorted(counted, key=resource_order))
        problem = limits.problem(containers, inits, pod_requests, pod_limits, effective, bounds)
        return PodRequests(
            names,
            tuple(_integer(name, counted[name]) for name in names),
            tuple((name, _integer(name, effective[name])) for name in sorted(effective)),
            _shape(template, containers, inits, pod_requests, overhead),
            problem,
        )

    def _transform(self, amounts: Amounts) -> Amounts:
        """Apply the resource transformations (1.10.5)."""
        if not any(name in self._transformations for name in amounts):
            return amounts
        retained: Amounts = {}
        generated: Amounts = {}
        for name, value in amounts.items():
            rule = self._transformations.get(name)
            if rule is None:
                retained[name] = retained.get(name, Fraction(0)) + value
                continue
            factor = amounts.get(rule.multiply_by) if rule.multiply_by is not None else None
            base = value if factor is None else value * factor
            for output, ratio in rule.outputs:
                generated[output] = generated.get(output, Fraction(0)) + base * ratio
            if rule.strategy is TransformationStrategy.RETAIN:
                retained[name] = retained.get(name, Fraction(0)) + value
        for name, value in generated.items():
            if value > 0 or name not in retained:
                retained[name] = retained.get(name, Fraction(0)) + max(value, Fraction(0))
        return retained


def _integer(name: str, value: Fraction) -> int:
    """Return an amount in the resource's unit, rounded up once per pod, at least 0 (1.10.7)."""
    scaled = value * 1000 if name == quantity.CPU else value
    number = quantity.round_away(scaled)
    return clamp(number) if number > 0 else 0


def _sum_into(total: Amounts, amounts: Resources) -> None:
    for name, value in amounts:
        total[name] = total.get(name, Fraction(0)) + value


def _raise_to(total: Amounts, amounts: Amounts) -> None:
    for name, value in amounts.items():
        if name not in total or value > total[name]:
            total[name] = value


def _effective(
    containers: list[Container],
    inits: list[Container],
    pod_requests: Resources,
    overhead: Resources,
) -> Amounts:
    """Return the requests of one pod by the rule of Kubernetes (1.10)."""
    base: Amounts = {}
    for container in containers:
        _sum_into(base, container.requests)
    sidecars: Amounts = {}
    peaks: list[Amounts] = []
    for init in inits:
        if init.is_sidecar:
            _sum_into(base, init.requests)
            _sum_into(sidecars, init.requests)
            peaks.append(dict(sidecars))
        else:
            peak = dict(sidecars)
            _sum_into(peak, init.requests)
            peaks.append(peak)
    for peak in peaks:
        _raise_to(base, peak)
    for name, value in pod_requests:
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            base[name] = value
    _sum_into(base, overhead)
    return base


def _shape(
    template: PodTemplate,
    containers: list[Container],
    inits: list[Container],
    pod_requests: Resources,
    overhead: Resources,
) -> bytes:
    parts = [
        [c.requests for c in containers],
        [c.requests for c in inits],
        pod_requests,
        overhead,
    ]
    digest = hashlib.blake2b(template.shape_key, digest_size=16)
    digest.update(repr(parts).encode())
    return digest.digest()
