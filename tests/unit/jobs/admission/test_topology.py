"""docs/spec/api.md 2.3.6: topology annotations of a pod template, and the texts."""

import json
from typing import Any

import pytest

from sluice.jobs.admission.context import Options
from sluice.jobs.admission.topology import template_errors

KX = "kueue.x-k8s.io"
REQUIRED = f"{KX}/podset-required-topology"
PREFERRED = f"{KX}/podset-preferred-topology"
UNCONSTRAINED = f"{KX}/podset-unconstrained-topology"
SLICE = f"{KX}/podset-slice-required-topology"
SIZE = f"{KX}/podset-slice-size"
GROUP = f"{KX}/podset-group-name"
LAYERS = f"{KX}/podset-slice-required-topology-constraints"
LAYERS_FORM = 'must be a JSON array of {"topology": <node label>, "size": <integer>}'


def layers(*entries: tuple[str, Any]) -> dict[str, str]:
    return {LAYERS: json.dumps([{"topology": t, "size": s} for t, s in entries])}


def texts(annotations: dict[str, str], gates: dict[str, bool] | None = None) -> list[str]:
    options = Options(gates=gates or {})
    errors = template_errors("a", annotations, pods=8, options=options)
    return [str(error) for error in errors]


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, []),
        ({REQUIRED: "example.com/rack"}, []),
        ({PREFERRED: "rack"}, []),
        ({UNCONSTRAINED: "T"}, []),
        (
            {REQUIRED: "rack", PREFERRED: "block"},
            [
                "a: Invalid value: must not contain more than one topology annotation: "
                f"[{REQUIRED}, {PREFERRED}, {UNCONSTRAINED}]"
            ],
        ),
        (
            {UNCONSTRAINED: "yes"},
            [f'a[{UNCONSTRAINED}]: Invalid value: "yes": must be a boolean value'],
        ),
        ({SLICE: "rack", SIZE: "8"}, []),
        (
            {SLICE: "rack", SIZE: "9"},
            [f'a[{SIZE}]: Invalid value: "9": must not be greater than pod set count 8'],
        ),
        (
            {SLICE: "rack", SIZE: "two"},
            [f'a[{SIZE}]: Invalid value: "two": must be a numeric value'],
        ),
        (
            {SLICE: "rack", SIZE: "0"},
            [f'a[{SIZE}]: Invalid value: "0": must be greater than or equal to 1'],
        ),
        ({SLICE: "rack"}, [f"a[{SIZE}]: Required value: must be set together with {SLICE}"]),
        ({SIZE: "2"}, [f"a[{SIZE}]: Forbidden: may not be set without {SLICE}"]),
        ({GROUP: "g", REQUIRED: "rack"}, []),
        (
            {GROUP: "7", REQUIRED: "rack"},
            [f'a[{GROUP}]: Invalid value: "7": must not be a number'],
        ),
        (
            {GROUP: "g"},
            [f"a[{GROUP}]: Forbidden: may only be set with {REQUIRED} or {PREFERRED}"],
        ),
        (
            {GROUP: "g", REQUIRED: "rack", SLICE: "rack", SIZE: "2"},
            [
                f"a[{GROUP}]: Forbidden: may not be set together with {SIZE}",
                f"a[{GROUP}]: Forbidden: may not be set together with {SLICE}",
            ],
        ),
        (layers(("block", 8), ("rack", 4), ("host", 2)), []),
        (
            {**layers(("block", 8)), SLICE: "rack", SIZE: "2"},
            [
                f"a[{LAYERS}]: Forbidden: may not be set together with {SLICE}",
                f"a[{LAYERS}]: Forbidden: may not be set together with {SIZE}",
            ],
        ),
        ({LAYERS: "{}"}, [f'a[{LAYERS}]: Invalid value: "{{}}": {LAYERS_FORM}']),
        ({LAYERS: "nope"}, [f'a[{LAYERS}]: Invalid value: "nope": {LAYERS_FORM}']),
        ({LAYERS: "[1]"}, [f'a[{LAYERS}]: Invalid value: "[1]": {LAYERS_FORM}']),
        ({LAYERS: "[]"}, [f'a[{LAYERS}]: Invalid value: "[]": must have between 1 and 3 entries']),
        (
            layers(("block", 8), ("block", 4)),
            [f'a[{LAYERS}][1].topology: Duplicate value: "block"'],
        ),
        (
            layers(("block", 8), ("rack", 3)),
            [f"a[{LAYERS}][1].size: Invalid value: 3: must divide the size of the entry before, 8"],
        ),
        (
            layers(("block", 0)),
            [f"a[{LAYERS}][0].size: Invalid value: 0: must be greater than or equal to 1"],
        ),
        (
            layers(("block", 9)),
            [f"a[{LAYERS}][0].size: Invalid value: 9: must not be greater than pod set count 8"],
        ),
    ],
)
def test_annotations(annotations: dict[str, str], expected: list[str]) -> None:
    assert texts(annotations) == expected


@pytest.mark.parametrize("name", [REQUIRED, PREFERRED, SLICE])
def test_topologies_are_label_keys(name: str) -> None:
    text = next(t for t in texts({name: "a b", SIZE: "2"}) if name in t and "Invalid" in t)
    assert text.startswith(f'a[{name}]: Invalid value: "a b": name part must consist of')


def test_layers_need_their_gate() -> None:
    assert texts(layers(("block", 8)), {"TASMultiLayerTopology": False}) == [
        f"a[{LAYERS}]: Forbidden: needs the feature gate TASMultiLayerTopology"
    ]


def test_nothing_is_checked_without_topology_aware_scheduling() -> None:
    assert texts({REQUIRED: "a b", SIZE: "x"}, {"TopologyAwareScheduling": False}) == []
