"""Rows of `crd_rules` for topology assignments of v1beta2 (docs/spec/api.md 1.4)."""

from typing import Any

from tests.support.crd_rules import NEW, RuleCase
from tests.support.crd_rules_workload import TOPOLOGY, workload

Object = dict[str, Any]
ROOTS = {"individual": {"roots": ["a", "b"]}}
ONE_OF = "exactly one of the fields in [universal individual] must be set"


def placed(**change: Any) -> Object:
    """Return a status whose only slice has two domains, with some of its fields changed."""
    piece = {
        "domainCount": 2,
        "valuesPerLevel": [{"universal": "r"}, ROOTS],
        "podCounts": {"universal": 1},
        **change,
    }
    topology = {"levels": ["rack", "host"], "slices": [piece]}
    assignment = {"name": "main", "topologyAssignment": topology}
    return {"status": {"admission": {"clusterQueue": "cq", "podSetAssignments": [assignment]}}}


def row(
    path: str, message: str, refused: tuple[Object, ...], taken: tuple[Object, ...]
) -> RuleCase:
    """Return a row about a place below the topology assignment."""
    return RuleCase(
        kind="Workload",
        rule=(f"{TOPOLOGY}{path}", message),
        base=workload(),
        refused=refused,
        taken=taken,
        on="status",
        versions=NEW,
    )


CASES = (
    row(
        "",
        "every slice must have one entry of valuesPerLevel per level",
        (placed(valuesPerLevel=[ROOTS]), placed(valuesPerLevel=[ROOTS, ROOTS, ROOTS])),
        (placed(), placed(valuesPerLevel=[ROOTS, ROOTS])),
    ),
    row(
        ".slices[]",
        "podCounts.individual must have one entry per domain",
        (placed(podCounts={"individual": [1]}), placed(podCounts={"individual": [1, 2, 3]})),
        (placed(podCounts={"individual": [1, 2]}),),
    ),
    row(
        ".slices[]",
        "individual.roots must have one entry per domain in every level",
        (
            placed(valuesPerLevel=[{"individual": {"roots": ["a"]}}, ROOTS]),
            placed(valuesPerLevel=[ROOTS, {"individual": {"roots": ["a", "b", "c"]}}]),
        ),
        (placed(valuesPerLevel=[ROOTS, {"universal": "u"}]),),
    ),
    row(
        ".slices[].podCounts",
        ONE_OF,
        (placed(podCounts={}), placed(podCounts={"universal": 1, "individual": [1, 1]})),
        (placed(podCounts={"universal": 7}),),
    ),
    row(
        ".slices[].valuesPerLevel[]",
        ONE_OF,
        (
            placed(valuesPerLevel=[{}, ROOTS]),
            placed(valuesPerLevel=[{**ROOTS, "universal": "u"}, ROOTS]),
        ),
        (placed(valuesPerLevel=[ROOTS, ROOTS]),),
    ),
)
