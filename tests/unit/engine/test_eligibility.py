"""Taints, node selectors and affinity against a flavor (docs/spec/algorithm.md 3.3.4 c)."""

from typing import Any

import pytest
from tests.support.builders import flavor

from sluice.api import wire
from sluice.engine.eligibility import refusal

AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"
SPOT = ("kind", "spot", "NoSchedule")


def pod(**spec: Any) -> Any:
    return wire.template({"containers": [], **spec})


def affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    selector = {"nodeSelectorTerms": [{"matchExpressions": list(t)} for t in terms]}
    return {"affinity": {"nodeAffinity": {AFFINITY: selector}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("taint", "toleration", "fits"),
    [
        (SPOT, None, False),
        (("kind", "spot", "PreferNoSchedule"), None, True),
        (("kind", "spot", "NoExecute"), None, False),
        (SPOT, {"key": "kind", "value": "spot", "effect": "NoSchedule"}, True),
        (SPOT, {"key": "kind", "value": "spot", "effect": "NoExecute"}, False),
        (SPOT, {"key": "kind", "operator": "Exists"}, True),
        (SPOT, {"operator": "Exists"}, True),
        (SPOT, {"key": "kind", "value": "other"}, False),
        (("n", "5", "NoSchedule"), {"key": "n", "operator": "Lt", "value": "6"}, True),
        (("n", "5", "NoSchedule"), {"key": "n", "operator": "Gt", "value": "6"}, False),
        (("n", "x", "NoSchedule"), {"key": "n", "operator": "Gt", "value": "6"}, False),
        (SPOT, {"key": "kind", "operator": "Near", "value": "spot"}, False),
    ],
)
def test_taints(taint: Any, toleration: Any, fits: bool) -> None:
    template = pod(tolerations=[toleration] if toleration else [])
    found = refusal(template, flavor(taints=[taint]))

    assert (found is None) is fits
    assert fits or found == f"untolerated taint {taint[0]}={taint[1]}:{taint[2]} in flavor default"


def test_a_flavor_tolerates_its_own_taints() -> None:
    (tolerations,) = ((wire.template({"tolerations": [{"operator": "Exists"}]})).tolerations,)

    assert refusal(pod(), flavor(taints=[SPOT], tolerations=tolerations)) is None


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({"nodeSelector": {"tier": "spot"}}, True),
        ({"nodeSelector": {"tier": "reserved"}}, False),
        ({"nodeSelector": {"unrelated": "x"}}, True),
        (affinity([expression("tier", "In", "spot", "x")]), True),
        (affinity([expression("tier", "NotIn", "spot")]), False),
        (affinity([expression("tier", "DoesNotExist")]), False),
        (affinity([expression("tier", "Exists")]), True),
        (affinity([expression("rank", "Gt", "3")]), True),
        (affinity([expression("rank", "Lt", "3")]), False),
        (affinity([expression("rank", "Gt", "x")]), False),
        (affinity([expression("tier", "Near", "spot")]), False),
        (affinity([expression("tier", "In", "x")], [expression("rank", "Exists")]), True),
        (affinity([expression("tier", "In", "x")], [expression("other", "Exists")]), True),
        (affinity([expression("tier", "In", "x"), expression("other", "Exists")]), False),
    ],
)
def test_only_the_labels_of_the_flavor_count(spec: dict[str, Any], fits: bool) -> None:
    found = refusal(pod(**spec), flavor(labels={"tier": "spot", "rank": "5"}))

    assert (found is None) is fits
    assert fits or found == "flavor default doesn't match node affinity"
