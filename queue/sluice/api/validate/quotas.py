"""Rules that ClusterQueue and Cohort share: resource groups, limits and fair-sharing weights.

Pure. Called by ``cluster_queue`` and ``cohort``. Source: docs/spec/api.md 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sluice.api import quantity
from sluice.api.errors import FieldError, duplicate, invalid
from sluice.api.validate.node import Node
from sluice.api.validate.syntax import NEGATIVE, check, qualified_name

_WEIGHT_MIN: Final = Fraction(1, 10**9)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRules:
    """What borrowing and lending limits must obey.

    Attributes:
        has_parent: Whether there is a cohort to borrow from and lend to.
        orphan_detail: Text for a limit without one.
        lending_within_nominal: Whether a lending limit above the nominal quota is refused.
    """

    has_parent: bool
    orphan_detail: str
    lending_within_nominal: bool


def amount(node: Node, name: str, errors: list[FieldError]) -> Fraction | None:
    """Return a quantity; None when it is absent or unreadable, which is an error added."""
    if not node.has(name):
        return None
    value = node.raw(name)
    try:
        return quantity.parse(value)
    except ValueError as error:
        errors.append(invalid(node.at(name), value, str(error)))
        return None


def resource_groups(spec: Node, rules: LimitRules) -> list[FieldError]:
    """Return the errors of ``spec.resourceGroups``."""
    errors: list[FieldError] = []
    resources_seen: set[str] = set()
    flavors_seen: set[str] = set()
    for group in spec.items("resourceGroups"):
        covered = group.texts("coveredResources")
        for j, resource in enumerate(covered):
            path = f"{group.at('coveredResources')}[{j}]"
            errors += check(path, resource, qualified_name)
            if resource in resources_seen:
                errors.append(duplicate(path, resource))
            resources_seen.add(resource)
        for flavor in group.items("flavors"):
            errors += _flavor(flavor, covered, rules)
            name = flavor.text("name")
            if name in flavors_seen:
                errors.append(duplicate(flavor.at("name"), name))
            flavors_seen.add(name)
    return errors


def _flavor(flavor: Node, covered: list[str], rules: LimitRules) -> list[FieldError]:
    errors: list[FieldError] = []
    # The schema holds both lists to one length; what lies beyond the shorter is its business.
    for resource, expected in zip(flavor.items("resources"), covered, strict=False):
        name = resource.text("name")
        if name != expected:
            errors.append(
                invalid(resource.at("name"), name, "must match the name in coveredResources")
            )
        errors += _limits(resource, rules)
    return errors


def _limits(resource: Node, rules: LimitRules) -> list[FieldError]:
    errors: list[FieldError] = []
    nominal = amount(resource, "nominalQuota", errors)
    if nominal is not None and nominal < 0:
        errors.append(invalid(resource.at("nominalQuota"), resource.raw("nominalQuota"), NEGATIVE))
    for field in ("borrowingLimit", "lendingLimit"):
        limit = amount(resource, field, errors)
        if limit is None:
            continue
        path, shown = resource.at(field), resource.raw(field)
        if limit < 0:
            errors.append(invalid(path, shown, NEGATIVE))
        if not rules.has_parent:
            errors.append(invalid(path, shown, rules.orphan_detail))
        is_lending = field == "lendingLimit" and rules.lending_within_nominal
        if is_lending and nominal is not None and limit > nominal:
            errors.append(invalid(path, shown, "must be less than or equal to the nominalQuota"))
    return errors


def fair_sharing(spec: Node) -> list[FieldError]:
    """Return the errors of ``spec.fairSharing``; they stand at the object, not at its weight."""
    errors: list[FieldError] = []
    sharing = spec.map("fairSharing")
    weight = amount(sharing, "weight", errors)
    if weight is None:
        return errors
    if weight < 0:
        errors.append(invalid(sharing.path, sharing.raw("weight"), NEGATIVE))
    elif 0 < weight <= _WEIGHT_MIN:
        errors.append(invalid(sharing.path, sharing.raw("weight"), "must be 0 or more than 1n"))
    return errors
