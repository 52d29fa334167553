"""Raw JSON of pod templates, pods, nodes and label selectors to records.

Templates are shared: equal ones (in all that matters to a decision) give the same record, found by
a canonical key. Part of `sluice.api.wire`, which is what others import. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import orjson

from sluice.api import names, quantity
from sluice.api.names import ResourceName
from sluice.api.records_pod import (
    Container,
    LabelSelector,
    Node,
    NodeSelectorTerm,
    Pod,
    PodTemplate,
    PreferredTerm,
    Requirement,
    Resources,
    Taint,
    Toleration,
)

JsonObject = Mapping[str, Any]
_TEMPLATES_MAX: Final = 8192
_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
_SHAPE_FIELDS: Final = (
    "nodeSelector", "affinity", "tolerations", "runtimeClassName", "priority",
    "topologySpreadConstraints", "overhead", "resourceClaims", "resources",
)  # fmt: skip
_TOPOLOGY_MARKS: Final = (
    names.REQUIRED_TOPOLOGY, names.PREFERRED_TOPOLOGY, names.UNCONSTRAINED_TOPOLOGY,
    names.SLICE_REQUIRED_TOPOLOGY, names.SLICE_CONSTRAINTS,
)  # fmt: skip


def pairs(mapping: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Return a string map as pairs in key order."""
    return tuple(sorted((mapping or {}).items()))


def quantity_texts(mapping: Mapping[str, object] | None) -> tuple[tuple[ResourceName, str], ...]:
    """Return a map of quantities as text, in name order."""
    return tuple((ResourceName(n), str(v)) for n, v in sorted((mapping or {}).items()))


def resources(mapping: Mapping[str, object] | None) -> Resources:
    """Return a map of quantities as exact numbers, in name order.

    Raises:
        ValueError: A value is not a quantity.
    """
    return tuple((ResourceName(n), quantity.parse(v)) for n, v in sorted((mapping or {}).items()))


def requirement(raw: JsonObject) -> Requirement:
    """Return one match expression of a label selector or a node selector term."""
    return Requirement(
        key=raw["key"], operator=raw["operator"], values=tuple(raw.get("values") or ())
    )


def label_selector(raw: JsonObject | None) -> LabelSelector | None:
    """Return a label selector; None stays None (it selects nothing)."""
    if raw is None:
        return None
    expressions = tuple(requirement(e) for e in raw.get("matchExpressions") or ())
    error = ""
    for expression in expressions:
        if expression.operator not in _OPERATORS:
            error = f'"{expression.operator}" is not a valid label selector operator'
        elif (expression.operator in ("In", "NotIn")) != bool(expression.values):
            error = (
                f"values of operator {expression.operator!r} on key {expression.key!r} are wrong"
            )
    return LabelSelector(
        match_labels=pairs(raw.get("matchLabels")), expressions=expressions, error=error
    )


def toleration(raw: JsonObject) -> Toleration:
    """Return a toleration."""
    return Toleration(
        key=raw.get("key") or "",
        operator=raw.get("operator") or "Equal",
        value=raw.get("value") or "",
        effect=raw.get("effect") or "",
        seconds=raw.get("tolerationSeconds"),
    )


def taint(raw: JsonObject) -> Taint:
    """Return a taint."""
    return Taint(key=raw["key"], value=raw.get("value") or "", effect=raw.get("effect") or "")


def _term(raw: JsonObject) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        expressions=tuple(requirement(e) for e in raw.get("matchExpressions") or ()),
        fields=tuple(requirement(e) for e in raw.get("matchFields") or ()),
    )


def _container(raw: JsonObject, *, is_init: bool) -> Container:
    block = raw.get("resources") or {}
    return Container(
        name=raw.get("name") or "",
        requests=resources(block.get("requests")),
        limits=resources(block.get("limits")),
        is_sidecar=is_init and raw.get("restartPolicy") == "Always",
    )


def _reduced(raw: JsonObject | Sequence[JsonObject] | None) -> list[list[object]]:
    return [
        [c.get("name"), c.get("resources"), c.get("restartPolicy"), c.get("ports")]
        for c in raw or ()
        if isinstance(c, Mapping)
    ]


def template(spec: JsonObject | None) -> PodTemplate:
    """Return the record of a PodSpec; equal specs share one record.

    Raises:
        ValueError: A quantity cannot be read.
    """
    spec = spec or {}
    parts = [_reduced(spec.get("containers")), _reduced(spec.get("initContainers"))]
    rest = [spec.get(field) for field in _SHAPE_FIELDS]
    return _template(orjson.dumps([parts, rest], option=orjson.OPT_SORT_KEYS))


@lru_cache(maxsize=_TEMPLATES_MAX)
def _template(key: bytes) -> PodTemplate:
    (containers, inits), rest = orjson.loads(key)
    spec: dict[str, Any] = dict(zip(_SHAPE_FIELDS, rest, strict=True))
    node_affinity = ((spec["affinity"] or {}).get("nodeAffinity")) or {}
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    preferred = node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    block = spec["resources"]
    shape = [[c[3] for c in containers], [[c[2], c[3]] for c in inits], rest]
    return PodTemplate(
        key=key,
        shape_key=orjson.dumps(shape, option=orjson.OPT_SORT_KEYS),
        containers=_containers(containers, is_init=False),
        init_containers=_containers(inits, is_init=True),
        overhead=resources(spec["overhead"]),
        has_pod_resources=block is not None,
        pod_requests=resources((block or {}).get("requests")),
        pod_limits=resources((block or {}).get("limits")),
        runtime_class=spec["runtimeClassName"] or None,
        node_selector=pairs(spec["nodeSelector"]),
        affinity_terms=None
        if required is None
        else tuple(_term(t) for t in required.get("nodeSelectorTerms") or ()),
        affinity_preferred=tuple(
            PreferredTerm(weight=p["weight"], term=_term(p.get("preference") or {}))
            for p in preferred
        ),
        tolerations=tuple(toleration(t) for t in spec["tolerations"] or ()),
    )


def _containers(reduced: Iterable[list[Any]], *, is_init: bool) -> tuple[Container, ...]:
    return tuple(
        _container({"name": n, "resources": r, "restartPolicy": p}, is_init=is_init)
        for n, r, p, _ in reduced
    )


def node(raw: JsonObject) -> Node:
    """Return the record of a Node."""
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    ready = any(
        c.get("type") == "Ready" and c.get("status") == "True"
        for c in status.get("conditions") or ()
    )
    return Node(
        name=meta["name"],
        labels=pairs(meta.get("labels")),
        taints=tuple(taint(t) for t in spec.get("taints") or ()),
        allocatable=quantity_texts(status.get("allocatable")),
        is_ready=ready,
        is_unschedulable=bool(spec.get("unschedulable")),
        resource_version=meta.get("resourceVersion") or "",
    )


def pod(raw: JsonObject) -> Pod:
    """Return the record of a Pod."""
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    marks = {**(meta.get("labels") or {}), **(meta.get("annotations") or {})}
    return Pod(
        namespace=meta.get("namespace") or "",
        name=meta["name"],
        uid=meta.get("uid") or "",
        node=spec.get("nodeName") or "",
        uses_topology=any(mark in marks for mark in _TOPOLOGY_MARKS),
        is_terminated=status.get("phase") in ("Succeeded", "Failed"),
        template=template(spec),
        resource_version=meta.get("resourceVersion") or "",
    )
