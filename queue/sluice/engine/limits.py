"""LimitRanges and container limits: defaults they give, pods they forbid.

Source: docs/spec/algorithm.md 1.10 (2, 3) and 1.11. Used by `sluice.engine.requests` only.
"""

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from sluice.api import quantity
from sluice.api.names import ResourceName
from sluice.api.records import Container, LimitRange, PodTemplate
from sluice.api.records_pod import Resources

Amounts = dict[ResourceName, Fraction]


class Bounds:
    """All LimitRange items of one type in a namespace, combined."""

    __slots__ = ("default", "default_request", "max", "min")

    def __init__(self) -> None:
        self.max: Amounts = {}
        self.min: Amounts = {}
        self.default: Amounts = {}
        self.default_request: Amounts = {}


def combine(ranges: Iterable[LimitRange]) -> dict[str, Bounds]:
    """Return the bounds by type: smallest max, largest min, first defaults seen."""
    result: dict[str, Bounds] = {}
    for record in ranges:
        for item in record.items:
            bounds = result.setdefault(item.type, Bounds())
            for name, text in item.max:
                value = quantity.parse(text)
                bounds.max[name] = min(value, bounds.max.get(name, value))
            for name, text in item.min:
                value = quantity.parse(text)
                bounds.min[name] = max(value, bounds.min.get(name, value))
            for name, text in item.default:
                bounds.default.setdefault(name, quantity.parse(text))
            for name, text in item.default_request:
                bounds.default_request.setdefault(name, quantity.parse(text))
    return result


def _filled(
    requests: Resources, limits: Resources, bounds: Bounds | None
) -> tuple[Resources, Resources]:
    wanted, most = dict(requests), dict(limits)
    if bounds is not None:
        for name, value in bounds.default.items():
            most.setdefault(name, value)
        for name, value in bounds.default_request.items():
            wanted.setdefault(name, value)
    for name, value in most.items():
        wanted.setdefault(name, value)
    return tuple(sorted(wanted.items())), tuple(sorted(most.items()))


def fill(container: Container, bounds: Bounds | None) -> Container:
    """Return a container with defaults filled in, and limits standing in for requests."""
    requests, limits = _filled(container.requests, container.limits, bounds)
    return replace(container, requests=requests, limits=limits)


def fill_pod(template: PodTemplate, bounds: Bounds | None) -> tuple[Resources, Resources]:
    """Return the pod-level requests and limits with defaults; nothing without such a block."""
    if not template.has_pod_resources:
        return (), ()
    return _filled(template.pod_requests, template.pod_limits, bounds)


def problem(
    containers: list[Container],
    inits: list[Container],
    pod_requests: Resources,
    pod_limits: Resources,
    total: Amounts,
    bounds: dict[str, Bounds],
) -> str:
    """Return why such a pod is never admissible, empty when it is (1.11)."""
    broken = [
        *(_above_limit(f"init container {c.name!r}", c.requests, c.limits) for c in inits),
        *(_above_limit(f"container {c.name!r}", c.requests, c.limits) for c in containers),
        _above_limit("pod-level resources", pod_requests, pod_limits),
    ]
    texts = [text for text in broken if text]
    if texts:
        return "resources validation failed: " + "; ".join(texts)
    outside: list[str] = []
    container = bounds.get("Container")
    if container is not None:
        for c in (*inits, *containers):
            low, high = _span(c.requests, c.limits)
            outside += _outside(f"container {c.name!r}", low, high, container)
    pod = bounds.get("Pod")
    if pod is not None:
        outside += _outside("pod", total, total, pod)
    return (
        "resources didn't satisfy LimitRange constraints: " + "; ".join(outside) if outside else ""
    )


def _above_limit(what: str, requests: Resources, limits: Resources) -> str:
    most = dict(limits)
    above = [name for name, value in requests if name in most and value > most[name]]
    return f"{what} requests more {', '.join(above)} than its limit" if above else ""


def _span(requests: Resources, limits: Resources) -> tuple[Amounts, Amounts]:
    low, high = dict(requests), dict(requests)
    for name, value in limits:
        low[name] = min(value, low.get(name, value))
        high[name] = max(value, high.get(name, value))
    return low, high


def _outside(what: str, low: Amounts, high: Amounts, bounds: Bounds) -> list[str]:
    above = [n for n, v in sorted(bounds.max.items()) if n in high and high[n] > v]
    below = [n for n, v in sorted(bounds.min.items()) if n in low and low[n] < v]
    texts = []
    if above:
        texts.append(f"{what} asks for more {', '.join(above)} than the maximum")
    if below:
        texts.append(f"{what} asks for less {', '.join(below)} than the minimum")
    return texts
