"""Facts that are older than what the engine has decided, though newer than what it wrote before.

Somebody else's write may come between a decision and its own write: a queue that is resumed has
the conditions of its Workloads written while the engine admits them already.
"""

from tests.support.builders import condition, cq, key, wl
from tests.support.harness import Harness, queues

from sluice.api.conditions import ConditionType
from sluice.engine.commands import Command, Evict, ReserveQuota
from sluice.engine.events import CommandApplied


def decide(harness: Harness) -> tuple[Command, ...]:
    """Run a cycle whose commands are not written yet."""
    commands = harness.engine.cycle(harness.now_ms)
    harness.engine.verify()
    return commands


def written_before(harness: Harness, name: str) -> None:
    """Let a Workload be written by somebody else, without a reservation."""
    harness.change(name, {ConditionType.REQUEUED: condition(True, "ClusterQueueRestarted")})


def parked_once(*names: str) -> Harness:
    """Return a queue whose Workloads were told that they wait, and that has quota for one now."""
    harness = Harness(*queues(cq("q", cpu="0"), *(wl(n, "q", cpu="1") for n in names)))
    harness.run()
    harness.observe(cq("q", cpu="1"))
    return harness


def test_a_write_between_decision_and_reservation_does_not_free_its_quota() -> None:
    harness = parked_once("a", "b")
    commands = decide(harness)
    first = next(c for c in commands if isinstance(c, ReserveQuota)).workload
    for name in ("a", "b"):
        written_before(harness, name)

    again = decide(harness)

    assert not [c for c in again if isinstance(c, ReserveQuota)], "one cpu, and it is taken"
    harness.apply(commands)
    harness.apply(again)
    harness.run()
    assert harness.holding() == {first.partition("/")[2]}
    assert sum(harness.usage("q").values()) == 1000


def test_a_late_answer_to_an_earlier_note_does_not_free_quota_either() -> None:
    harness = Harness(*queues(cq("q", cpu="0"), wl("a", "q", cpu="1")))
    notes = decide(harness)
    harness.observe(cq("q", cpu="1"))
    commands = decide(harness)
    harness.engine.observe(
        CommandApplied(at_ms=harness.now_ms, command=notes[0], resource_version="2")
    )
    harness.observe(wl("b", "q", cpu="1", created_s=5))
    written_before(harness, "a")

    assert not [c for c in decide(harness) if isinstance(c, ReserveQuota)]
    harness.apply(commands)
    harness.run()
    assert harness.holding() == {"a"}


def test_a_reservation_that_was_undone_before_its_answer_came_frees_its_quota() -> None:
    """As when a watch starts anew: it shows the newest state, and skips the reservation."""
    harness = Harness(*queues(cq("q", cpu="1"), wl("a", "q", cpu="1")))
    commands = decide(harness)
    written_before(harness, "a")
    written_before(harness, "a")
    newest = int(harness.workloads[key("a")].resource_version)
    harness.observe(wl("b", "q", cpu="1", priority=1))
    assert not [c for c in decide(harness) if isinstance(c, ReserveQuota)]

    harness.engine.observe(
        CommandApplied(at_ms=harness.now_ms, command=commands[0], resource_version=str(newest - 1))
    )

    found = [c.workload for c in decide(harness) if isinstance(c, ReserveQuota)]
    assert found == [key("b")]


def test_a_victims_own_news_do_not_undo_its_eviction() -> None:
    harness = Harness(*queues(cq("q", cpu="1", within="LowerPriority")))
    harness.observe(wl("low", "q", cpu="1"))
    harness.run()
    harness.observe(wl("high", "q", cpu="1", priority=5))
    harness.victims_stop = False
    commands = decide(harness)
    assert [c.workload for c in commands if isinstance(c, Evict)] == [key("low")]

    harness.change("low", {ConditionType.PODS_READY: condition(True, "Started")})
    harness.observe(wl("higher", "q", cpu="1", priority=9))

    again = [c for _ in range(3) for c in decide(harness) if isinstance(c, Evict)]
    assert not again, "it is on its way out"
