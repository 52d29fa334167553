"""What is kept of nodes and pods."""

from typing import Any

import pytest

from sluice.api import names
from sluice.controllers.topology_records import cached_node, cached_pod

TEMPLATE = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}


def node(version: str = "1", **fields: Any) -> dict[str, Any]:
    labels = {names.HOSTNAME_LABEL: "host-1", "x": "y"}
    return {
        "metadata": {"name": "n1", "labels": labels, "resourceVersion": version},
        "status": {"allocatable": {"cpu": "4"}, "conditions": [ready("True")]},
        **fields,
    }


def ready(status: str) -> dict[str, str]:
    return {"type": "Ready", "status": status, "lastTransitionTime": "1970-01-01T00:00:07Z"}


def pod(**fields: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "ns", "name": "p", "uid": "u", "resourceVersion": "4"},
        "spec": {**TEMPLATE, "nodeName": "n1"},
        "status": {"phase": "Running"},
        **fields,
    }


def test_a_heartbeat_changes_nothing() -> None:
    beat = node("2")
    beat["status"]["conditions"][0]["lastHeartbeatTime"] = "2024-01-01T00:00:00Z"
    assert cached_node(node()) == cached_node(beat)


def test_a_node() -> None:
    found = cached_node(node())
    assert (found.hostname, found.is_reporting, found.ready_changed_ms) == ("host-1", True, 7000)
    assert found.record.is_ready
    unready = cached_node(node(status={"conditions": [ready("Unknown")]}))
    assert unready.is_reporting
    assert not unready.record.is_ready
    silent = cached_node({"metadata": {"name": "n1"}})
    assert (silent.hostname, silent.is_reporting) == ("", False)


def test_a_pod_outside_topologies_is_charged_to_its_node() -> None:
    found = cached_pod(pod())
    assert found is not None
    assert found.queued is None
    assert found.record is not None
    assert (found.record.node, found.record.template.containers[0].name) == ("n1", "c")


def test_pods_that_take_the_same_share_one_template_wherever_they_may_run() -> None:
    spread = pod(spec={**TEMPLATE, "nodeName": "n2", "nodeSelector": {"a": "b"}, "tolerations": []})
    one, other = cached_pod(pod()), cached_pod(spread)
    assert one is not None
    assert other is not None
    assert one.record is not None
    assert other.record is not None
    assert one.record.template is other.record.template


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"spec": TEMPLATE}, id="on no node"),
        pytest.param({"status": {"phase": "Succeeded"}}, id="ended"),
        pytest.param(
            {
                "metadata": {
                    "namespace": "ns",
                    "name": "p",
                    "annotations": {names.PREFERRED_TOPOLOGY: "rack"},
                }
            },
            id="its Workload is charged",
        ),
    ],
)
def test_pods_whose_place_matters_to_nobody_are_not_kept(fields: dict[str, Any]) -> None:
    assert cached_pod(pod(**fields)) is None


def test_a_pod_of_a_workload_is_kept_before_it_has_a_node() -> None:
    metadata = {
        "namespace": "ns",
        "name": "p",
        "labels": {names.POD_SET_LABEL: "main"},
        "annotations": {names.WORKLOAD_ANNOTATION: "wl", names.UNCONSTRAINED_TOPOLOGY: "true"},
    }
    found = cached_pod(pod(metadata=metadata, spec=TEMPLATE, status={}))
    assert found is not None
    assert found.record is None
    assert found.queued is not None
    assert found.queued.workload_key == "ns/wl"
