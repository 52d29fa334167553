"""Which pods may start, and where: ranks, offsets, sub-groups, and filling up without ranks."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.api import names
from sluice.api.topology_assignment import Domain
from sluice.jobs.ungating import Placement, QueuedPod, queued_pod, to_ungate

INDEX = "batch.kubernetes.io/job-completion-index"
GROUP = "jobset.sigs.k8s.io/job-index"
RACK = "example.com/rack"
LEVELS = (RACK, names.HOSTNAME_LABEL)


def placement(*domains: tuple[str, int], **fields: Any) -> Placement:
    given: dict[str, Any] = {"levels": (names.HOSTNAME_LABEL,), "index_label": INDEX, **fields}
    return Placement(
        pod_set="main",
        domains=tuple(Domain((host,), count) for host, count in domains),
        **{"count": sum(count for _, count in domains), **given},
    )


def pod(name: str, index: int | None = None, *, on: str = "", **fields: Any) -> QueuedPod:
    """Return a gated pod, or with ``on`` one that was sent to a host."""
    numbers = () if index is None else ((INDEX, index),)
    return QueuedPod(
        namespace="ns",
        name=name,
        uid=f"uid-{name}",
        workload="wl",
        pod_set="main",
        gates=() if on else (names.TOPOLOGY_GATE,),
        node_selector=((names.HOSTNAME_LABEL, on),) if on else (),
        **{"numbers": numbers, **fields},
    )


def hosts(place: Placement, *pods: QueuedPod, unhealthy: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the host that each pod is sent to."""
    found = to_ungate(place, pods, unhealthy)
    assert all(ungate.pod.is_gated for ungate in found)
    return {ungate.pod.name: dict(ungate.node_selector)[names.HOSTNAME_LABEL] for ungate in found}


def test_ranks_say_the_domain() -> None:
    place = placement(("n1", 2), ("n2", 1))
    assert hosts(place, pod("a", 2), pod("b", 0), pod("c", 1)) == {"a": "n2", "b": "n1", "c": "n1"}


def test_ranks_hold_while_not_all_pods_are_there() -> None:
    place = placement(("n1", 2), ("n2", 2))
    assert hosts(place, pod("a", 3), pod("b", 1, on="n1")) == {"a": "n2"}


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param((pod("a", 2), pod("b")), id="one has none"),
        pytest.param((pod("a", 2), pod("b", 2)), id="twice the same"),
        pytest.param((pod("a", 2), pod("b", 3)), id="beyond the count"),
        pytest.param((pod("a", 2), pod("b"), pod("c", 0, on="n2")), id="runs elsewhere"),
    ],
)
def test_ranks_without_sense_fill_the_domains_in_order(pods: tuple[QueuedPod, ...]) -> None:
    assert hosts(placement(("n1", 2), ("n2", 1)), *pods) == {"a": "n1", "b": "n1"}


def test_what_runs_takes_its_domain() -> None:
    place = placement(("n1", 2), ("n2", 2), index_label="")
    pods = (pod("a", on="n1"), pod("b"), pod("c"), pod("d"), pod("e"))
    assert hosts(place, *pods) == {"b": "n1", "c": "n2", "d": "n2"}


def test_a_successor_gets_its_rank_while_its_predecessor_ends() -> None:
    place = placement(("n1", 1), ("n2", 1))
    old = pod("old", 0, on="n1", is_terminating=True)
    assert hosts(place, old, pod("new", 0), pod("other", 1)) == {"new": "n1", "other": "n2"}


def test_without_ranks_an_ending_pod_keeps_its_place() -> None:
    place = placement(("n1", 1), ("n2", 1), index_label="")
    assert hosts(place, pod("old", on="n1", is_terminating=True), pod("new")) == {"new": "n2"}


def test_a_gated_pod_that_is_being_deleted_is_left_alone() -> None:
    place = placement(("n1", 2), index_label="")
    assert hosts(place, pod("a", is_terminating=True), pod("b")) == {"b": "n1"}
    assert hosts(place, pod("a", is_terminating=True)) == {}


def test_whoever_belongs_to_an_unhealthy_node_stays_gated() -> None:
    place = placement(("n1", 1), ("n2", 1))
    assert hosts(place, pod("a", 0), pod("b", 1), unhealthy=("n1",)) == {"b": "n2"}


def test_only_hosts_are_unhealthy() -> None:
    place = Placement(
        pod_set="main", levels=(RACK,), domains=(Domain(("r1",), 1),), count=1, index_label=INDEX
    )
    (ungate,) = to_ungate(place, (pod("a", 0),), ("r1",))
    assert ungate.node_selector == ((RACK, "r1"),)


