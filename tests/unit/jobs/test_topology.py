"""The topology request of a pod set, from the annotations of its template."""

from typing import Any

import pytest

from sluice.api import names
from sluice.jobs.topology import parse_bool, topology_request


@pytest.mark.parametrize(
    ("annotations", "request_json"),
    [
        pytest.param({}, None, id="nothing asked"),
        pytest.param({names.REQUIRED_TOPOLOGY: "rack"}, {"required": "rack"}, id="required"),
        pytest.param({names.PREFERRED_TOPOLOGY: "rack"}, {"preferred": "rack"}, id="preferred"),
        pytest.param(
            {names.REQUIRED_TOPOLOGY: "rack", names.PREFERRED_TOPOLOGY: "zone"},
            {"required": "rack"},
            id="required before preferred",
        ),
        pytest.param(
            {names.UNCONSTRAINED_TOPOLOGY: "true"}, {"unconstrained": True}, id="unconstrained"
        ),
        pytest.param(
            {names.UNCONSTRAINED_TOPOLOGY: "false"}, {"unconstrained": False}, id="and not"
        ),
        pytest.param({names.UNCONSTRAINED_TOPOLOGY: "maybe"}, None, id="unreadable"),
        pytest.param(
            {names.REQUIRED_TOPOLOGY: "rack", names.POD_SET_GROUP: "g"},
            {"required": "rack", "podSetGroupName": "g"},
            id="a group needs required or preferred",
        ),
        pytest.param(
            {names.UNCONSTRAINED_TOPOLOGY: "true", names.POD_SET_GROUP: "g"},
            {"unconstrained": True},
            id="a group without",
        ),
        pytest.param(
            {names.SLICE_REQUIRED_TOPOLOGY: "host", names.SLICE_SIZE: "4"},
            {"podSetSliceRequiredTopology": "host", "podSetSliceSize": 4},
            id="slices alone",
        ),
        pytest.param({names.SLICE_REQUIRED_TOPOLOGY: "host"}, None, id="slices without a size"),
        pytest.param(
            {names.SLICE_CONSTRAINTS: '[{"topology": "rack", "size": 8}]'},
            {"podsetSliceRequiredTopologyConstraints": [{"topology": "rack", "size": 8}]},
            id="layers",
        ),
        pytest.param({names.SLICE_CONSTRAINTS: "[{"}, None, id="layers that are no JSON"),
    ],
)
def test_request(annotations: dict[str, str], request_json: dict[str, Any] | None) -> None:
    assert topology_request({"metadata": {"annotations": annotations}}) == request_json


def test_indexes_make_a_request_of_their_own() -> None:
    assert topology_request(
        {}, pod_index_label="index", sub_group_index_label="group", sub_group_count=2
    ) == {"podIndexLabel": "index", "subGroupIndexLabel": "group", "subGroupCount": 2}


@pytest.mark.parametrize(
    ("text", "value"), [("T", True), ("0", False), ("yes", None), ("", None), ("TRUE", True)]
)
def test_parse_bool(text: str, value: bool | None) -> None:
    assert parse_bool(text) is value
