"""docs/spec/api.md 2.2, ClusterQueue: each rule refused once, taken once, with its exact text."""

from typing import Any

import pytest
from tests.support.objects import DROP, Json, changed

from sluice.api.validate import cluster_queue

LIMITED = {"name": "cpu", "nominalQuota": "10", "borrowingLimit": "5", "lendingLimit": "5"}
QUEUE: Json = {
    "metadata": {"name": "team-a"},
    "spec": {
        "cohortName": "all",
        "namespaceSelector": {},
        "queueingStrategy": "BestEffortFIFO",
        "resourceGroups": [
            {
                "coveredResources": ["cpu", "memory"],
                "flavors": [
                    {
                        "name": "spot",
                        "resources": [LIMITED, {"name": "memory", "nominalQuota": "64Gi"}],
                    }
                ],
            },
            {
                "coveredResources": ["nvidia.com/gpu"],
                "flavors": [
                    {"name": "a100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]}
                ],
            },
        ],
    },
}
CPU = "spec.resourceGroups.0.flavors.0.resources.0"
CPU_PATH = "spec.resourceGroups[0].flavors[0].resources[0]"
NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
CONCURRENT = {"migration": {"mode": "TryPreferredFlavors"}}
GATES = {"ConcurrentAdmission": True}


def flavors(count: int, group: int = 0, resources: int = 1) -> list[Json]:
    quota = [{"name": f"r{i}.example.com/x", "nominalQuota": "1"} for i in range(resources)]
    return [{"name": f"f{group}-{i}", "resources": quota} for i in range(count)]


def group(number: int, flavor_count: int, resource_count: int = 1) -> Json:
    return {
        "coveredResources": [f"r{i}.example.com/x" for i in range(resource_count)],
        "flavors": flavors(flavor_count, number, resource_count),
    }


def texts(queue: Json, gates: dict[str, bool] | None = None) -> list[str]:
    return [str(error) for error in cluster_queue.on_create(queue, gates or {})]


def test_a_valid_queue_is_taken() -> None:
    assert texts(QUEUE) == []
    assert cluster_queue.on_update(QUEUE, QUEUE, {}) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"spec.resourceGroups.0.coveredResources.0": "c!", f"{CPU}.name": "c!"},
            [f'spec.resourceGroups[0].coveredResources[0]: Invalid value: "c!": {NAME}'],
            id="resource name",
        ),
        pytest.param(
            {
                "spec.resourceGroups.1.coveredResources.0": "cpu",
                "spec.resourceGroups.1.flavors.0.resources.0.name": "cpu",
            },
            ['spec.resourceGroups[1].coveredResources[0]: Duplicate value: "cpu"'],
            id="resource in two groups",
        ),
        pytest.param(
            {"spec.resourceGroups.1.flavors.0.name": "spot"},
            ['spec.resourceGroups[1].flavors[0].name: Duplicate value: "spot"'],
            id="flavor in two groups",
        ),
        pytest.param(
            {f"{CPU}.name": "memory"},
            [f'{CPU_PATH}.name: Invalid value: "memory": must match the name in coveredResources'],
            id="order of resources",
        ),
        pytest.param(
            {f"{CPU}.nominalQuota": "-1", f"{CPU}.lendingLimit": DROP},
            [f'{CPU_PATH}.nominalQuota: Invalid value: "-1": must be greater than or equal to 0'],
            id="negative quota",
        ),
        pytest.param(
            {f"{CPU}.borrowingLimit": "-1"},
            [f'{CPU_PATH}.borrowingLimit: Invalid value: "-1": must be greater than or equal to 0'],
            id="negative borrowing limit",
        ),
        pytest.param(
            {f"{CPU}.lendingLimit": "-1m"},
            [f'{CPU_PATH}.lendingLimit: Invalid value: "-1m": must be greater than or equal to 0'],
            id="negative lending limit",
        ),
        pytest.param(
            {"spec.cohortName": ""},
            [
                f'{CPU_PATH}.borrowingLimit: Invalid value: "5": must be nil when cohort is empty',
                f'{CPU_PATH}.lendingLimit: Invalid value: "5": must be nil when cohort is empty',
            ],
            id="limits without a cohort",
        ),
        pytest.param(
            {f"{CPU}.lendingLimit": "10001m"},
            [
                f'{CPU_PATH}.lendingLimit: Invalid value: "10001m": '
                "must be less than or equal to the nominalQuota"
            ],
            id="lending more than there is",
        ),
        pytest.param(
            {"spec.namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            [
                "spec.namespaceSelector.matchExpressions[0].values: Required value: "
                "must be specified when `operator` is 'In' or 'NotIn'"
            ],
            id="selector",
        ),
        pytest.param(
            {"spec.preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}},
            [
                "spec.preemption: Invalid value: "
                '{"borrowWithinCohort":{"policy":"LowerPriority"}}: '
                "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never"
            ],
            id="borrowing without reclaiming",
        ),
        pytest.param(
            {
                "spec.flavorFungibility": {
                    "whenCanBorrow": "MayStopSearch",
                    "whenCanPreempt": "TryNextFlavor",
                    "preference": "PreemptionOverBorrowing",
                }
            },
            [
                "spec.flavorFungibility.preference: Invalid value: "
                '"PreemptionOverBorrowing": may only be set when whenCanBorrow and '
                "whenCanPreempt are both TryNextFlavor"
            ],
            id="fungibility preference",
        ),
        pytest.param(
            {"spec.fairSharing": {"weight": "-1"}},
            ['spec.fairSharing: Invalid value: "-1": must be greater than or equal to 0'],
            id="negative weight",
        ),
        pytest.param(
            {"spec.fairSharing": {"weight": "1n"}},
            ['spec.fairSharing: Invalid value: "1n": must be 0 or more than 1n'],
            id="tiny weight",
        ),
        pytest.param(
            {
                "spec.admissionChecksStrategy": {
                    "admissionChecks": [{"name": "prov", "onFlavors": ["spot", "h100"]}]
                }
            },
            [
                "spec.admissionChecksStrategy.admissionChecks[0].onFlavors[1]: "
                'Unsupported value: "h100": supported values: "a100", "spot"'
            ],
            id="onFlavors",
        ),
    ],
)
def test_refused(changes: dict[str, Any], expected: list[str]) -> None:
    assert texts(changed(QUEUE, changes)) == expected


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({f"{CPU}.lendingLimit": "10000m"}, id="lends all"),
        pytest.param({f"{CPU}.nominalQuota": 0, f"{CPU}.lendingLimit": "0"}, id="zero"),
        pytest.param(
            {"spec.cohortName": DROP, f"{CPU}.borrowingLimit": DROP, f"{CPU}.lendingLimit": DROP},
            id="alone",
        ),
        pytest.param({"spec.namespaceSelector": None}, id="no selector"),
        pytest.param(
            {
                "spec.preemption": {
                    "reclaimWithinCohort": "Any",
                    "borrowWithinCohort": {"policy": "LowerPriority"},
                }
            },
            id="borrows and reclaims",
        ),
        pytest.param(
            {
                "spec.flavorFungibility": {
                    "whenCanBorrow": "TryNextFlavor",
                    "whenCanPreempt": "TryNextFlavor",
                    "preference": "PreemptionOverBorrowing",
                }
            },
            id="preference",
        ),
        pytest.param({"spec.fairSharing": {"weight": "2n"}}, id="small weight"),
        pytest.param({"spec.fairSharing": {"weight": 0}}, id="no weight"),
        pytest.param(
            {"spec.admissionChecksStrategy": {"admissionChecks": [{"name": "p"}]}}, id="check"
        ),
        pytest.param(
            {"spec.resourceGroups.0.flavors.0.resources.2": {"name": "x", "nominalQuota": "-1"}},
            id="beyond coveredResources the schema rules",
        ),
        pytest.param({"spec.concurrentAdmissionPolicy": CONCURRENT}, id="gate off"),
    ],
)
def test_taken(changes: dict[str, Any]) -> None:
    assert texts(changed(QUEUE, changes)) == []


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        pytest.param(
            [group(i, 64) for i in range(5)],
            "spec.resourceGroups: Invalid value: 320: "
            "must not have more than 256 flavors in all groups together",
            id="flavors",
        ),
        pytest.param(
            [group(0, 1, 257)],
            "spec.resourceGroups: Invalid value: 257: "
            "must not have more than 256 coveredResources in all groups together",
            id="resources",
        ),
        pytest.param(
            [group(0, 9, 57)],
            "spec.resourceGroups[0]: Invalid value: 513: "
            "must not have more than 512 resources in all its flavors together",
            id="pairs",
        ),
    ],
)
def test_totals(groups: list[Json], expected: str) -> None:
    found = texts(changed(QUEUE, {"spec.resourceGroups": groups}))
    assert [text for text in found if "Duplicate" not in text] == [expected]


