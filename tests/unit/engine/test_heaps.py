"""The heaps stay as small as what they hold, however many pass through."""

from tests.support.builders import cq, wl
from tests.support.harness import Harness, queues

from sluice.api.names import ClusterQueueName


def test_nothing_is_kept_of_workloads_that_passed_through_a_busy_class() -> None:
    harness = Harness(*queues(cq("q", cpu="1")))
    harness.observe(*(wl(f"a{i:03}", "q", cpu="1", created_s=i) for i in range(100)))
    for at in range(300):
        harness.cycle()
        for name in harness.holding():
            harness.finish(name)
        harness.observe(wl(f"b{at:03}", "q", cpu="1", created_s=1000 + at))
    state = harness.engine._world.queues[ClusterQueueName("q")]
    (bucket,) = state.buckets.values()

    assert bucket.active.count + bucket.parked.count == 100
    assert len(bucket.untold) < 400
    assert len(bucket.active.items) < 400
    assert len(state.heads) < 100


def test_items_left_behind_are_cleaned_up() -> None:
    harness = Harness(*queues(cq("q", cpu="1", stop="Hold")))
    harness.observe(*(wl(f"w{i:03}", "q", cpu="1", created_s=i) for i in range(300)))
    for at in range(299, 0, -1):
        harness.finish(f"w{at:03}")
        harness.engine.verify()
    state = harness.engine._world.queues[ClusterQueueName("q")]
    (bucket,) = state.buckets.values()

    assert harness.pending("q") == ["w000"]
    assert len(bucket.active.items) < 70


def test_an_emptied_class_is_forgotten() -> None:
    harness = Harness(*queues(cq("q", cpu="1")))
    for at in range(20):
        harness.observe(wl(f"w{at}", "q", cpu=f"{at + 2}"))
        harness.cycle()
        harness.finish(f"w{at}")
    harness.observe(cq("q", cpu="2"))
    state = harness.engine._world.queues[ClusterQueueName("q")]

    assert state.buckets == {}
    assert state.waiting == {}
