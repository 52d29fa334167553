"""What the webhook refuses of a CreditPolicy, with the field (docs/spec/credits.md 4)."""

from typing import Any

import pytest

from sluice.api.errors import InvalidObject
from sluice.api.validate import credit_policy
from sluice.api.validate.gates import Gates

GATES: Gates = {}


def policy(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"cohortName": "all", **spec}}


def paths(**spec: Any) -> list[str]:
    return [error.path for error in credit_policy.on_create(policy(**spec), GATES)]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        pytest.param({"cohortName": ""}, "spec.cohortName", id="no cohort"),
        pytest.param({"settlementPeriod": "9s"}, "spec.settlementPeriod", id="short"),
        pytest.param(
            {"settlementPeriod": "2h", "horizon": "3h"}, "spec.settlementPeriod", id="long"
        ),
        pytest.param({"settlementPeriod": "15500ms"}, "spec.settlementPeriod", id="half seconds"),
        pytest.param({"settlementPeriod": "often"}, "spec.settlementPeriod", id="no duration"),
        pytest.param({"horizon": "59s"}, "spec.horizon", id="horizon below period"),
        pytest.param({"horizon": "721h"}, "spec.horizon", id="far horizon"),
        pytest.param({"halfLife": "0s"}, "spec.halfLife", id="half life"),
        pytest.param({"minBalance": "1m"}, "spec.minBalance", id="min above 0"),
        pytest.param({"maxBalance": "-1m"}, "spec.maxBalance", id="max below 0"),
        pytest.param({"maxBalance": "much"}, "spec.maxBalance", id="no quantity"),
        pytest.param({"minBalance": "-2E"}, "spec.minBalance", id="beyond all bounds"),
        pytest.param({"initialBalance": 5, "maxBalance": 4}, "spec.initialBalance", id="above max"),
        pytest.param({"initialBalance": -5, "minBalance": -4}, "spec.initialBalance", id="below"),
        pytest.param(
            {"billingWeights": [{"resource": "cpu", "weight": "-1m"}]},
            "spec.billingWeights[0].weight",
            id="negative weight",
        ),
        pytest.param(
            {"billingWeights": [{"resource": "cpu", "weight": "1P"}]},
            "spec.billingWeights[0].weight",
            id="enormous weight",
        ),
        pytest.param(
            {"billingWeights": [{"resource": "cpu", "weight": "x"}]},
            "spec.billingWeights[0].weight",
            id="weight without number",
        ),
        pytest.param(
            {"billingWeights": [{"resource": "cpu"}]}, "spec.billingWeights[0].weight", id="none"
        ),
        pytest.param(
            {"billingWeights": [{"weight": 1}]}, "spec.billingWeights[0].resource", id="of what"
        ),
        pytest.param(
            {"billingWeights": [{"resource": "cpu", "weight": 1}] * 2},
            "spec.billingWeights[1]",
            id="twice",
        ),
    ],
)
def test_impossible(spec: dict[str, Any], path: str) -> None:
    assert paths(**spec) == [path]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="defaults"),
        pytest.param({"settlementPeriod": "10s", "horizon": "10s"}, id="shortest"),
        pytest.param({"settlementPeriod": "1h"}, id="longest"),
        pytest.param({"minBalance": "-0", "maxBalance": 0}, id="zeros"),
        pytest.param({"initialBalance": "-3", "maxBalance": 1}, id="start in debt"),
        pytest.param(
            {
                "billingWeights": [
                    {"resource": "cpu", "weight": 0},
                    {"resource": "cpu", "flavor": "spot", "weight": "250m"},
                ]
            },
            id="a flavor apart",
        ),
    ],
)
def test_possible(spec: dict[str, Any]) -> None:
    assert paths(**spec) == []


def test_another_tree_needs_another_policy() -> None:
    old, new = policy(), policy(cohortName="other")
    assert [e.path for e in credit_policy.on_update(old, new, GATES)] == ["spec.cohortName"]
    assert credit_policy.on_update(old, policy(horizon="2h"), GATES) == []


def test_a_wrong_type_is_named() -> None:
    with pytest.raises(InvalidObject, match=r"spec\.horizon"):
        paths(horizon=5)
