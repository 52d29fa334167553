"""Which Pods a Job wants: the pure rules."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.local.standins.conftest import job

from sluice.local.standins import jobpods


@pytest.mark.parametrize(
    ("spec", "succeeded", "active", "wanted"),
    [
        ({"parallelism": 2, "completions": 5}, 0, 0, 2),
        ({"parallelism": 2, "completions": 5}, 4, 0, 1),
        ({"parallelism": 2, "completions": 5}, 5, 1, 0),
        ({"parallelism": 0, "completions": 5}, 0, 3, 0),
        ({"parallelism": 3, "completions": None}, 0, 1, 3),
        ({"parallelism": 3, "completions": None}, 1, 2, 2),
    ],
)
def test_wanted_active(spec: dict[str, Any], succeeded: int, active: int, wanted: int) -> None:
    assert jobpods.wanted_active(job(**spec), succeeded, active) == wanted


@given(st.sets(st.integers(0, 60)))
def test_indexes_read_as_they_are_shown(indexes: set[int]) -> None:
    assert jobpods.read_indexes(jobpods.show_indexes(indexes)) == indexes


def test_ranges_are_folded() -> None:
    assert jobpods.show_indexes({5, 0, 1, 2, 7, 8}) == "0-2,5,7-8"


@given(st.sets(st.integers(0, 9)), st.integers(0, 10))
def test_free_indexes_are_the_lowest(taken: set[int], limit: int) -> None:
    found = jobpods.free_indexes(job(completions=10), taken, limit)
    assert found == [index for index in range(10) if index not in taken][:limit]


def test_the_least_ready_pods_go_first() -> None:
    def pod(name: str, *, node: str = "", ready: bool = False) -> dict[str, Any]:
        conditions = [{"type": "Ready", "status": "True"}] if ready else []
        return {"metadata": {"name": name}, "spec": {"nodeName": node},
                "status": {"conditions": conditions}}  # fmt: skip

    pods = [pod("a", node="n", ready=True), pod("b"), pod("c", node="n")]
    assert [item["metadata"]["name"] for item in jobpods.surplus(pods, 1)] == ["b", "c"]


def test_long_names_leave_room_for_what_is_generated() -> None:
    made = {**job(), "metadata": {"name": "x" * 63, "namespace": "ns", "uid": "u"}}
    for index in (None, 12345):
        prefix = jobpods.new_pod(made, index)["metadata"]["generateName"]
        assert len(prefix) + 5 <= 63
