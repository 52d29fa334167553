"""Validation of CreditPolicies beyond their schema. Pure. Source: docs/spec/credits.md 4.

What only other objects make wrong (no such cohort, not a root, an older policy for the same tree)
is a condition, not an error: objects may be applied in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from sluice.api import quantity, times
from sluice.api.errors import FieldError, duplicate, invalid, required
from sluice.api.validate.gates import Gates
from sluice.api.validate.node import Node

VERSION: Final = "v1alpha1"
SECOND_MS: Final = 1000
PERIOD_MS: Final = (10 * SECOND_MS, 3_600 * SECOND_MS)
HORIZON_MS_MAX: Final = 30 * 86_400 * SECOND_MS
WEIGHT_MAX: Final = 10**12
BALANCE_MAX: Final = 10**15
"""In unit-hours; keeps every balance far within what a status can show."""

_ZERO = Fraction(0)
_PERIOD_DEFAULT = "60s"
_HORIZON_DEFAULT = "1h"


def on_create(new: Mapping[str, Any], gates: Gates) -> list[FieldError]:
    """Return what is wrong with a new CreditPolicy.

    Raises:
        InvalidObject: A value has the wrong JSON type.
    """
    del gates  # No rule depends on one.
    spec = Node(new).map("spec")
    errors: list[FieldError] = []
    if not spec.text("cohortName"):
        errors.append(required(spec.at("cohortName"), "name the root cohort of a tree"))
    return errors + _durations(spec) + _balances(spec) + _weights(spec)


def on_update(old: Mapping[str, Any], new: Mapping[str, Any], gates: Gates) -> list[FieldError]:
    """Return what is wrong with a changed CreditPolicy.

    Raises:
        InvalidObject: A value has the wrong JSON type.
    """
    errors = on_create(new, gates)
    spec = Node(new).map("spec")
    before, after = Node(old).map("spec").text("cohortName"), spec.text("cohortName")
    if before and before != after:
        detail = "field is immutable; make another CreditPolicy for another tree"
        errors.append(invalid(spec.at("cohortName"), after, detail))
    return errors


def _durations(spec: Node) -> list[FieldError]:
    errors: list[FieldError] = []
    period_ms = _duration(spec, "settlementPeriod", _PERIOD_DEFAULT, errors)
    horizon_ms = _duration(spec, "horizon", _HORIZON_DEFAULT, errors)
    least_ms, most_ms = PERIOD_MS
    if period_ms is not None:
        path, value = spec.at("settlementPeriod"), spec.text("settlementPeriod")
        if not least_ms <= period_ms <= most_ms:
            errors.append(invalid(path, value, "must be from 10s to 1h"))
        elif period_ms % SECOND_MS:
            errors.append(invalid(path, value, "must be whole seconds"))
    if horizon_ms is not None:
        path, value = spec.at("horizon"), spec.text("horizon", _HORIZON_DEFAULT)
        if horizon_ms > HORIZON_MS_MAX:
            errors.append(invalid(path, value, "must be at most 720h"))
        elif period_ms is not None and horizon_ms < period_ms:
            errors.append(invalid(path, value, "must be at least settlementPeriod"))
    if spec.has("halfLife"):
        half_life_ms = _duration(spec, "halfLife", "", errors)
        if half_life_ms is not None and half_life_ms < SECOND_MS:
            value = spec.text("halfLife")
            errors.append(invalid(spec.at("halfLife"), value, "must be at least 1s"))
    return errors


def _duration(spec: Node, field: str, default: str, errors: list[FieldError]) -> int | None:
    text = spec.text(field, default)
    try:
        return times.duration_ms(text)
    except ValueError:
        detail = "must be a duration such as 60s or 1h30m"
        errors.append(invalid(spec.at(field), text, detail))
        return None


def _balances(spec: Node) -> list[FieldError]:
    errors: list[FieldError] = []
    initial = _amount(spec, "initialBalance", errors) or _ZERO
    floor = _amount(spec, "minBalance", errors)
    ceiling = _amount(spec, "maxBalance", errors)
    if floor is not None and floor > 0:
        errors.append(invalid(spec.at("minBalance"), spec.raw("minBalance"), "must be at most 0"))
    if ceiling is not None and ceiling < 0:
        value = spec.raw("maxBalance")
        errors.append(invalid(spec.at("maxBalance"), value, "must not be negative"))
    value = spec.raw("initialBalance")
    if floor is not None and initial < min(floor, _ZERO):
        detail = "must not be below minBalance"
        errors.append(invalid(spec.at("initialBalance"), value, detail))
    if ceiling is not None and initial > max(ceiling, _ZERO):
        detail = "must not be above maxBalance"
        errors.append(invalid(spec.at("initialBalance"), value, detail))
    return errors


def _amount(spec: Node, field: str, errors: list[FieldError]) -> Fraction | None:
    if not spec.has(field):
        return None
    value = spec.raw(field)
    try:
        number = quantity.parse(value)
    except ValueError as error:
        errors.append(invalid(spec.at(field), value, str(error)))
        return None
    if abs(number) > BALANCE_MAX:
        detail = f"must be between -{BALANCE_MAX} and {BALANCE_MAX} unit-hours"
        errors.append(invalid(spec.at(field), value, detail))
        return None
    return number


def _weights(spec: Node) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for entry in spec.items("billingWeights"):
        resource, flavor = entry.text("resource"), entry.text("flavor")
        if not resource:
            errors.append(required(entry.at("resource"), "name the resource"))
        elif (resource, flavor) in seen:
            where = f"{resource} in flavor {flavor}" if flavor else resource
            errors.append(duplicate(entry.path, where))
        seen.add((resource, flavor))
        errors.extend(_weight(entry))
    return errors


def _weight(entry: Node) -> list[FieldError]:
    path, value = entry.at("weight"), entry.raw("weight")
    if not entry.has("weight"):
        return [required(path, "say what a unit costs; 0 makes the resource free")]
    try:
        number = quantity.parse(value)
    except ValueError as error:
        return [invalid(path, value, str(error))]
    if number < 0:
        return [invalid(path, value, "must not be negative")]
    if number > WEIGHT_MAX:
        return [invalid(path, value, f"must be at most {WEIGHT_MAX}")]
    return []
