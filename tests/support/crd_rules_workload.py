"""Rows of `crd_rules` for Workload (docs/spec/api.md 1.4, 1.11)."""

from typing import Any

from tests.support.crd_rules import NEW, OLD, RuleCase
from tests.support.crd_rules_queues import TOLERATION_ROWS

Object = dict[str, Any]
TEMPLATE = {"spec": {"containers": [{"name": "c"}]}}
POD_SET = {"name": "main", "count": 2, "template": TEMPLATE}
WPC_SOURCE = "kueue.x-k8s.io/workloadpriorityclass"
PC_SOURCE = "scheduling.k8s.io/priorityclass"
TIME = "2030-01-31T12:00:00Z"
ASSIGNMENTS = ".status.admission.podSetAssignments[]"
TOPOLOGY = f"{ASSIGNMENTS}.topologyAssignment"


def condition(kind: str, status: str = "True") -> Object:
    """Return a condition."""
    return {
        "type": kind,
        "status": status,
        "reason": "R",
        "message": "",
        "lastTransitionTime": TIME,
    }


def workload(*conditions: str, **spec: Any) -> Object:
    """Return a Workload with one PodSet whose conditions of these types are True."""
    out: Object = {"spec": {"podSets": [POD_SET], **spec}}
    if conditions:
        out["status"] = {"conditions": [condition(kind) for kind in conditions]}
    return out


def ref(group: str, kind: str, name: str = "high") -> Object:
    """Return a reference to a priority class."""
    return {"group": group, "kind": kind, "name": name}


def new_ref(**change: str) -> Object:
    """Return a change of the priority class in v1beta2."""
    return {"spec": {"priorityClassRef": change}}


def assigned(*names: str, **conditions: str) -> Object:
    """Return a status with quota for PodSets, and conditions with their status."""
    return {
        "status": {
            "conditions": [condition(kind, status) for kind, status in conditions.items()],
            "admission": {
                "clusterQueue": "cq",
                "podSetAssignments": [{"name": name} for name in names],
            },
        }
    }


WPC = ref("kueue.x-k8s.io", "WorkloadPriorityClass")
PC = ref("scheduling.k8s.io", "PriorityClass")
MAIN_MESSAGE = "is immutable while workload quota reserved"

BOTH_VERSIONS = (
    RuleCase(
        kind="Workload",
        rule=(".", "podSetAssignments must have the same number of podSets as the spec"),
        base=workload(),
        refused=(
            assigned("main", "other", QuotaReserved="True"),
            assigned(QuotaReserved="True"),
        ),
        taken=(
            assigned("main", QuotaReserved="True"),
            assigned("main", "other", QuotaReserved="False"),
            {"status": {"conditions": [condition("QuotaReserved")]}},
        ),
        on="status",
    ),
    RuleCase(
        kind="Workload",
        rule=(".", f"queueName {MAIN_MESSAGE}"),
        base=workload("QuotaReserved", queueName="a"),
        refused=({"spec": {"queueName": "b"}}, {"spec": {"queueName": None}}),
        taken=({"spec": {"active": False}},),
        on="update",
    ),
    RuleCase(
        kind="Workload",
        rule=(".", f"queueName {MAIN_MESSAGE}"),
        base=workload("QuotaReserved"),
        refused=({"spec": {"queueName": "b"}},),
        taken=({"spec": {"priority": 3}},),
        on="update",
    ),
    RuleCase(
        kind="Workload",
        rule=(".", "maximumExecutionTimeSeconds is immutable while the workload is admitted"),
        base=workload("Admitted", maximumExecutionTimeSeconds=60),
        refused=(
            {"spec": {"maximumExecutionTimeSeconds": 61}},
            {"spec": {"maximumExecutionTimeSeconds": None}},
        ),
        taken=({"spec": {"priority": 3}},),
        on="update",
    ),
    RuleCase(
        kind="Workload",
        rule=(".spec.podSets[]", "minCount must not be greater than count"),
        refused=({"spec": {"podSets": [{**POD_SET, "minCount": 3}]}},),
        taken=(
            {"spec": {"podSets": [{**POD_SET, "minCount": 2}]}},
            {"spec": {"podSets": [{**POD_SET, "minCount": 1}]}},
        ),
    ),
    RuleCase(
        kind="Workload",
        rule=(".status", "clusterName is immutable once set"),
        base={**workload(), "status": {"clusterName": "east"}},
        refused=({"status": {"clusterName": "west"}},),
        taken=({"status": {"clusterName": None}}, {"status": {}}),
        on="status",
    ),
    RuleCase(
        kind="Workload",
        rule=(".status", "clusterName and nominatedClusterNames can't be set together"),
        base=workload(),
        refused=({"status": {"clusterName": "east", "nominatedClusterNames": ["east"]}},),
        taken=(
            {"status": {"clusterName": "east", "nominatedClusterNames": []}},
            {"status": {"clusterName": "east"}},
            {"status": {"nominatedClusterNames": ["east"]}},
        ),
        on="status",
    ),
)
WHILE_FREE = RuleCase(
    kind="Workload",
    rule=(".", f"queueName {MAIN_MESSAGE}"),
    base=workload(queueName="a"),
    refused=(),
    taken=(
        {"spec": {"queueName": "b"}},
        {"spec": {"queueName": None, "maximumExecutionTimeSeconds": 5}},
    ),
    on="update",
)


