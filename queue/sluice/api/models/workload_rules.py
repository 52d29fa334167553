"""CEL rules on a whole Workload (docs/spec/api.md 1.4, 1.11), built from a few repeated tests.

Used by the Workload models of both versions.
"""

from typing import Any, Final

from sluice.api.models.schema import cel


def holds(subject: str, condition: str) -> str:
    """Return the CEL test that a condition of an object (`self` or `oldSelf`) is True."""
    return (
        f"has({subject}.status) && has({subject}.status.conditions)"
        f" && {subject}.status.conditions.exists(c, c.type == '{condition}' && c.status == 'True')"
    )


def has_spec(subject: str, field: str) -> str:
    """Return the CEL test that an object has a spec with the given field."""
    return f"(has({subject}.spec) && has({subject}.spec.{field}))"


def count_of(subject: str, path: str) -> str:
    """Return the CEL length of an optional list below an optional object."""
    owner = f"{subject}.{path}"
    parent = owner.rsplit(".", 1)[0]
    return f"(has({parent}) && has({owner}) ? size({owner}) : 0)"


def while_both(condition: str, requirement: str, message: str) -> dict[str, Any]:
    """Return a rule for updates that applies while a condition is True before and after."""
    return cel(
        f"!({holds('oldSelf', condition)}) || !({holds('self', condition)}) || {requirement}",
        message,
    )


def while_reserved(requirement: str, message: str) -> dict[str, Any]:
    """Return a rule for updates of an object that already held quota."""
    return cel(f"!({holds('oldSelf', 'QuotaReserved')}) || {requirement}", message)


def unchanged_if_both(field: str) -> str:
    """Return the CEL test that a spec field is equal where both objects have it."""
    return (
        f"!{has_spec('self', field)} || !{has_spec('oldSelf', field)}"
        f" || self.spec.{field} == oldSelf.spec.{field}"
    )


_REF_IN_BOTH = (
    f"{has_spec('self', 'priorityClassRef')} && {has_spec('oldSelf', 'priorityClassRef')}"
)
_REF_IMMUTABLE = "is immutable while workload quota reserved"


def _ref_unchanged(part: str, *, only_when: str = "") -> dict[str, Any]:
    guard = f" || !({only_when})" if only_when else ""
    return while_reserved(
        f"!({_REF_IN_BOTH}){guard}"
        f" || self.spec.priorityClassRef.{part} == oldSelf.spec.priorityClassRef.{part}",
        f"priorityClassRef.{part} {_REF_IMMUTABLE}",
    )


ASSIGNMENTS_MATCH: Final = cel(
    f"!({holds('self', 'QuotaReserved')}) || !has(self.status.admission)"
    f" || {count_of('self', 'status.admission.podSetAssignments')}"
    f" == {count_of('self', 'spec.podSets')}",
    "podSetAssignments must have the same number of podSets as the spec",
)
REF_PRESENCE: Final = while_reserved(
    f"{has_spec('self', 'priorityClassRef')} == {has_spec('oldSelf', 'priorityClassRef')}",
    f"priorityClassRef {_REF_IMMUTABLE}",
)
REF_GROUP: Final = _ref_unchanged("group")
REF_KIND: Final = _ref_unchanged("kind")
REF_NAME: Final = _ref_unchanged(
    "name",
    only_when="self.spec.priorityClassRef.group == 'scheduling.k8s.io'"
    " && self.spec.priorityClassRef.kind == 'PriorityClass'",
)
QUEUE_NAME: Final = while_both(
    "QuotaReserved",
    f"({has_spec('self', 'queueName')} == {has_spec('oldSelf', 'queueName')}"
    f" && ({unchanged_if_both('queueName')}))",
    f"queueName {_REF_IMMUTABLE}",
)
MAXIMUM_EXECUTION_TIME: Final = while_both(
    "Admitted",
    f"({has_spec('self', 'maximumExecutionTimeSeconds')}"
    " ? self.spec.maximumExecutionTimeSeconds : 0)"
    f" == ({has_spec('oldSelf', 'maximumExecutionTimeSeconds')}"
    " ? oldSelf.spec.maximumExecutionTimeSeconds : 0)",
    "maximumExecutionTimeSeconds is immutable while the workload is admitted",
)
CLASS_SOURCE: Final = while_reserved(
    unchanged_if_both("priorityClassSource"), f"priorityClassSource {_REF_IMMUTABLE}"
)
CLASS_NAME: Final = while_reserved(
    "(has(self.spec) && has(self.spec.priorityClassSource)"
    " && self.spec.priorityClassSource == 'kueue.x-k8s.io/workloadpriorityclass')"
    f" || {unchanged_if_both('priorityClassName')}",
    f"priorityClassName {_REF_IMMUTABLE}",
)

MIN_COUNT: Final = cel(
    "!has(self.minCount) || self.minCount <= self.count",
    "minCount must not be greater than count",
)
CLUSTER_NAME: Final = cel(
    "!has(oldSelf.clusterName) || !has(self.clusterName)"
    " || oldSelf.clusterName == self.clusterName",
    "clusterName is immutable once set",
)
CLUSTER_NAME_OR_NOMINATED: Final = cel(
    "!has(self.clusterName) || !has(self.nominatedClusterNames)"
    " || size(self.nominatedClusterNames) == 0",
    "clusterName and nominatedClusterNames can't be set together",
)
