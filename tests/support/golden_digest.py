"""A digest of everything the engine says while it replays recorded scenarios.

Commands, queue positions, explanations and statuses, in the form in which Python shows them; for
comparing builds and hash seeds from process to process::

    PYTHONHASHSEED=1 python -m tests.support.golden_digest 4

takes every fourth scenario and prints one line for each.
"""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from sluice.api.names import ClusterQueueName, LocalQueueKey, WorkloadKey
from sluice.engine.commands import Command
from sluice.engine.engine import Engine
from sluice.simulator.replay import JsonObject, Replay, load

FOLDER = Path(__file__).parents[1] / "golden"


class Recorder:
    """An engine that remembers the commands of its last cycle."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.commands: tuple[Command, ...] = ()

    def cycle(self, now_ms: int) -> tuple[Command, ...]:
        self.commands = self._engine.cycle(now_ms)
        return self.commands

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)


def digest(scenario: JsonObject) -> str:
    """Return the digest of one scenario."""
    replay = Replay(scenario)
    engine = replay.engine
    recorder = Recorder(engine)
    replay.engine = recorder  # type: ignore[assignment]  (stands in for it)
    seen = hashlib.sha256()
    for step in scenario["steps"]:
        replay.step(step)
        seen.update(repr(recorder.commands).encode())
        seen.update(repr(list(_answers(engine, scenario))).encode())
    return seen.hexdigest()


def _answers(engine: Engine, scenario: JsonObject) -> Iterator[object]:
    for raw in scenario.get("clusterQueues") or ():
        name = ClusterQueueName(raw["metadata"]["name"])
        yield engine.cluster_queue_status(name)
        pending = engine.pending(name)
        yield pending
        yield [engine.explain(WorkloadKey(entry.workload)) for entry in pending]
    for raw in scenario.get("localQueues") or ():
        metadata = raw["metadata"]
        yield engine.local_queue_status(
            LocalQueueKey(f"{metadata['namespace']}/{metadata['name']}")
        )


def main(every: int) -> None:
    """Print the digests of every so manieth scenario of each file."""
    for path in sorted(FOLDER.glob("*.json.gz")):
        for at, recorded in enumerate(load(path)):
            if at % every == 0:
                print(path.name, at, digest(recorded["scenario"]))


if __name__ == "__main__":
    main(int(sys.argv[1]))
