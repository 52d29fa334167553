"""Label selectors take and leave labels as Kubernetes' do."""

from typing import Any

import pytest

from sluice.api.selectors import EVERYTHING, NOTHING, compile_selector


@pytest.mark.parametrize(
    ("raw", "labels", "is_taken"),
    [
        (None, {"a": "1"}, False),
        ({}, {}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {}, True),
        (
            {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]},
            {"a": "1"},
            False,
        ),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"a": ""}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {"a": ""}, False),
        (
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
            {"a": "2"},
            False,
        ),
        (
            {
                "matchLabels": {"a": "1"},
                "matchExpressions": [{"key": "b", "operator": "Exists"}],
            },
            {"a": "1"},
            False,
        ),
    ],
)
def test_selectors(raw: dict[str, Any] | None, labels: dict[str, str], is_taken: bool) -> None:
    assert compile_selector(raw).matches(labels) is is_taken


def test_the_two_extremes() -> None:
    assert EVERYTHING.matches({})
    assert not NOTHING.matches({"a": "1"})
