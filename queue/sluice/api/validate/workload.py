"""Validation of Workloads beyond their schema: the entry points, and the rules of ``spec``.

The rules of ``status`` are in ``workload_status``, those of changes in ``workload_update``. Pure.
Source: docs/spec/api.md 2.2 (Workload).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from sluice.api import names
from sluice.api.errors import FieldError, forbidden, invalid, required
from sluice.api.quantity import PODS
from sluice.api.validate import gated_by, workload_status, workload_update
from sluice.api.validate.gates import Gate, Gates, is_on
from sluice.api.validate.node import Node, annotations_of, key
from sluice.api.validate.quotas import amount
from sluice.api.validate.syntax import NEGATIVE, annotation_map, label_map

_INT32_MAX: Final = 2**31 - 1
_is_integer = re.compile("[+-]?[0-9]{1,10}").fullmatch


def on_create(new: Mapping[str, Any], gates: Gates) -> list[FieldError]:
    """Return what is wrong with a new Workload.

    Raises:
        InvalidObject: A value has the wrong JSON type.
    """
    workload = Node(new)
    errors = _common(workload, None, gates)
    if is_on(gates, Gate.ADMISSION_GATED_BY):
        errors += gated_by.on_create(annotations_of(workload))
    return errors


def on_update(old: Mapping[str, Any], new: Mapping[str, Any], gates: Gates) -> list[FieldError]:
    """Return what is wrong with a changed Workload or Workload status.

    Raises:
        InvalidObject: A value has the wrong JSON type.
    """
    before, after = Node(old), Node(new)
    errors = _common(after, before, gates)
    errors += workload_update.changes(before, after, gates)
    if is_on(gates, Gate.ADMISSION_GATED_BY):
        errors += gated_by.on_update(annotations_of(before), annotations_of(after))
    return errors


def _common(workload: Node, old: Node | None, gates: Gates) -> list[FieldError]:
    errors = _pod_sets(workload, gates)
    errors += workload_status.rules(workload, old, gates)
    if is_on(gates, Gate.PRIORITY_BOOST):
        errors += _priority_boost(annotations_of(workload))
    return errors


def _pod_sets(workload: Node, gates: Gates) -> list[FieldError]:
    spec = workload.map("spec")
    pod_sets = spec.items("podSets")
    errors: list[FieldError] = []
    for pod_set in pod_sets:
        template = pod_set.map("template")
        if is_on(gates, Gate.WORKLOAD_METADATA):
            metadata = template.map("metadata")
            errors += label_map(metadata.at("labels"), metadata.strings("labels"))
            errors += annotation_map(metadata.at("annotations"), metadata.strings("annotations"))
        errors += _resources(template.map("spec"), gates)
        errors += _topology_request(pod_set.map("topologyRequest"), gates)
    partial = sum(pod_set.has("minCount") for pod_set in pod_sets)
    if partial > 1:
        errors.append(invalid(spec.at("podSets"), partial, "at most one podSet can use minCount"))
    if partial and workload_status.is_elastic(workload, gates):
        detail = f"minCount cannot be used together with the annotation {names.ELASTIC_JOB}"
        errors.append(invalid(spec.at("podSets"), partial, detail))
    return errors


def _resources(pod_spec: Node, gates: Gates) -> list[FieldError]:
    holders = [*pod_spec.items("initContainers"), *pod_spec.items("containers"), pod_spec]
    errors: list[FieldError] = []
    for holder in holders:
        resources = holder.map("resources")
        for field in ("requests", "limits"):
            amounts = resources.map(field)
            for name in sorted(amounts.value):
                path = key(amounts.path, name)
                if name == PODS:
                    detail = "the key is reserved for internal kueue use"
                    errors.append(invalid(path, name, detail))
                if is_on(gates, Gate.WORKLOAD_NON_NEGATIVE):
                    errors += _negative(amounts, name, path)
    return errors


def _negative(amounts: Node, name: str, path: str) -> list[FieldError]:
    unreadable: list[FieldError] = []
    number = amount(amounts, name, unreadable)
    if number is not None and number < 0:
        return [invalid(path, amounts.raw(name), NEGATIVE)]
    return [invalid(path, amounts.raw(name), error.detail) for error in unreadable]


def _topology_request(request: Node, gates: Gates) -> list[FieldError]:
    errors: list[FieldError] = []
    if is_on(gates, Gate.TAS_SLICE_SIZE):
        has_slices = bool(request.text("podSetSliceRequiredTopology"))
        size = request.integer("podSetSliceSize")
        path = request.at("podSetSliceSize")
        if has_slices and size is None:
            detail = "must be set when podSetSliceRequiredTopology is set"
            errors.append(required(path, detail))
        elif size is not None and not has_slices:
            detail = "may not be set when podSetSliceRequiredTopology is not set"
            errors.append(forbidden(path, detail))
        elif size is not None and size <= 0:
            errors.append(invalid(path, size, "must be greater than or equal to 1"))
    for constraint in request.items("podsetSliceRequiredTopologyConstraints"):
        size = constraint.integer("size") or 0
        if size <= 0:
            errors.append(
                invalid(constraint.at("size"), size, "must be greater than or equal to 1")
            )
    return errors


def _priority_boost(values: Mapping[str, str]) -> list[FieldError]:
    text = values.get(names.PRIORITY_BOOST)
    if text is None:
        return []
    if _is_integer(text) and -_INT32_MAX - 1 <= int(text) <= _INT32_MAX:
        return []
    path = key("metadata.annotations", names.PRIORITY_BOOST)
    return [invalid(path, text, "must be a signed 32-bit integer")]