def check_state(toleration: Object) -> Object:
    """Return a status with an admission check that adds a toleration."""
    update = {"name": "main", "tolerations": [{"key": "fine"}, toleration]}
    state = {
        "name": "check",
        "state": "Ready",
        "message": "",
        "lastTransitionTime": TIME,
        "podSetUpdates": [update],
    }
    return {"status": {"admissionChecks": [state]}}


TOLERATIONS = tuple(
    RuleCase(
        kind="Workload",
        rule=(".status.admissionChecks[].podSetUpdates[].tolerations", message),
        base=workload(),
        refused=(check_state(refused),),
        taken=(check_state(taken),),
        on="status",
    )
    for message, refused, taken in TOLERATION_ROWS
)
OLD_CLASS = (
    RuleCase(
        kind="Workload",
        rule=(".spec", "priority should not be nil when priorityClassName is set"),
        base=workload(),
        refused=({"spec": {"priorityClassName": "high"}},),
        taken=({"spec": {"priorityClassName": "high", "priority": 0}},),
        versions=OLD,
    ),
    RuleCase(
        kind="Workload",
        rule=(".", f"priorityClassSource {MAIN_MESSAGE}"),
        base=workload(
            "QuotaReserved", priority=1, priorityClassName="high", priorityClassSource=WPC_SOURCE
        ),
        refused=(
            {"spec": {"priorityClassSource": PC_SOURCE}},
            {"spec": {"priorityClassSource": ""}},
        ),
        taken=({"spec": {"priorityClassName": "low", "priority": 2}},),
        on="update",
        versions=OLD,
    ),
    RuleCase(
        kind="Workload",
        rule=(".", f"priorityClassName {MAIN_MESSAGE}"),
        base=workload(
            "QuotaReserved", priority=1, priorityClassName="high", priorityClassSource=PC_SOURCE
        ),
        refused=({"spec": {"priorityClassName": "low"}},),
        taken=({"spec": {"priorityClassName": None}}, {"spec": {"priority": 2}}),
        on="update",
        versions=OLD,
    ),
)
NEW_CLASS = (
    RuleCase(
        kind="Workload",
        rule=(".spec", "priority should not be nil when priorityClassRef is set"),
        base=workload(),
        refused=({"spec": {"priorityClassRef": WPC}},),
        taken=({"spec": {"priorityClassRef": WPC, "priority": 0}},),
        versions=NEW,
    ),
    RuleCase(
        kind="Workload",
        rule=(
            ".spec.priorityClassRef",
            "kind must be PriorityClass when group is scheduling.k8s.io",
        ),
        base=workload(priority=1),
        refused=(new_ref(**ref("scheduling.k8s.io", "WorkloadPriorityClass")),),
        taken=(new_ref(**PC),),
        versions=NEW,
    ),
    RuleCase(
        kind="Workload",
        rule=(
            ".spec.priorityClassRef",
            "kind must be WorkloadPriorityClass when group is kueue.x-k8s.io",
        ),
        base=workload(priority=1),
        refused=(new_ref(**ref("kueue.x-k8s.io", "PriorityClass")),),
        taken=(new_ref(**WPC),),
        versions=NEW,
    ),
    RuleCase(
        kind="Workload",
        rule=(".", f"priorityClassRef {MAIN_MESSAGE}"),
        base=workload("QuotaReserved", priority=1, priorityClassRef=WPC),
        refused=({"spec": {"priorityClassRef": None}},),
        taken=({"spec": {"priority": 2}}, new_ref(name="low")),
        on="update",
        versions=NEW,
    ),
    RuleCase(
        kind="Workload",
        rule=(".", f"priorityClassRef {MAIN_MESSAGE}"),
        base=workload("QuotaReserved", priority=1),
        refused=(new_ref(**WPC),),
        taken=({"spec": {"priority": None}},),
        on="update",
        versions=NEW,
    ),
    RuleCase(
        kind="Workload",
        rule=(".", f"priorityClassRef.group {MAIN_MESSAGE}"),
        base=workload("QuotaReserved", priority=1, priorityClassRef=WPC),
        refused=(new_ref(**PC),),
        taken=(new_ref(name="low"),),
        on="update",
        versions=NEW,
    ),
    RuleCase(
        kind="Workload",
        rule=(".", f"priorityClassRef.kind {MAIN_MESSAGE}"),
        base=workload("QuotaReserved", priority=1, priorityClassRef=PC),
        refused=(new_ref(**WPC),),
        taken=({"spec": {"priority": 2}},),
        on="update",
        versions=NEW,
    ),
    RuleCase(
        kind="Workload",
        rule=(".", f"priorityClassRef.name {MAIN_MESSAGE}"),
        base=workload("QuotaReserved", priority=1, priorityClassRef=PC),
        refused=(new_ref(name="low"),),
        taken=({"spec": {"priority": 2}},),
        on="update",
        versions=NEW,
    ),
)
CASES = (*BOTH_VERSIONS, WHILE_FREE, *TOLERATIONS, *OLD_CLASS, *NEW_CLASS)
