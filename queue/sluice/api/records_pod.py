"""Records of pod templates, pods and nodes, and the label rules that they share.

Used by the engine for requests, flavor eligibility and topology. A `PodTemplate` carries a
canonical key of everything in it that matters, so equal templates can be compared and cached
cheaply; `wire` also shares one record among equal templates. Pure.
"""

from dataclasses import dataclass
from fractions import Fraction

from sluice.api.names import ResourceName

Resources = tuple[tuple[ResourceName, Fraction], ...]
"""Exact quantities by resource name, in the order of the names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One match expression; operators In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: dict[str, str]) -> bool:
        """Tell whether the labels satisfy the expression; an unknown operator never matches."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return self._compares(value)
            case _:
                return False

    def _compares(self, value: str | None) -> bool:
        if value is None or len(self.values) != 1:
            return False
        try:
            have, want = int(value), int(self.values[0])
        except ValueError:
            return False
        return have > want if self.operator == "Gt" else have < want


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelector:
    """A metav1.LabelSelector; empty matches everything.

    Attributes:
        error: Why the selector cannot be evaluated; such a selector matches nothing.
    """

    match_labels: tuple[tuple[str, str], ...] = ()
    expressions: tuple[Requirement, ...] = ()
    error: str = ""

    def matches(self, labels: dict[str, str]) -> bool:
        """Tell whether all labels and expressions hold."""
        if self.error:
            return False
        for key, value in self.match_labels:
            if labels.get(key) != value:
                return False
        return all(expression.matches(labels) for expression in self.expressions)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSelectorTerm:
    """One term of a node affinity; its parts are and-ed."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferredTerm:
    """A preferred node affinity term and its weight, 1 to 100."""

    weight: int
    term: NodeSelectorTerm


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A node taint."""

    key: str
    value: str = ""
    effect: str = ""

    def __str__(self) -> str:
        text = f"{self.key}={self.value}" if self.value else self.key
        return f"{text}:{self.effect}" if self.effect else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A pod toleration; operators Equal (default), Exists, Lt, Gt."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Tell whether the taint is tolerated, by the rules of Kubernetes."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if not self.key and self.operator != "Exists":
            return False
        match self.operator:
            case "Exists":
                return True
            case "" | "Equal":
                return self.value == taint.value
            case "Lt" | "Gt":
                return self._compares(taint.value)
            case _:
                return False

    def _compares(self, value: str) -> bool:
        try:
            have, want = int(value), int(self.value)
        except ValueError:
            return False
        return have < want if self.operator == "Lt" else have > want


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """Resources of one container; ``is_sidecar``: an init container that keeps running."""

    name: str
    requests: Resources = ()
    limits: Resources = ()
    is_sidecar: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PodTemplate:
    """What a pod template asks for.

    Attributes:
        key: Canonical bytes of all that matters in the template; equal keys mean equal templates.
        shape_key: The part of the key without container resources and names
            (docs/spec/algorithm.md 2.7).
        has_pod_resources: The template has a pod-level resources block, even an empty one.
        affinity_terms: Required node affinity terms (or-ed); None when there is no such affinity.
    """

    key: bytes
    shape_key: bytes = b""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Resources = ()
    has_pod_resources: bool = False
    pod_requests: Resources = ()
    pod_limits: Resources = ()
    runtime_class: str | None = None
    node_selector: tuple[tuple[str, str], ...] = ()
    affinity_terms: tuple[NodeSelectorTerm, ...] | None = None
    affinity_preferred: tuple[PreferredTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PodTemplate) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of the cluster, for topology-aware scheduling.

    Attributes:
        allocatable: (resource, quantity text).
    """

    name: str
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    allocatable: tuple[tuple[ResourceName, str], ...] = ()
    is_ready: bool = False
    is_unschedulable: bool = False
    resource_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod and what it takes from its node (docs/spec/algorithm.md 6.1).

    Attributes:
        node: Name of the node it is bound to, empty while unbound.
        uses_topology: It carries one of our topology annotations: its Workload is charged, not it.
        is_terminated: Its phase is Succeeded or Failed.
    """

    namespace: str
    name: str
    uid: str = ""
    node: str = ""
    uses_topology: bool = False
    is_terminated: bool = False
    template: PodTemplate
    resource_version: str = ""
