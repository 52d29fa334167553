"""No CEL rule of the CRDs is without an object that it refuses and one that it takes."""

from tests.support import crd_rules_placement, crd_rules_queues, crd_rules_workload
from tests.support.crd_rules import RuleKey, all_rules

CASES = (*crd_rules_queues.CASES, *crd_rules_workload.CASES, *crd_rules_placement.CASES)


def rules_of(attribute: str) -> set[RuleKey]:
    """Return the rules that have a row with objects of the given side."""
    return {
        (case.kind, version, *case.rule)
        for case in CASES
        for version in case.versions
        if getattr(case, attribute)
    }


def test_every_rule_has_an_object_that_it_refuses() -> None:
    assert rules_of("refused") == all_rules()


def test_every_rule_has_an_object_that_it_takes() -> None:
    assert rules_of("taken") == all_rules()
