"""The engine's placement against the model of docs/spec/algorithm.md 6.4 to 6.7 on random trees."""

import pytest
from hypothesis import given, settings
from tests.support import topology_worlds as worlds
from tests.support.topology_model import Model, Path

from sluice.engine.placement import PlacementOutcome


def _stored(case: worlds.Case, pods: dict[Path, int]) -> dict[Path, int]:
    return {worlds.stored(case.levels, path): count for path, count in pods.items()}


def _found(outcome: PlacementOutcome, index: int) -> dict[Path, int] | None:
    topology = outcome.placed.get(index)
    return None if topology is None else {d.values: d.count for d in topology.domains}


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@given(case=worlds.cases())
def test_the_engine_places_like_the_model(case: worlds.Case) -> None:
    model = Model(len(case.levels), case.leaves, case.ask())
    expected = model.place()
    outcome = worlds.place(worlds.placement_of(case), case)
    assert not outcome.errors
    if expected is None:
        assert not outcome.placed
        assert list(outcome.failed) == [0]
        return
    assert not outcome.failed
    assert _found(outcome, 0) == _stored(case, expected[0])
    if case.leader is not None:
        assert _found(outcome, 1) == _stored(case, expected[1])