def test_totals_at_the_bound_are_taken() -> None:
    assert texts(changed(QUEUE, {"spec.resourceGroups": [group(0, 8, 64)]})) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {},
            [
                "spec.resourceGroups: Invalid value: 2: must have exactly one resource group "
                "when concurrentAdmissionPolicy is set"
            ],
            id="two groups",
        ),
        pytest.param(
            {"spec.resourceGroups": [group(0, 17)]},
            [
                "spec.resourceGroups[0].flavors: Invalid value: 17: must not have more than 16 "
                "flavors when concurrentAdmissionPolicy is set"
            ],
            id="many flavors",
        ),
        pytest.param(
            {
                "spec.resourceGroups": [group(0, 2)],
                "spec.concurrentAdmissionPolicy.migration": {
                    "mode": "RetainFirstAdmission",
                    "constraints": {"lastAcceptableFlavorName": "f0-1"},
                },
            },
            [
                "spec.concurrentAdmissionPolicy.migration.constraints: Forbidden: "
                "may only be set when mode is TryPreferredFlavors"
            ],
            id="constraints",
        ),
        pytest.param(
            {
                "spec.resourceGroups": [group(0, 2)],
                "spec.concurrentAdmissionPolicy.migration.constraints": {
                    "lastAcceptableFlavorName": "none"
                },
            },
            [
                "spec.concurrentAdmissionPolicy.migration.constraints.lastAcceptableFlavorName: "
                'Invalid value: "none": must be one of the flavors of the ClusterQueue'
            ],
            id="last flavor",
        ),
        pytest.param(
            {"spec.resourceGroups": [group(0, 2)], "spec.queueingStrategy": "StrictFIFO"},
            [
                'spec.queueingStrategy: Invalid value: "StrictFIFO": must not be StrictFIFO '
                "when concurrentAdmissionPolicy is set"
            ],
            id="strict",
        ),
        pytest.param({"spec.resourceGroups": [group(0, 16)]}, [], id="taken"),
    ],
)
def test_concurrent_admission(changes: dict[str, Any], expected: list[str]) -> None:
    policy = {"spec.concurrentAdmissionPolicy": CONCURRENT}
    queue = changed(changed(QUEUE, policy), changes)
    assert texts(queue, GATES) == expected


