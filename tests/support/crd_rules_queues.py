"""Rows of `crd_rules` for all kinds but Workload (docs/spec/api.md 1.1 to 1.10)."""

from typing import Any

from tests.support.crd_rules import NEW, OLD, RuleCase

Object = dict[str, Any]
LIMIT = {"name": "cpu", "nominalQuota": 1, "borrowingLimit": 1}
HOSTNAME = "kubernetes.io/hostname"


def groups(*resources: Object, covered: list[str] | None = None) -> list[Object]:
    """Return one resource group with one flavor."""
    names = [resource["name"] for resource in resources] if covered is None else covered
    return [{"coveredResources": names, "flavors": [{"name": "f", "resources": list(resources)}]}]


def levels(*labels: str) -> Object:
    """Return the spec of a Topology."""
    return {"spec": {"levels": [{"nodeLabel": label} for label in labels]}}


def tolerations(*items: Object) -> Object:
    """Return the spec of a ResourceFlavor."""
    return {"spec": {"tolerations": list(items)}}


def borrowing(cohort: str, version: tuple[str, ...]) -> RuleCase:
    """Return the rule that borrowing needs a cohort, under the version's field name."""
    return RuleCase(
        kind="ClusterQueue",
        rule=(".spec", "borrowingLimit must be nil when cohort is empty"),
        refused=({"spec": {"resourceGroups": groups(LIMIT)}},),
        taken=(
            {"spec": {"resourceGroups": groups(LIMIT), cohort: "c"}},
            {"spec": {"resourceGroups": groups({"name": "cpu", "nominalQuota": 1})}},
            {"spec": {}},
        ),
        versions=version,
    )


def same_count(kind: str) -> RuleCase:
    """Return the rule that each flavor has all covered resources."""
    two = [{"name": name, "nominalQuota": 1} for name in ("cpu", "memory")]
    return RuleCase(
        kind=kind,
        rule=(
            ".spec.resourceGroups[]",
            "flavors must have the same number of resources as the coveredResources",
        ),
        refused=(
            {"spec": {"resourceGroups": groups(*two, covered=["cpu"])}},
            {"spec": {"resourceGroups": groups(two[0], covered=["cpu", "memory"])}},
        ),
        taken=({"spec": {"resourceGroups": groups(*two)}},),
    )


def preference(borrow: str | None, preempt: str | None) -> Object:
    """Return a ClusterQueue with a preference among flavors."""
    fungibility = {
        "whenCanBorrow": borrow,
        "whenCanPreempt": preempt,
        "preference": "PreemptionOverBorrowing",
    }
    return {"spec": {"flavorFungibility": fungibility}}


