"""What is read of a Workload before its pods are ungated."""

from typing import Any

import pytest

from sluice.api import names, topology_assignment
from sluice.api.topology_assignment import Domain
from sluice.jobs.ungating import Placement, placements

HOSTS = (names.HOSTNAME_LABEL,)


def assignment(*counts: int) -> dict[str, Any]:
    domains = [Domain((f"n{i}",), count) for i, count in enumerate(counts)]
    return topology_assignment.encode(HOSTS, domains)


def workload(*pod_sets: tuple[str, int, dict[str, Any]]) -> dict[str, Any]:
    return {
        "spec": {
            "podSets": [
                {"name": name, "count": count, "topologyRequest": request}
                for name, count, request in pod_sets
            ]
        },
        "status": {
            "admission": {
                "podSetAssignments": [
                    {"name": name, "count": count, "topologyAssignment": assignment(count)}
                    for name, count, _ in pod_sets
                ]
            }
        },
    }


def test_a_job() -> None:
    raw = workload(("main", 2, {"podIndexLabel": "index", "unconstrained": True}))
    assert placements(raw) == (
        Placement(
            pod_set="main", levels=HOSTS, domains=(Domain(("n0",), 2),), count=2,
            index_label="index",
        ),
    )  # fmt: skip


def test_sub_groups() -> None:
    request = {"podIndexLabel": "i", "subGroupIndexLabel": "g", "subGroupCount": 3}
    (place,) = placements(workload(("main", 6, request)))
    assert (place.sub_group_label, place.sub_group_count) == ("g", 3)


@pytest.mark.parametrize(
    ("counts", "offsets"),
    [((1, 4), (0, 1)), ((4, 1), (1, 0)), ((1, 1), (0, 1))],
)
def test_in_a_group_the_smaller_leads(counts: tuple[int, int], offsets: tuple[int, int]) -> None:
    group = {"required": "rack", "podSetGroupName": "g"}
    raw = workload(("a", counts[0], group), ("b", counts[1], group))
    assert tuple(place.offset for place in placements(raw)) == offsets


def test_pod_sets_apart_have_no_offset() -> None:
    raw = workload(("a", 1, {}), ("b", 2, {"podSetGroupName": "g"}))
    assert [place.offset for place in placements(raw)] == [0, 0]


def test_the_admitted_count_counts() -> None:
    raw = workload(("main", 2, {}))
    raw["spec"]["podSets"][0]["count"] = 5
    assert placements(raw)[0].count == 2
    del raw["status"]["admission"]["podSetAssignments"][0]["count"]
    assert placements(raw)[0].count == 5


def test_without_an_assignment_there_is_none() -> None:
    raw = workload(("main", 2, {}))
    del raw["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"]
    assert placements(raw) == ()
    assert placements({"spec": {}}) == ()
