"""Topology assignments: a list of domains <-> the compressed slices of v1beta2.

A Workload that is placed records the domains (racks, nodes) that got pods. v1beta1 lists them;
v1beta2 writes runs of domains as slices with shared prefixes (docs/spec/api.md 1.4). Readers take
any valid encoding; the encoder here follows Kueue's choice of slices. Used by
`sluice.api.conversion`, `sluice.api.wire` and whoever reads or writes `status.admission`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from sluice.api.errors import FieldError, InvalidObject, invalid, required

HOSTNAME_LEVEL: Final = "kubernetes.io/hostname"
SLICES_MAX: Final = 1000
DOMAINS_PER_SLICE_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain that got pods."""

    values: tuple[str, ...]
    """The label value at each level, widest first."""
    count: int
    """Pods in the domain, at least 1."""


def encode(
    levels: Sequence[str], domains: Sequence[Domain], *, by_hostname_prefix: bool = True
) -> dict[str, Any]:
    """Return `topologyAssignment` in its v1beta2 form; the order of the domains is kept.

    Args:
        levels: The node labels of the levels, widest first; 1 to 16.
        domains: The domains; each has one value for each level.
        by_hostname_prefix: The feature gate TASAssignmentsEncodingByHostnamePrefix.

    Raises:
        InvalidObject: A domain has more or fewer values than there are levels.

    Complexity: O(domains x levels x length of a name).
    """
    for index, domain in enumerate(domains):
        if len(domain.values) != len(levels):
            detail = f"must have {len(levels)} entries, one for each level"
            raise InvalidObject([invalid(f"domains[{index}].values", list(domain.values), detail)])
    single = _slices([domains] if domains else [])
    if by_hostname_prefix and levels and levels[-1] == HOSTNAME_LEVEL and len(domains) > 1:
        runs = _slices(_hostname_runs(domains))
        # A single slice can't hold more domains than this, so there is nothing to compare with.
        if len(domains) > DOMAINS_PER_SLICE_MAX or _size(runs) <= _size(single):
            return {"levels": list(levels), "slices": runs}
    return {"levels": list(levels), "slices": single}


def decode(assignment: dict[str, Any]) -> list[Domain]:
    """Return the domains of a `topologyAssignment` in its v1beta2 form, in order.

    Raises:
        InvalidObject: A slice does not describe `domainCount` domains at every level; the path is
            relative to the assignment.
    """
    level_count = len(assignment.get("levels") or ())
    domains: list[Domain] = []
    for index, piece in enumerate(assignment.get("slices") or ()):
        domains.extend(_decode_slice(piece, level_count, f"slices[{index}]"))
    return domains


def _decode_slice(piece: dict[str, Any], level_count: int, path: str) -> Iterator[Domain]:
    count = piece.get("domainCount")
    if not isinstance(count, int):
        raise InvalidObject([required(f"{path}.domainCount", "say how many domains there are")])
    levels = piece.get("valuesPerLevel") or []
    if len(levels) != level_count:
        raise InvalidObject(
            [invalid(f"{path}.valuesPerLevel", len(levels), f"must have {level_count} entries")]
        )
    columns = [
        _decode_values(values, count, f"{path}.valuesPerLevel[{level}]")
        for level, values in enumerate(levels)
    ]
    counts = _decode_counts(piece.get("podCounts") or {}, count, f"{path}.podCounts")
    return map(Domain, zip(*columns, strict=True), counts)


def _decode_values(values: dict[str, Any], count: int, path: str) -> list[str]:
    if "universal" in values:
        return [values["universal"]] * count
    if "individual" not in values:
        raise InvalidObject([_neither(path)])
    individual = values["individual"]
    roots = individual.get("roots") or []
    if len(roots) != count:
        raise InvalidObject([_miscounted(f"{path}.individual.roots", roots, count)])
    prefix, suffix = individual.get("prefix", ""), individual.get("suffix", "")
    return [f"{prefix}{root}{suffix}" for root in roots]


def _decode_counts(counts: dict[str, Any], count: int, path: str) -> list[int]:
    if "universal" in counts:
        return [counts["universal"]] * count
    if "individual" not in counts:
        raise InvalidObject([_neither(path)])
    individual: list[int] = counts["individual"]
    if len(individual) != count:
        raise InvalidObject([_miscounted(f"{path}.individual", individual, count)])
    return individual


def _neither(path: str) -> FieldError:
    return required(path, "set one of universal and individual")


def _miscounted(path: str, found: Sequence[object], count: int) -> FieldError:
    return invalid(path, len(found), f"must have {count} entries, one for each domain")


def _size(slices: list[dict[str, Any]]) -> int:
    """Return how many bytes the slices take as JSON."""
    return len(orjson.dumps(slices))


def _hostname_runs(domains: Sequence[Domain]) -> list[Sequence[Domain]]:
    """Split into runs of neighbours whose node names share a prefix that is worth naming.

    A prefix ends in `-` and is worth naming when two nodes or more have it; each node takes its
    longest. Shorter prefixes (fewer `-`) are tried until there are few enough runs.
    """
    splits = [_dashed_prefixes(domain.values[-1]) for domain in domains]
    shared = Counter(prefix for prefixes in splits for prefix in prefixes)
    for segments in range(max(map(len, splits)), 0, -1):
        names = [
            next((p for p in reversed(prefixes[:segments]) if shared[p] > 1), "")
            for prefixes in splits
        ]
        starts = [i for i, name in enumerate(names) if i == 0 or name != names[i - 1]]
        bounds = zip(starts, [*starts[1:], len(domains)], strict=True)
        runs = [domains[start:end] for start, end in bounds]
        if sum(-(-len(run) // DOMAINS_PER_SLICE_MAX) for run in runs) <= SLICES_MAX:
            return runs
    return [domains]


def _dashed_prefixes(name: str) -> list[str]:
    """Return the prefixes of a name that end in `-`, shortest first."""
    return [name[: at + 1] for at, char in enumerate(name) if char == "-"]


def _slices(runs: Sequence[Sequence[Domain]]) -> list[dict[str, Any]]:
    return [
        _slice(run[start : start + DOMAINS_PER_SLICE_MAX])
        for run in runs
        for start in range(0, len(run), DOMAINS_PER_SLICE_MAX)
    ]


def _slice(domains: Sequence[Domain]) -> dict[str, Any]:
    counts = [domain.count for domain in domains]
    first = counts[0]
    same = all(count == first for count in counts)
    return {
        "domainCount": len(domains),
        "valuesPerLevel": [
            _level(values) for values in zip(*(d.values for d in domains), strict=True)
        ],
        "podCounts": {"universal": first} if same else {"individual": counts},
    }


def _level(values: Sequence[str]) -> dict[str, Any]:
    """Return one level of a slice: one value for all, or prefix, roots and suffix."""
    low, high = min(values), max(values)
    if low == high:
        return {"universal": low}
    prefix = _common_length(low, high)
    backwards = [value[::-1] for value in values]
    suffix = _common_length(min(backwards), max(backwards))
    prefix = min(prefix, min(map(len, values)) - suffix)
    individual: dict[str, Any] = {}
    if prefix:
        individual["prefix"] = low[:prefix]
    individual["roots"] = [value[prefix : len(value) - suffix] for value in values]
    if suffix:
        individual["suffix"] = low[-suffix:]
    return {"individual": individual}


def _common_length(low: str, high: str) -> int:
    """Return how many leading characters the smallest and the largest of some strings share."""
    for length, (a, b) in enumerate(zip(low, high, strict=False)):
        if a != b:
            return length
    return min(len(low), len(high))
