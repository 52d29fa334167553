"""docs/spec/api.md 2.2, Cohort and ResourceFlavor: rules and texts."""

from typing import Any

import pytest
from tests.support.objects import Json, changed

from sluice.api.validate import cohort, resource_flavor

COHORT: Json = {
    "metadata": {"name": "all"},
    "spec": {
        "parentName": "root",
        "resourceGroups": [
            {
                "coveredResources": ["cpu"],
                "flavors": [
                    {
                        "name": "spot",
                        "resources": [
                            {
                                "name": "cpu",
                                "nominalQuota": "10",
                                "borrowingLimit": "5",
                                "lendingLimit": "20",
                            }
                        ],
                    }
                ],
            }
        ],
    },
}
CPU_PATH = "spec.resourceGroups[0].flavors[0].resources[0]"
FLAVOR: Json = {
    "metadata": {"name": "spot"},
    "spec": {
        "nodeLabels": {"cloud.example.com/spot": "true"},
        "nodeTaints": [
            {"key": "spot", "value": "true", "effect": "NoSchedule"},
            {"key": "spot", "value": "true", "effect": "NoExecute"},
        ],
        "tolerations": [{"key": "spot", "operator": "Exists"}, {"operator": "Exists"}],
    },
}
NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def cohort_texts(obj: Json) -> list[str]:
    found = [str(error) for error in cohort.on_create(obj, {})]
    assert [str(error) for error in cohort.on_update(COHORT, obj, {})] == found
    return found


def flavor_texts(obj: Json) -> list[str]:
    found = [str(error) for error in resource_flavor.on_create(obj, {})]
    assert [str(error) for error in resource_flavor.on_update(FLAVOR, obj, {})] == found
    return found


def test_a_cohort_may_lend_more_than_its_nominal_quota() -> None:
    assert cohort_texts(COHORT) == []


def test_a_cohort_has_no_total_bounds() -> None:
    groups = [
        {
            "coveredResources": [f"r{i}"],
            "flavors": [
                {"name": f"f{i}-{j}", "resources": [{"name": f"r{i}", "nominalQuota": "1"}]}
                for j in range(64)
            ],
        }
        for i in range(5)
    ]
    assert cohort_texts(changed(COHORT, {"spec.resourceGroups": groups})) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"spec.parentName": ""},
            [
                f'{CPU_PATH}.borrowingLimit: Invalid value: "5": must be nil when parent is empty',
                f'{CPU_PATH}.lendingLimit: Invalid value: "20": must be nil when parent is empty',
            ],
            id="limits without a parent",
        ),
        pytest.param(
            {"spec.fairSharing.weight": "-1"},
            ['spec.fairSharing: Invalid value: "-1": must be greater than or equal to 0'],
            id="weight",
        ),
        pytest.param(
            {"spec.resourceGroups.0.flavors.0.resources.0.nominalQuota": "-1"},
            [f'{CPU_PATH}.nominalQuota: Invalid value: "-1": must be greater than or equal to 0'],
            id="negative quota",
        ),
        pytest.param(
            {"spec.resourceGroups.0.coveredResources.0": "memory"},
            [f'{CPU_PATH}.name: Invalid value: "cpu": must match the name in coveredResources'],
            id="order",
        ),
    ],
)
def test_cohorts_refused(changes: dict[str, Any], expected: list[str]) -> None:
    assert cohort_texts(changed(COHORT, changes)) == expected


def test_a_valid_flavor_is_taken() -> None:
    assert flavor_texts(FLAVOR) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"spec.nodeLabels": {"a!": "x"}},
            [f'spec.nodeLabels: Invalid value: "a!": {NAME}'],
            id="label key",
        ),
        pytest.param(
            {"spec.nodeLabels": {"a": "x!"}},
            [f'spec.nodeLabels: Invalid value: "x!": {VALUE}'],
            id="label value",
        ),
        pytest.param(
            {"spec.nodeTaints.0.key": "-"},
            [f'spec.nodeTaints[0].key: Invalid value: "-": {NAME}'],
            id="taint key",
        ),
        pytest.param(
            {"spec.nodeTaints.0.value": "/"},
            [f'spec.nodeTaints[0].value: Invalid value: "/": {VALUE}'],
            id="taint value",
        ),
        pytest.param(
            {"spec.nodeTaints.1.effect": "NoSchedule"},
            [
                'spec.nodeTaints[1]: Duplicate value: {"key":"spot","value":"true",'
                '"effect":"NoSchedule"}: taints must be unique by key and effect pair'
            ],
            id="taint twice",
        ),
        pytest.param(
            {"spec.tolerations.0.key": "a/b/c"},
            [
                'spec.tolerations[0].key: Invalid value: "a/b/c": a valid label key '
                f"{NAME.removeprefix('name part ')} with an optional DNS subdomain prefix and '/' "
                "(e.g. 'example.com/MyName')"
            ],
            id="toleration key",
        ),
    ],
)
def test_flavors_refused(changes: dict[str, Any], expected: list[str]) -> None:
    assert flavor_texts(changed(FLAVOR, changes)) == expected
