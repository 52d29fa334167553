"""Pod sets at start and stop: what admission injects into pod templates, and how it is taken back.

Pure functions on raw JSON. Order of merging: the flavors' own information, then each admission
check in the order of the status, then onto the job's template. A key that is already there with
another value can never work: `PodSetConflict`, and the Workload ends as FailedToStart.
Source: docs/spec/api.md 2.3.9. Called by ``sluice.controllers.jobs`` and by integrations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sluice.api import names
from sluice.api.errors import SluiceError
from sluice.jobs.integration import Json, PodSetInfo

_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_TEMPLATE_LISTS: Final = ("tolerations", "schedulingGates")
_EXPLICIT: Final = (
    "required",
    "preferred",
    "unconstrained",
    "podSetSliceRequiredTopology",
    "podSetSliceSize",
    "podsetSliceRequiredTopologyConstraints",
)
"""Fields of a topology request that ask for something (docs/spec/algorithm.md 6.2)."""


class PodSetConflict(SluiceError):
    """Admission and the template disagree about a key; trying again cannot help."""


class FlavorMissing(SluiceError):
    """A flavor of the admission does not exist any more; it may come back."""


def merge_maps(what: str, left: Mapping[str, str], right: Mapping[str, str]) -> dict[str, str]:
    """Return the union of two maps.

    Args:
        what: Field that the maps belong to, for the message.
        left: The map to extend.
        right: The map to add.

    Raises:
        PodSetConflict: A key has two values.
    """
    for key, value in right.items():
        if left.get(key, value) != value:
            raise PodSetConflict(
                f"conflict for {what}: key {key!r} is {left[key]!r} in the pod template or an "
                f"earlier source and {value!r} in the admission; remove it from the template"
            )
    return {**left, **right}


def merge_lists(left: Sequence[Json], right: Sequence[Json]) -> list[Json]:
    """Return both lists one after the other, without what occurs before."""
    result = list(left)
    result.extend(item for item in right if item not in result)
    return result


def merge_info(info: PodSetInfo, update: Mapping[str, Any]) -> PodSetInfo:
    """Return the information extended by an admission check's ``podSetUpdates`` element.

    Raises:
        PodSetConflict: A key has two values.
    """
    return PodSetInfo(
        name=info.name,
        count=info.count,
        labels=merge_maps("labels", info.labels, update.get("labels") or {}),
        annotations=merge_maps("annotations", info.annotations, update.get("annotations") or {}),
        node_selector=merge_maps(
            "nodeSelector", info.node_selector, update.get("nodeSelector") or {}
        ),
        tolerations=merge_lists(info.tolerations, update.get("tolerations") or ()),
        scheduling_gates=info.scheduling_gates,
    )


def infos_of(
    workload: Json, flavor_of: Callable[[str], Json | None], *, queue_labels: bool, topology: bool
) -> tuple[PodSetInfo, ...]:
    """Return what the admission of a Workload adds to each of its pod sets.

    Args:
        workload: Workload with ``status.admission``.
        flavor_of: Returns a ResourceFlavor by name, or None when there is none.
        queue_labels: Gate AssignQueueLabelsForPods.
        topology: Gate TopologyAwareScheduling.

    Raises:
        PodSetConflict: Two admission checks, or a check and a flavor, disagree.
        FlavorMissing: A flavor of the admission does not exist.
    """
    status = workload.get("status") or {}
    admission = status.get("admission") or {}
    counts = {p.get("name", "main"): p for p in workload["spec"].get("podSets") or ()}
    infos = []
    for assignment in admission.get("podSetAssignments") or ():
        name = assignment.get("name", "main")
        spec_count = counts.get(name, {}).get("count", 1)
        is_implied = _is_implied(assignment, counts.get(name, {}), flavor_of)
        info = PodSetInfo(
            name=name,
            count=assignment.get("count", spec_count),
            labels=_labels(workload, name, queue_labels),
            annotations=_annotations(workload, is_implied) if topology else {},
            **_from_flavors(assignment, flavor_of),
        )
        for check in status.get("admissionChecks") or ():
            for update in check.get("podSetUpdates") or ():
                if update.get("name") == name:
                    info = merge_info(info, update)
        infos.append(info)
    return tuple(infos)


def _labels(workload: Json, pod_set: str, queue_labels: bool) -> dict[str, str]:
    labels = {names.POD_SET_LABEL: pod_set}
    if queue_labels:
        local_queue = workload["spec"].get("queueName", "")
        cluster_queue = workload["status"]["admission"].get("clusterQueue", "")
        if local_queue and len(local_queue) <= 63:
            labels[names.LOCAL_QUEUE_LABEL] = local_queue
        if _DNS_LABEL.fullmatch(cluster_queue):
            labels[names.CLUSTER_QUEUE_LABEL] = cluster_queue
    if names.MULTIKUEUE_ORIGIN_LABEL in (workload["metadata"].get("labels") or {}):
        labels[names.MULTIKUEUE_WORKER_POD_LABEL] = "true"
    return labels


def _annotations(workload: Json, is_implied: bool) -> dict[str, str]:
    result = {names.WORKLOAD_ANNOTATION: workload["metadata"]["name"]}
    if is_implied:
        # It marks pods that are charged to their Workload, not once more to their node.
        result[names.UNCONSTRAINED_TOPOLOGY] = "true"
    return result


def _is_implied(
    assignment: Mapping[str, Any],
    pod_set: Mapping[str, Any],
    flavor_of: Callable[[str], Json | None],
) -> bool:
    """Tell whether a pod set that asks for no topology got a flavor with one."""
    request = pod_set.get("topologyRequest") or {}
    if any(request.get(field) is not None for field in _EXPLICIT):
        return False
    flavors = (flavor_of(name) or {} for name in (assignment.get("flavors") or {}).values())
    return any((flavor.get("spec") or {}).get("topologyName") for flavor in flavors)


def _from_flavors(
    assignment: Mapping[str, Any], flavor_of: Callable[[str], Json | None]
) -> dict[str, Any]:
    selector: dict[str, str] = {}
    tolerations: list[Json] = []
    # Flavors are taken in the order of their resource names; a later one wins, without a conflict
    # (docs/spec/api.md 2.3.9: no conflict test between flavors).
    chosen = assignment.get("flavors") or {}
    for name in dict.fromkeys(chosen[resource] for resource in sorted(chosen)):
        flavor = flavor_of(name)
        if flavor is None:
            raise FlavorMissing(f"ResourceFlavor {name!r} of the admission does not exist")
        spec = flavor.get("spec") or {}
        selector.update(spec.get("nodeLabels") or {})
        tolerations = merge_lists(tolerations, spec.get("tolerations") or ())
    gates = [{"name": names.TOPOLOGY_GATE}] if assignment.get("topologyAssignment") else []
    return {"node_selector": selector, "tolerations": tolerations, "scheduling_gates": gates}


def inject(template: Json, info: PodSetInfo) -> Json:
    """Return a pod template with the information merged in; the given one stays as it is.

    Raises:
        PodSetConflict: The template has a key with another value.
    """
    metadata = dict(template.get("metadata") or {})
    spec = dict(template.get("spec") or {})
    for where, fields, added in (
        ("labels", metadata, info.labels),
        ("annotations", metadata, info.annotations),
        ("nodeSelector", spec, info.node_selector),
    ):
        if added:
            fields[where] = merge_maps(where, fields.get(where) or {}, added)
    for where, items in (
        ("tolerations", info.tolerations),
        ("schedulingGates", info.scheduling_gates),
    ):
        if items:
            spec[where] = merge_lists(spec.get(where) or (), items)
    return {**template, "metadata": metadata, "spec": spec}


def restore(template: Json, original: Json, *, kept_labels: Sequence[str] = ()) -> Json:
    """Return a pod template with labels, annotations, selectors, tolerations and gates put back.

    Args:
        template: The template as it is in the job.
        original: The template as the Workload remembers it.
        kept_labels: Labels that the job's own controller manages and that stay.
    """
    metadata = dict(template.get("metadata") or {})
    spec = dict(template.get("spec") or {})
    before = original.get("metadata") or {}
    labels = dict(before.get("labels") or {})
    present = metadata.get("labels") or {}
    labels.update({key: present[key] for key in kept_labels if key in present})
    _put(metadata, "labels", labels)
    _put(metadata, "annotations", before.get("annotations"))
    original_spec = original.get("spec") or {}
    _put(spec, "nodeSelector", original_spec.get("nodeSelector"))
    for where in _TEMPLATE_LISTS:
        _put(spec, where, original_spec.get(where))
    return {**template, "metadata": metadata, "spec": spec}


def _put(fields: Json, where: str, value: object) -> None:
    if value:
        fields[where] = value
    else:
        fields.pop(where, None)


def bare_template(template: Json, *, dropped_labels: Sequence[str] = ()) -> Json:
    """Return a template as a Workload keeps it: metadata without all but labels and annotations.

    Environment variables that occur twice keep the last value, because the Workload's schema
    takes each name once (docs/spec/api.md 2.3.10).
    """
    given = template.get("metadata") or {}
    metadata: Json = {}
    labels = {k: v for k, v in (given.get("labels") or {}).items() if k not in dropped_labels}
    _put(metadata, "labels", labels)
    _put(metadata, "annotations", given.get("annotations"))
    spec = dict(template.get("spec") or {})
    for where in ("containers", "initContainers"):
        if spec.get(where):
            spec[where] = [_unique_env(container) for container in spec[where]]
    return {"metadata": metadata, "spec": spec}


def _unique_env(container: Json) -> Json:
    env = container.get("env")
    if not env or len({item["name"] for item in env}) == len(env):
        return container
    last = {item["name"]: item for item in env}
    return {**container, "env": list(last.values())}
