"""The same history gives the same commands in any process, under any hash seed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import history

ROOT = Path(__file__).parents[2]


def digest_elsewhere(seed: int, hash_seed: str) -> str:
    environment = {
        **os.environ,
        "PYTHONHASHSEED": hash_seed,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "queue"), str(ROOT)]),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.history", str(seed)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_another_hash_seed_gives_identical_commands(seed: int) -> None:
    here = history.digest(seed)

    assert [digest_elsewhere(seed, hash_seed) for hash_seed in ("1", "4242")] == [here, here]


def test_another_history_gives_other_commands() -> None:
    assert history.digest(1) != history.digest(3)
