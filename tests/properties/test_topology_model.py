"""The engine's placement against a model of docs/spec/algorithm.md 6.4 to 6.7 and 6.10."""

import pytest
from hypothesis import given, settings
from tests.support import topology_worlds as worlds
from tests.support.topology_balanced import BalancedModel
from tests.support.topology_model import Model, Path

from sluice.engine.options import Gates
from sluice.engine.placement import PlacementOutcome


def _stored(case: worlds.Case, pods: dict[Path, int]) -> dict[Path, int]:
    return {worlds.stored(case.levels, path): count for path, count in pods.items()}


def _found(outcome: PlacementOutcome, index: int) -> dict[Path, int] | None:
    topology = outcome.placed.get(index)
    return None if topology is None else {d.values: d.count for d in topology.domains}


def _compare(case: worlds.Case, model: Model, gates: Gates) -> None:
    expected = model.place()
    placement = worlds.placement_of(case, gates)
    assert worlds.can_place(placement, case) == (expected is not None)
    outcome = worlds.place(placement, case)
    assert not outcome.errors
    if expected is None:
        assert not outcome.placed
        assert list(outcome.failed) == [0]
        return
    assert not outcome.failed
    assert _found(outcome, 0) == _stored(case, expected[0])
    if case.leader is not None:
        assert _found(outcome, 1) == _stored(case, expected[1])


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(case=worlds.cases())
def test_the_engine_places_like_the_model(case: worlds.Case) -> None:
    _compare(case, Model(len(case.levels), case.leaves, case.ask()), Gates())


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(case=worlds.cases(kinds=("preferred",)))
def test_the_engine_balances_like_the_model(case: worlds.Case) -> None:
    model = BalancedModel(len(case.levels), case.leaves, case.ask())
    _compare(case, model, Gates(tas_balanced_placement=True))
