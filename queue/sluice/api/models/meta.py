"""Objects of Kubernetes itself that the kinds embed: metadata, conditions, selectors, taints.

Shapes follow the Kubernetes API conventions; bounds of conditions and the rules on taints and
tolerations are those of docs/spec/api.md ("Conventions") and 1.5. Used by the modules of this
package.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from sluice.api.models.base import (
    INT64_MAX,
    LABEL_KEY_PATTERN,
    REASON_PATTERN,
    Int64,
    Model,
    Timestamp,
)
from sluice.api.models.schema import ATOMIC_LIST, ATOMIC_MAP, Extension, cel, map_list, rules


class OwnerReference(Model):
    """The object that this one belongs to and is deleted with."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Model):
    """Metadata of a stored object, as the API server keeps it."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    deletion_grace_period_seconds: int | None = None
    self_link: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerReference] | None = None
    managed_fields: list[dict[str, Any]] | None = None


class TemplateMeta(Model):
    """The part of a pod template's metadata that is kept; anything else is pruned."""

    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    labels: dict[str, str] | None = None
    name: str | None = None
    namespace: str | None = None


class Condition(Model):
    """One aspect of an object's state."""

    type: Annotated[str, Field(max_length=316, pattern=LABEL_KEY_PATTERN)]
    """Which aspect this is about, in CamelCase."""
    status: Literal["True", "False", "Unknown"]
    """Whether the aspect holds."""
    observed_generation: (
        Annotated[int, Field(ge=0, le=INT64_MAX), Extension({"format": "int64"})] | None
    ) = None
    """The metadata.generation that this statement was made about."""
    last_transition_time: Timestamp
    """When the status last changed."""
    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=REASON_PATTERN)]
    """Why the status is what it is, as one CamelCase word for programs."""
    message: Annotated[str, Field(max_length=32768)]
    """Why the status is what it is, as a sentence for people."""


UnboundedConditions = Annotated[list[Condition], map_list("type")]
"""Conditions as v1beta1 has them."""

Conditions = Annotated[list[Condition], Field(max_length=16), map_list("type")]
"""Conditions as v1beta2 has them: at most sixteen."""


class LabelSelectorRequirement(Model):
    """A test of one label against a set of values."""

    key: str
    """The label that is tested."""
    operator: str
    """How it is tested: In, NotIn, Exists or DoesNotExist."""
    values: Annotated[list[str], ATOMIC_LIST] | None = None
    """The values for In and NotIn; must be empty for Exists and DoesNotExist."""


class LabelSelector(Model):
    """A test of labels; all its parts must hold. An empty selector takes everything."""

    match_expressions: Annotated[list[LabelSelectorRequirement], ATOMIC_LIST] | None = None
    """Tests that must all hold."""
    match_labels: dict[str, str] | None = None
    """Labels that must be there with exactly these values."""


AtomicLabelSelector = Annotated[LabelSelector, ATOMIC_MAP]


class Taint(Model):
    """A mark on nodes that keeps away the pods that do not tolerate it."""

    key: str
    """The key of the taint."""
    value: str | None = None
    """The value of the taint."""
    effect: str
    """What happens to pods that do not tolerate it: NoSchedule, PreferNoSchedule or NoExecute."""
    time_added: Timestamp | None = None
    """When the taint was put on the node."""


class Toleration(Model):
    """A statement that a pod may run in spite of certain taints."""

    key: str | None = None
    """The key of the tolerated taints; empty, with operator Exists, means all keys."""
    operator: str | None = None
    """How value is compared: Equal (when empty) or Exists."""
    value: str | None = None
    """The value of the tolerated taints; must be empty with operator Exists."""
    effect: str | None = None
    """The effect that is tolerated; empty means all effects."""
    toleration_seconds: Int64 | None = None
    """How long a pod stays after a NoExecute taint appears, in seconds; absent means forever."""


TOLERATION_RULES = rules(
    cel(
        "self.all(t, has(t.key) || (has(t.operator) && t.operator == 'Exists'))",
        "operator must be Exists when key is absent",
    ),
    cel(
        "self.all(t, !has(t.tolerationSeconds) || (has(t.effect) && t.effect == 'NoExecute'))",
        "effect must be NoExecute when tolerationSeconds is set",
    ),
    cel(
        "self.all(t, !has(t.operator) || t.operator in ['Equal', 'Exists'])",
        "operator must be one of Equal, Exists",
    ),
    cel(
        "self.all(t, !has(t.operator) || t.operator != 'Exists' || !has(t.value))",
        "value must be absent when operator is Exists",
    ),
    cel(
        "self.all(t, !has(t.effect)"
        " || t.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",
        "effect must be one of NoSchedule, PreferNoSchedule, NoExecute",
    ),
)
"""docs/spec/api.md 1.5, the five rules on a list of tolerations."""

Tolerations = Annotated[list[Toleration], Field(max_length=8), ATOMIC_LIST, TOLERATION_RULES]
Taints = Annotated[list[Taint], Field(max_length=8), ATOMIC_LIST]
NodeLabels = Annotated[dict[str, str], Field(max_length=8), ATOMIC_MAP]