def test_every_level_is_selected() -> None:
    place = Placement(pod_set="main", levels=LEVELS, domains=(Domain(("r1", "n1"), 1),), count=1)
    (ungate,) = to_ungate(place, (pod("a"),), ())
    assert ungate.node_selector == ((RACK, "r1"), (names.HOSTNAME_LABEL, "n1"))


def test_the_larger_of_two_pod_sets_begins_where_the_smaller_ends() -> None:
    place = placement(("n1", 2), ("n2", 1), offset=1)
    assert hosts(place, pod("a", 1), pod("b", 3)) == {"a": "n1", "b": "n2"}
    # Rank 0 is of the other pod set: no sense, so they fill up.
    assert hosts(place, pod("a", 3), pod("b", 0)) == {"a": "n1", "b": "n1"}


def test_the_offset_annotation_of_the_first_pod_is_added() -> None:
    place = placement(("n1", 1), ("n2", 1), offset=1)
    assert hosts(place, pod("a", 4, offset=2), pod("b", 3)) == {"a": "n2", "b": "n1"}


def test_sub_groups_follow_each_other() -> None:
    place = placement(("n1", 2), ("n2", 2), sub_group_label=GROUP, sub_group_count=2)
    pods = [
        pod(f"{group}-{index}", numbers=((INDEX, index), (GROUP, group)))
        for group in (1, 0)
        for index in (0, 1)
    ]
    assert hosts(place, *pods) == {"0-0": "n1", "0-1": "n1", "1-0": "n2", "1-1": "n2"}
    beyond = pod("x", numbers=((INDEX, 2), (GROUP, 0)))
    assert hosts(place, beyond) == {"x": "n1"}  # by filling up


@given(
    counts=st.lists(st.integers(1, 3), min_size=1, max_size=5),
    indexed=st.booleans(),
    data=st.data(),
)
def test_any_order_of_arrival_fills_each_domain_exactly(
    counts: list[int], indexed: bool, data: st.DataObject
) -> None:
    place = placement(*((f"n{i}", count) for i, count in enumerate(counts)))
    total = sum(counts)
    order = data.draw(st.permutations(range(total)))
    present: list[QueuedPod] = []
    for number in order:
        present.append(pod(f"p{number}", number if indexed else None))
        if data.draw(st.booleans()):
            present = advance(place, present)
    present = advance(place, present)
    assert not any(p.is_gated for p in present)
    sent = [dict(p.node_selector)[names.HOSTNAME_LABEL] for p in present]
    assert Counter(sent) == {domain.values[0]: domain.count for domain in place.domains}
    if indexed:
        ranks = {dict(p.numbers)[INDEX]: host for p, host in zip(present, sent, strict=True)}
        assert [ranks[rank] for rank in range(total)] == sorted(sent)


def advance(place: Placement, pods: list[QueuedPod]) -> list[QueuedPod]:
    """Return the pods after what may start has been started."""
    sent = hosts(place, *pods)
    return [pod(p.name, numbers=p.numbers, on=sent[p.name]) if p.name in sent else p for p in pods]


def raw_pod(**fields: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "namespace": "ns",
            "name": "p",
            "uid": "u",
            "resourceVersion": "7",
            "labels": {names.POD_SET_LABEL: "main", INDEX: "3", "x": "-1", "y": "v1", "z": "٣"},
            "annotations": {names.WORKLOAD_ANNOTATION: "wl", names.POD_INDEX_OFFSET: "1"},
        },
        "spec": {
            "schedulingGates": [{"name": "other"}, {"name": names.TOPOLOGY_GATE}],
            "nodeSelector": {"b": "2", "a": "1"},
        },
        **fields,
    }


def test_what_is_kept_of_a_pod() -> None:
    assert queued_pod(raw_pod()) == QueuedPod(
        namespace="ns",
        name="p",
        uid="u",
        workload="wl",
        pod_set="main",
        gates=("other", names.TOPOLOGY_GATE),
        node_selector=(("a", "1"), ("b", "2")),
        numbers=((INDEX, 3),),
        offset=1,
    )
    running = queued_pod(raw_pod(status={"phase": "Running"}))
    assert running is not None
    assert not running.is_pending
    assert running.workload_key == "ns/wl"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_ended_pods_are_nothing(phase: str) -> None:
    assert queued_pod(raw_pod(status={"phase": phase})) is None


def test_pods_of_others_are_nothing() -> None:
    stranger = raw_pod()
    stranger["metadata"]["annotations"] = {}
    assert queued_pod(stranger) is None
