"""Managers stop before and after any write; the next one finds the balances of one that never did.

As long as every change since the checkpoint is still visible (docs/spec/credits.md 4).
"""

import pytest
from tests.support.credit_crashes import Play

SEEDS = range(40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_balances_are_those_of_an_undisturbed_ledger(seed: int) -> None:
    play = Play(seed)
    for _ in range(60):
        play.step()
        assert play.balances() == play.model.balances(play.now_ms)


def test_the_seeds_do_stop_managers() -> None:
    play = Play(3)
    for _ in range(60):
        play.step()
    assert play.resumed > 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(15))
def test_what_nobody_saw_differs_by_the_time_since_the_checkpoint_at_most(seed: int) -> None:
    play = Play(seed, hidden=True)
    for _ in range(40):
        play.step()
        found, expected = play.balances(), play.model.balances(play.now_ms)
        assert all(abs(found[name] - expected[name]) <= play.bound for name in expected)
    # It is recorded: the status says from where the ledger went on.
    assert '"Resumed"' in play.store.status
