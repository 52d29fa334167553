"""What tests wait for: an object that says nothing yet is not an error."""

from typing import Any

import pytest
from tests.support.waiting import has_condition, has_phase


@pytest.mark.parametrize("item", [{}, {"status": None}, {"status": {"conditions": None}}])
def test_an_object_that_says_nothing_has_no_condition(item: dict[str, Any]) -> None:
    assert not has_condition("Ready")(item)
    assert not has_phase("Running")(item)


def test_a_condition_is_met_by_type_status_and_reason() -> None:
    item = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Why"}]}}
    assert has_condition("Ready", "False")(item)
    assert has_condition("Ready", "False", "Why")(item)
    assert not has_condition("Ready", "False", "Other")(item)
    assert not has_condition("Ready")(item)
