"""status.admission.podSetAssignments[].topologyAssignment: decoding and encoding.

The encoding groups values by common prefix and suffix; with hostnames as the lowest level it may be
split into runs that share a hostname prefix. Source: docs/spec/api.md 1.4 (Encoding) and
docs/spec/algorithm.md 6.12. Part of `sluice.api.wire`. Pure.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from sluice.api.names import HOSTNAME_LABEL
from sluice.api.records_workload import TopologyAssignment, TopologyDomain

SLICES_MAX: Final = 1000
DOMAINS_PER_SLICE_MAX: Final = 100_000


def decode(raw: Mapping[str, Any] | None) -> TopologyAssignment | None:
    """Return the domains of a stored assignment in their order, or None."""
    if raw is None:
        return None
    domains: list[TopologyDomain] = []
    for part in raw.get("slices") or ():
        count = part["domainCount"]
        columns = [_column(v, count) for v in part["valuesPerLevel"]]
        counts = part["podCounts"]
        universal = counts.get("universal")
        pods = [universal] * count if universal is not None else counts["individual"]
        domains.extend(
            TopologyDomain(values=values, count=n)
            for values, n in zip(zip(*columns, strict=True), pods, strict=True)
        )
    return TopologyAssignment(levels=tuple(raw["levels"]), domains=tuple(domains))


def _column(raw: Mapping[str, Any], count: int) -> list[str]:
    universal = raw.get("universal")
    if universal is not None:
        return [universal] * count
    individual = raw["individual"]
    prefix, suffix = individual.get("prefix") or "", individual.get("suffix") or ""
    return [f"{prefix}{root}{suffix}" for root in individual["roots"]]


def encode(assignment: TopologyAssignment, *, hostname_runs: bool = True) -> dict[str, Any]:
    """Return the JSON of an assignment.

    Args:
        assignment: At least one domain.
        hostname_runs: Gate TASAssignmentsEncodingByHostnamePrefix.
    """
    domains = assignment.domains
    single = _slices([domains])
    if hostname_runs and assignment.levels[-1] == HOSTNAME_LABEL and len(domains) > 1:
        runs = _slices(_runs(domains))
        is_too_long = len(domains) > DOMAINS_PER_SLICE_MAX
        if is_too_long or len(orjson.dumps(runs)) <= len(orjson.dumps(single)):
            return {"levels": list(assignment.levels), "slices": runs}
    return {"levels": list(assignment.levels), "slices": single}


def _slices(runs: Sequence[Sequence[TopologyDomain]]) -> list[dict[str, Any]]:
    return [
        _slice(run[at : at + DOMAINS_PER_SLICE_MAX])
        for run in runs
        for at in range(0, len(run), DOMAINS_PER_SLICE_MAX)
    ]


def _slice(domains: Sequence[TopologyDomain]) -> dict[str, Any]:
    counts = [d.count for d in domains]
    same = all(c == counts[0] for c in counts)
    return {
        "domainCount": len(domains),
        "podCounts": {"universal": counts[0]} if same else {"individual": counts},
        "valuesPerLevel": [
            _values([d.values[level] for d in domains]) for level in range(len(domains[0].values))
        ],
    }


def _values(values: Sequence[str]) -> dict[str, Any]:
    if all(v == values[0] for v in values):
        return {"universal": values[0]}
    low, high = min(values), max(values)
    prefix = _common(low, high)
    turned = [v[::-1] for v in values]
    suffix = _common(min(turned), max(turned))[::-1]
    shortest = min(len(v) for v in values)
    if len(prefix) + len(suffix) > shortest:
        prefix = prefix[: shortest - len(suffix)]
    end = len(suffix)
    individual: dict[str, Any] = {
        "roots": [v[len(prefix) : len(v) - end if end else None] for v in values]
    }
    if prefix:
        individual["prefix"] = prefix
    if suffix:
        individual["suffix"] = suffix
    return {"individual": individual}


def _common(left: str, right: str) -> str:
    for at, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return left[:at]
    return left if len(left) < len(right) else right


def _prefixes(name: str) -> list[str]:
    return [name[: at + 1] for at, letter in enumerate(name) if letter == "-"]


def _runs(domains: Sequence[TopologyDomain]) -> list[Sequence[TopologyDomain]]:
    """Split into consecutive runs that share the longest reusable hostname prefix."""
    hosts = [_prefixes(d.values[-1]) for d in domains]
    uses = Counter(prefix for host in hosts for prefix in host)
    for segments in range(max(map(len, hosts), default=0), 0, -1):
        runs: list[Sequence[TopologyDomain]] = []
        start, last = 0, _reused(hosts[0], uses, segments)
        for at in range(1, len(domains)):
            prefix = _reused(hosts[at], uses, segments)
            if prefix != last:
                runs.append(domains[start:at])
                start, last = at, prefix
        runs.append(domains[start:])
        if len(runs) <= SLICES_MAX:
            return runs
    return [domains]


def _reused(prefixes: Sequence[str], uses: Counter[str], segments: int) -> str:
    """Return the longest prefix of at most ``segments`` parts that another host has too."""
    for prefix in reversed(prefixes[:segments]):
        if uses[prefix] > 1:
            return prefix
    return ""
