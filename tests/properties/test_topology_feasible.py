"""A placement is found exactly when one exists, and what is found keeps to the rules.

The oracle tries every way to put pods on the leaves of a small tree (docs/spec/algorithm.md 6.4);
it knows resources and levels, and nothing of counts, orders or best fit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from hypothesis import assume, event, given, settings
from tests.support import topology_worlds as worlds
from tests.support.topology_model import Ask, Free, Path

from sluice.api.records import TopologyAssignment
from sluice.engine.options import Gates
from sluice.engine.placement import PlacementOutcome

Pods = dict[Path, int]


def _holds(free: Free, pods: int, ask: Ask, leader: bool) -> bool:
    need = {name: amount * pods for name, amount in ask.pod.items()}
    if leader and ask.leader is not None:
        for name, amount in ask.leader.items():
            need[name] = need.get(name, 0) + amount
    return all(free.get(name, 0) >= amount for name, amount in need.items())


def _ways(leaves: list[Path], free: Mapping[Path, Free], ask: Ask, total: int) -> Iterator[Pods]:
    """Yield every way to put ``total`` pods and the leader on leaves."""
    for leader in leaves if ask.leader is not None else [()]:

        def fill(rest: list[Path], left: int, done: Pods, leader: Path = leader) -> Iterator[Pods]:
            if not rest:
                if left == 0:
                    yield done
                return
            path = rest[0]
            for pods in range(left + 1):
                if not _holds(free[path], pods, ask, path == leader):
                    break
                yield from fill(rest[1:], left - pods, {**done, path: pods})

        yield from fill(leaves, total, {})


def _sums(pods: Pods, level: int) -> dict[Path, int]:
    sums: dict[Path, int] = {}
    for path, count in pods.items():
        sums[path[: level + 1]] = sums.get(path[: level + 1], 0) + count
    return sums


def _is_whole(pods: Pods, ask: Ask) -> bool:
    """Tell whether slices are whole in their domains, inner ones down to their level."""
    if any(n % ask.slice_size for n in _sums(pods, ask.slice_level).values()):
        return False
    above = ask.slice_level
    for at, size in ask.inner:
        for level in range(above + 1, at + 1):
            if any(n % size for n in _sums(pods, level).values()):
                return False
        above = at
    return True


def _exists(case: worlds.Case) -> bool:
    ask = case.ask()
    total = ask.count // ask.slice_size * ask.slice_size
    groups: dict[Path, list[Path]] = {}
    for path in sorted(case.leaves):
        groups.setdefault(path[: ask.level + 1] if ask.required else (), []).append(path)
    return any(
        _is_whole(pods, ask)
        for leaves in groups.values()
        for pods in _ways(leaves, case.leaves, ask, total)
    )


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(case=worlds.cases(leaves_max=4))
def test_a_placement_is_found_exactly_when_there_is_one(case: worlds.Case) -> None:
    assume(case.count <= 8)
    placement = worlds.placement_of(case)
    found = bool(worlds.place(placement, case).placed)
    assert worlds.can_place(placement, case) == found
    event(f"found: {found}")
    assert found == _exists(case)


def _by_path(case: worlds.Case, topology: TopologyAssignment) -> Pods:
    paths = {worlds.stored(case.levels, path): path for path in case.leaves}
    return {paths[domain.values]: domain.count for domain in topology.domains}


@pytest.mark.slow
@settings(max_examples=800, deadline=None)
@given(case=worlds.cases(leaves_max=12))
def test_what_is_found_keeps_to_the_rules(case: worlds.Case) -> None:
    outcome = worlds.place(worlds.placement_of(case), case)
    assume(outcome.placed)
    _check(case, outcome)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(case=worlds.cases(leaves_max=12, kinds=("preferred",)))
def test_balanced_placement_keeps_to_the_rules_too(case: worlds.Case) -> None:
    plain = worlds.place(worlds.placement_of(case), case)
    gates = Gates(tas_balanced_placement=True)
    balanced = worlds.place(worlds.placement_of(case, gates), case)
    # Where nothing balanced is found the usual choice applies (6.10), so both find one or neither.
    assert bool(plain.placed) == bool(balanced.placed)
    if balanced.placed:
        event(f"differs: {plain != balanced}")
        _check(case, balanced)


def _check(case: worlds.Case, outcome: PlacementOutcome) -> None:
    ask = case.ask()
    pods = _by_path(case, outcome.placed[0])
    assert sum(pods.values()) == ask.count // ask.slice_size * ask.slice_size
    assert list(pods) == sorted(pods)
    assert all(count > 0 for count in pods.values())
    leaders: Pods = {}
    if case.leader is not None:
        leaders = _by_path(case, outcome.placed[1])
        assert list(leaders.values()) == [1]
    for path, free in case.leaves.items():
        assert _holds(free, pods.get(path, 0), ask, path in leaders)
    if ask.required:
        assert len({path[: ask.level + 1] for path in (*pods, *leaders)}) <= 1
    assert _is_whole(pods, ask)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(case=worlds.cases(leaves_max=12))
def test_the_order_in_which_nodes_are_seen_does_not_matter(case: worlds.Case) -> None:
    backwards = replace(case, leaves=dict(reversed(list(case.leaves.items()))))
    first = worlds.place(worlds.placement_of(case), case)
    assert worlds.place(worlds.placement_of(backwards), case) == first