def test_the_concurrent_admission_policy_is_immutable_whatever_the_gate() -> None:
    new = changed(QUEUE, {"spec.concurrentAdmissionPolicy": CONCURRENT})
    assert [str(error) for error in cluster_queue.on_update(QUEUE, new, {})] == [
        'spec.concurrentAdmissionPolicy: Invalid value: {"migration":'
        '{"mode":"TryPreferredFlavors"}}: field is immutable'
    ]


STALE = changed(
    QUEUE,
    {
        "spec.admissionChecksStrategy": {
            "admissionChecks": [{"name": "prov", "onFlavors": ["gone", "spot"]}]
        }
    },
)
STALE_TEXT = (
    "spec.admissionChecksStrategy.admissionChecks[0].onFlavors[{}]: "
    'Unsupported value: "gone": supported values: {}'
)


@pytest.mark.parametrize(
    ("changes", "gates", "expected"),
    [
        pytest.param({"spec.stopPolicy": "Hold"}, {}, [], id="unchanged entry"),
        pytest.param(
            {
                "spec.admissionChecksStrategy.admissionChecks.0.onFlavors": ["spot", "gone"],
            },
            {},
            [],
            id="same set in another order",
        ),
        pytest.param(
            {"spec.admissionChecksStrategy.admissionChecks.0.onFlavors": ["gone"]},
            {},
            [STALE_TEXT.format(0, '"a100", "spot"')],
            id="changed entry",
        ),
        pytest.param(
            {"spec.resourceGroups.1.flavors.0.name": "h100"},
            {},
            [STALE_TEXT.format(0, '"h100", "spot"')],
            id="changed flavors",
        ),
        pytest.param(
            {"spec.stopPolicy": "Hold"},
            {"RejectUpdatesToCQWithInvalidOnFlavors": True},
            [STALE_TEXT.format(0, '"a100", "spot"')],
            id="gate on",
        ),
    ],
)
def test_stale_on_flavors(
    changes: dict[str, Any], gates: dict[str, bool], expected: list[str]
) -> None:
    new = changed(STALE, changes)
    assert [str(error) for error in cluster_queue.on_update(STALE, new, gates)] == expected
