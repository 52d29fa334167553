"""Validation of ClusterQueues beyond their schema. Pure. Source: docs/spec/api.md 2.2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sluice.api.errors import FieldError, forbidden, invalid, not_supported
from sluice.api.validate.gates import Gate, Gates, is_on
from sluice.api.validate.node import Node
from sluice.api.validate.quotas import LimitRules, fair_sharing, resource_groups
from sluice.api.validate.syntax import IMMUTABLE, label_selector

_FLAVORS_MAX: Final = 256
_RESOURCES_MAX: Final = 256
_PAIRS_MAX: Final = 512
_CONCURRENT_FLAVORS_MAX: Final = 16


def on_create(new: Mapping[str, Any], gates: Gates) -> list[FieldError]:
    """Return what is wrong with a new ClusterQueue.

    Raises:
        InvalidObject: A value has the wrong JSON type.
    """
    return _validate(Node(new).map("spec"), None, gates)


def on_update(old: Mapping[str, Any], new: Mapping[str, Any], gates: Gates) -> list[FieldError]:
    """Return what is wrong with a changed ClusterQueue.

    Raises:
        InvalidObject: A value has the wrong JSON type.
    """
    before, after = Node(old).map("spec"), Node(new).map("spec")
    errors = _validate(after, before, gates)
    policy = after.raw("concurrentAdmissionPolicy")
    if policy != before.raw("concurrentAdmissionPolicy"):
        errors.append(invalid(after.at("concurrentAdmissionPolicy"), policy, IMMUTABLE))
    return errors


def _validate(spec: Node, old: Node | None, gates: Gates) -> list[FieldError]:
    rules = LimitRules(
        has_parent=bool(spec.text("cohortName")),
        orphan_detail="must be nil when cohort is empty",
        lending_within_nominal=True,
    )
    errors = resource_groups(spec, rules)
    if selector := spec.optional("namespaceSelector"):
        errors += label_selector(selector)
    errors += _preemption(spec)
    errors += _fungibility(spec)
    errors += fair_sharing(spec)
    errors += _totals(spec)
    errors += _on_flavors(spec, old, gates)
    if is_on(gates, Gate.CONCURRENT_ADMISSION) and spec.has("concurrentAdmissionPolicy"):
        errors += _concurrent_admission(spec)
    return errors


def _preemption(spec: Node) -> list[FieldError]:
    preemption = spec.map("preemption")
    borrow = preemption.map("borrowWithinCohort").text("policy", "Never")
    if preemption.text("reclaimWithinCohort", "Never") == "Never" and borrow != "Never":
        detail = "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never"
        return [invalid(preemption.path, dict(preemption.value), detail)]
    return []


def _fungibility(spec: Node) -> list[FieldError]:
    fungibility = spec.map("flavorFungibility")
    preference = fungibility.text("preference")
    searches_on = (
        fungibility.text("whenCanBorrow", "MayStopSearch") == "TryNextFlavor"
        and fungibility.text("whenCanPreempt", "TryNextFlavor") == "TryNextFlavor"
    )
    if preference and not searches_on:
        detail = "may only be set when whenCanBorrow and whenCanPreempt are both TryNextFlavor"
        return [invalid(fungibility.at("preference"), preference, detail)]
    return []


def _totals(spec: Node) -> list[FieldError]:
    path = spec.at("resourceGroups")
    errors: list[FieldError] = []
    groups = spec.items("resourceGroups")
    flavors = sum(group.length("flavors") for group in groups)
    if flavors > _FLAVORS_MAX:
        detail = f"must not have more than {_FLAVORS_MAX} flavors in all groups together"
        errors.append(invalid(path, flavors, detail))
    resources = sum(group.length("coveredResources") for group in groups)
    if resources > _RESOURCES_MAX:
        detail = f"must not have more than {_RESOURCES_MAX} coveredResources in all groups together"
        errors.append(invalid(path, resources, detail))
    for group in groups:
        pairs = sum(flavor.length("resources") for flavor in group.items("flavors"))
        if pairs > _PAIRS_MAX:
            detail = f"must not have more than {_PAIRS_MAX} resources in all its flavors together"
            errors.append(invalid(group.path, pairs, detail))
    return errors


def _flavor_names(spec: Node) -> list[str]:
    groups = spec.items("resourceGroups")
    return [flavor.text("name") for group in groups for flavor in group.items("flavors")]


def _checks(spec: Node) -> list[Node]:
    return spec.map("admissionChecksStrategy").items("admissionChecks")


def _on_flavors(spec: Node, old: Node | None, gates: Gates) -> list[FieldError]:
    flavors = _flavor_names(spec)
    known = set(flavors)
    tolerated: dict[str, frozenset[str]] = {}
    is_lenient = not is_on(gates, Gate.REJECT_INVALID_ON_FLAVORS)
    if old is not None and is_lenient and set(_flavor_names(old)) == known:
        # An entry that was let in before the rule existed must not block other updates.
        tolerated = {c.text("name"): frozenset(c.texts("onFlavors")) for c in _checks(old)}
    errors: list[FieldError] = []
    for admission_check in _checks(spec):
        wanted = admission_check.texts("onFlavors")
        if tolerated.get(admission_check.text("name")) == frozenset(wanted):
            continue
        path = admission_check.at("onFlavors")
        errors += [
            not_supported(f"{path}[{j}]", flavor, _unique(flavors))
            for j, flavor in enumerate(wanted)
            if flavor not in known
        ]
    return errors


def _unique(names: Iterable[str]) -> list[str]:
    return sorted(set(names))


def _concurrent_admission(spec: Node) -> list[FieldError]:
    errors: list[FieldError] = []
    groups = spec.items("resourceGroups")
    path = spec.at("resourceGroups")
    if len(groups) != 1:
        detail = "must have exactly one resource group when concurrentAdmissionPolicy is set"
        errors.append(invalid(path, len(groups), detail))
    elif (count := groups[0].length("flavors")) > _CONCURRENT_FLAVORS_MAX:
        detail = (
            f"must not have more than {_CONCURRENT_FLAVORS_MAX} flavors "
            "when concurrentAdmissionPolicy is set"
        )
        errors.append(invalid(groups[0].at("flavors"), count, detail))
    migration = spec.map("concurrentAdmissionPolicy", "migration")
    if constraints := migration.optional("constraints"):
        if migration.text("mode") != "TryPreferredFlavors":
            detail = "may only be set when mode is TryPreferredFlavors"
            errors.append(forbidden(constraints.path, detail))
        last = constraints.text("lastAcceptableFlavorName")
        if last and last not in _flavor_names(spec):
            detail = "must be one of the flavors of the ClusterQueue"
            errors.append(invalid(constraints.at("lastAcceptableFlavorName"), last, detail))
    if (strategy := spec.text("queueingStrategy")) == "StrictFIFO":
        detail = "must not be StrictFIFO when concurrentAdmissionPolicy is set"
        errors.append(invalid(spec.at("queueingStrategy"), strategy, detail))
    return errors