CLUSTER_QUEUE = (
    borrowing("cohort", OLD),
    borrowing("cohortName", NEW),
    same_count("ClusterQueue"),
    same_count("Cohort"),
    RuleCase(
        kind="ClusterQueue",
        rule=(
            ".spec.flavorFungibility",
            "preference may only be set when both whenCanBorrow and whenCanPreempt are"
            " TryNextFlavor",
        ),
        refused=(
            preference("TryNextFlavor", "MayStopSearch"),
            preference("MayStopSearch", "TryNextFlavor"),
            preference(None, None),
        ),
        taken=(preference("TryNextFlavor", "TryNextFlavor"), preference("TryNextFlavor", None)),
    ),
    RuleCase(
        kind="ClusterQueue",
        rule=(
            ".spec.preemption",
            "reclaimWithinCohort=Never and borrowWithinCohort.policy!=Never: nothing could be"
            " preempted while borrowing",
        ),
        refused=({"spec": {"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}}},),
        taken=(
            {
                "spec": {
                    "preemption": {
                        "reclaimWithinCohort": "LowerPriority",
                        "borrowWithinCohort": {"policy": "LowerPriority"},
                    }
                }
            },
            {"spec": {"preemption": {"borrowWithinCohort": {"policy": "Never"}}}},
        ),
    ),
)
OTHERS = (
    RuleCase(
        kind="LocalQueue",
        rule=(".spec.clusterQueue", "field is immutable"),
        base={"spec": {"clusterQueue": "a"}},
        refused=({"spec": {"clusterQueue": "b"}},),
        taken=({"spec": {"clusterQueue": None}}, {"spec": {"stopPolicy": "Hold"}}),
        on="update",
    ),
    RuleCase(
        kind="AdmissionCheck",
        rule=(".spec.controllerName", "field is immutable"),
        base={"spec": {"controllerName": "a"}},
        refused=({"spec": {"controllerName": "b"}},),
        taken=({"spec": {"parameters": {"apiGroup": "g", "kind": "K", "name": "n"}}},),
        on="update",
    ),
    RuleCase(
        kind="MultiKueueConfig",
        rule=(".spec.clusters", "must be unique"),
        refused=({"spec": {"clusters": ["a", "b", "a"]}},),
        taken=({"spec": {"clusters": ["a", "b"]}},),
        versions=NEW,
    ),
    RuleCase(
        kind="MultiKueueCluster",
        rule=(
            ".spec.clusterSource",
            "exactly one of the fields in [kubeConfig clusterProfileRef] must be set",
        ),
        refused=(
            {"spec": {"clusterSource": {}}},
            {
                "spec": {
                    "clusterSource": {
                        "kubeConfig": {"location": "s"},
                        "clusterProfileRef": {"name": "p"},
                    }
                }
            },
        ),
        taken=(
            {"spec": {"clusterSource": {"kubeConfig": {"location": "s"}}}},
            {"spec": {"clusterSource": {"clusterProfileRef": {"name": "p"}}}},
        ),
        versions=NEW,
    ),
)
FLAVOR = (
    RuleCase(
        kind="ResourceFlavor",
        rule=(".spec", "at least one nodeLabel is required when topology is set"),
        refused=(
            {"spec": {"topologyName": "t"}},
            {"spec": {"topologyName": "t", "nodeLabels": {}}},
        ),
        taken=(
            {"spec": {"topologyName": "t", "nodeLabels": {"a": "b"}}},
            {"spec": {"nodeLabels": {}}},
        ),
    ),
    RuleCase(
        kind="ResourceFlavor",
        rule=(".spec", "topologyName is immutable when topologyName is set"),
        base={"spec": {"topologyName": "t", "nodeLabels": {"a": "b"}}},
        refused=({"spec": {"topologyName": "other"}}, {"spec": {"topologyName": None}}),
        taken=({"spec": {"nodeLabels": {"c": "d"}}},),
        on="update",
    ),
    RuleCase(
        kind="ResourceFlavor",
        rule=(".spec.nodeTaints", "effect must be one of NoSchedule, PreferNoSchedule, NoExecute"),
        refused=({"spec": {"nodeTaints": [{"key": "k", "effect": "Never"}]}},),
        taken=(
            {
                "spec": {
                    "nodeTaints": [
                        {"key": "k", "effect": effect}
                        for effect in ("NoSchedule", "PreferNoSchedule", "NoExecute")
                    ]
                }
            },
        ),
    ),
)
TOLERATION_ROWS: tuple[tuple[str, Object, Object], ...] = (
    (
        "operator must be Exists when key is absent",
        {"value": "v"},
        {"operator": "Exists"},
    ),
    (
        "effect must be NoExecute when tolerationSeconds is set",
        {"key": "k", "effect": "NoSchedule", "tolerationSeconds": 1},
        {"key": "k", "effect": "NoExecute", "tolerationSeconds": 1},
    ),
    (
        "operator must be one of Equal, Exists",
        {"key": "k", "operator": "Lt"},
        {"key": "k", "operator": "Equal"},
    ),
    (
        "value must be absent when operator is Exists",
        {"key": "k", "operator": "Exists", "value": "v"},
        {"key": "k", "operator": "Exists"},
    ),
    (
        "effect must be one of NoSchedule, PreferNoSchedule, NoExecute",
        {"key": "k", "effect": "Never"},
        {"key": "k", "effect": "PreferNoSchedule"},
    ),
)
"""(message, a toleration that the rule refuses, one that it takes)."""

TOLERATIONS = tuple(
    RuleCase(
        kind="ResourceFlavor",
        rule=(".spec.tolerations", message),
        refused=(tolerations({"key": "fine"}, refused),),
        taken=(tolerations({"key": "fine"}, taken),),
    )
    for message, refused, taken in TOLERATION_ROWS
)
TOPOLOGY = (
    RuleCase(
        kind="Topology",
        rule=(".spec.levels", "field is immutable"),
        base=levels("rack", HOSTNAME),
        refused=(levels("block", HOSTNAME), levels("rack")),
        taken=({"metadata": {"labels": {"a": "b"}}},),
        on="update",
        versions=OLD,
    ),
    RuleCase(
        kind="Topology",
        rule=(
            ".spec.levels",
            "levels are mutable only when kubernetes.io/hostname is the lowest level both before"
            " and after the change",
        ),
        base=levels("rack", HOSTNAME),
        refused=(levels("rack"), levels("block", "rack")),
        taken=(levels("block", "rack", HOSTNAME), levels(HOSTNAME)),
        on="update",
        versions=NEW,
    ),
    RuleCase(
        kind="Topology",
        rule=(
            ".spec.levels",
            "levels are mutable only when kubernetes.io/hostname is the lowest level both before"
            " and after the change",
        ),
        base=levels("rack"),
        refused=(levels("rack", HOSTNAME), levels("block")),
        taken=({"metadata": {"labels": {"a": "b"}}},),
        on="update",
        versions=NEW,
    ),
    RuleCase(
        kind="Topology",
        rule=(".spec.levels", "must be unique"),
        refused=(levels("rack", "rack"),),
        taken=(levels("block", "rack"),),
    ),
    RuleCase(
        kind="Topology",
        rule=(".spec.levels", "kubernetes.io/hostname can only be the last level"),
        refused=(levels(HOSTNAME, "rack"),),
        taken=(levels("rack", HOSTNAME), levels("rack")),
    ),
)
CASES = (*CLUSTER_QUEUE, *OTHERS, *FLAVOR, *TOLERATIONS, *TOPOLOGY)
