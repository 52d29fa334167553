"""Validation of Cohorts beyond their schema. Pure. Source: docs/spec/api.md 2.2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluice.api.errors import FieldError
from sluice.api.validate.gates import Gates
from sluice.api.validate.node import Node
from sluice.api.validate.quotas import LimitRules, fair_sharing, resource_groups


def on_create(new: Mapping[str, Any], gates: Gates) -> list[FieldError]:
    """Return what is wrong with a new Cohort.

    Raises:
        InvalidObject: A value has the wrong JSON type.
    """
    del gates  # No rule of Cohorts depends on one.
    spec = Node(new).map("spec")
    rules = LimitRules(
        has_parent=bool(spec.text("parentName")),
        orphan_detail="must be nil when parent is empty",
        lending_within_nominal=False,
    )
    return fair_sharing(spec) + resource_groups(spec, rules)


def on_update(old: Mapping[str, Any], new: Mapping[str, Any], gates: Gates) -> list[FieldError]:
    """Return what is wrong with a changed Cohort; nothing of a Cohort is immutable.

    Raises:
        InvalidObject: A value has the wrong JSON type.
    """
    del old
    return on_create(new, gates)
