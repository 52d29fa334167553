"""A seeded random history on a real engine, and a digest of every command it gave.

Run in another process under another hash seed to see that decisions don't depend on it::

    PYTHONHASHSEED=1 python -m tests.support.history 7
"""

import hashlib
import random
import sys

from tests.support import builders
from tests.support.harness import Harness, queues

from sluice.api.conditions import ConditionType
from sluice.api.records import Record
from sluice.engine.options import EngineOptions, FairSharing

STEPS = 60
POLICIES = ("LowerPriority", "LowerOrNewerEqualPriority")


def digest(seed: int) -> str:
    """Return a digest of the commands of one history."""
    dice = random.Random(seed)
    sharing = FairSharing() if seed % 2 else None
    harness = Harness(*world(dice), options=EngineOptions(wake_up_batch_ms=0, fair_sharing=sharing))
    harness.victims_stop = False
    seen = hashlib.sha256()
    for step in range(STEPS):
        for at in range(dice.randrange(4)):
            harness.observe(workload(dice, f"w{step:03}-{at}"))
        for record in list(harness.workloads.values()):
            if record.is_true(ConditionType.EVICTED) and record.admission is not None:
                harness.stopped(record.name)
            elif record.admission is not None and dice.random() < 0.15:
                harness.finish(record.name)
        if dice.random() < 0.1:
            harness.observe(queue(dice, f"q{dice.randrange(8)}"))
        seen.update(repr(harness.cycle()).encode())
    return seen.hexdigest()


def world(dice: random.Random) -> list[Record]:
    """Return the configuration of a history."""
    return [
        builders.flavor("f1"),
        builders.cohort("root", cpu="2"),
        *(builders.cohort(f"c{i}", "root") for i in range(3)),
        *queues(*(queue(dice, f"q{i}") for i in range(8))),
    ]


def queue(dice: random.Random, name: str) -> builders.ClusterQueue:
    """Return a ClusterQueue of random quota and policies."""
    quota = {"cpu": str(dice.randrange(5)), "gpu": str(dice.randrange(3))}
    return builders.cq(
        name,
        f"c{dice.randrange(3)}",
        flavors={"default": quota, "f1": quota},
        within=dice.choice(POLICIES),
        reclaim=dice.choice(("Any", "LowerPriority")),
        strict=dice.random() < 0.3,
        fair_weight=dice.choice((0.5, 1.0, 2.0)),
    )


def workload(dice: random.Random, name: str) -> builders.Workload:
    """Return a pending Workload of random size and priority."""
    requests = dice.choice(({"cpu": "1"}, {"cpu": "3"}, {"cpu": "1", "gpu": "1"}))
    return builders.wl(
        name,
        f"q{dice.randrange(8)}",
        builders.ps(count=dice.randrange(1, 3), **requests),
        priority=dice.randrange(4),
        created_s=dice.randrange(100),
    )


if __name__ == "__main__":
    print(digest(int(sys.argv[1])))
