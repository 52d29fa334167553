"""Validation of the topology annotations of one pod template.

Pure. Called by the modules of job kinds, once a pod set. Source: docs/spec/api.md 2.3.6.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sluice.api import names
from sluice.api.errors import (
    FieldError,
    FieldErrorKind,
    duplicate,
    forbidden,
    invalid,
    required,
)
from sluice.api.validate.gates import Gate
from sluice.api.validate.node import key
from sluice.api.validate.syntax import check, qualified_name
from sluice.jobs.admission.common import to_integer
from sluice.jobs.admission.context import Options
from sluice.jobs.topology import parse_bool

_REQUESTS: Final = (
    names.REQUIRED_TOPOLOGY,
    names.PREFERRED_TOPOLOGY,
    names.UNCONSTRAINED_TOPOLOGY,
)
_LABEL_KEYS: Final = (
    names.REQUIRED_TOPOLOGY,
    names.PREFERRED_TOPOLOGY,
    names.SLICE_REQUIRED_TOPOLOGY,
)
_SLICES: Final = (names.SLICE_SIZE, names.SLICE_REQUIRED_TOPOLOGY, names.SLICE_CONSTRAINTS)
_LAYERS_MAX: Final = 3
_AT_LEAST_1: Final = "must be greater than or equal to 1"
_is_unsigned = re.compile("[0-9]+").fullmatch


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """One entry of the multi-layer constraints."""

    topology: str
    size: int


def template_errors(
    path: str, annotations: Mapping[str, str], *, pods: int, options: Options
) -> list[FieldError]:
    """Return what is wrong with the topology annotations of a pod template.

    Args:
        path: Path of the annotations, ending in ``.annotations``.
        annotations: The annotations.
        pods: Pods of the pod set.
        options: Feature gates; without TopologyAwareScheduling nothing is checked.
    """
    if not options.gate(Gate.TOPOLOGY_AWARE_SCHEDULING):
        return []
    errors: list[FieldError] = []
    given = [name for name in _REQUESTS if name in annotations]
    if len(given) > 1:
        detail = f"must not contain more than one topology annotation: [{', '.join(_REQUESTS)}]"
        errors.append(FieldError(FieldErrorKind.INVALID, path, detail))
    for name in _LABEL_KEYS:
        if name in annotations:
            errors += check(key(path, name), annotations[name], qualified_name)
    unconstrained = annotations.get(names.UNCONSTRAINED_TOPOLOGY)
    if unconstrained is not None and parse_bool(unconstrained) is None:
        at = key(path, names.UNCONSTRAINED_TOPOLOGY)
        errors.append(invalid(at, unconstrained, "must be a boolean value"))
    errors += _slice_errors(path, annotations, pods)
    errors += _group_errors(path, annotations)
    errors += _constraint_errors(path, annotations, pods, options)
    return errors


def _too_large(at: str, value: object, pods: int) -> FieldError:
    return invalid(at, value, f"must not be greater than pod set count {pods}")


def _slice_errors(path: str, annotations: Mapping[str, str], pods: int) -> list[FieldError]:
    at = key(path, names.SLICE_SIZE)
    text = annotations.get(names.SLICE_SIZE)
    has_topology = names.SLICE_REQUIRED_TOPOLOGY in annotations
    if text is None:
        if has_topology:
            detail = f"must be set together with {names.SLICE_REQUIRED_TOPOLOGY}"
            return [required(at, detail)]
        return []
    errors: list[FieldError] = []
    size = to_integer(text)
    if size is None:
        errors.append(invalid(at, text, "must be a numeric value"))
    elif size < 1:
        errors.append(invalid(at, text, _AT_LEAST_1))
    elif size > pods:
        errors.append(_too_large(at, text, pods))
    if not has_topology:
        detail = f"may not be set without {names.SLICE_REQUIRED_TOPOLOGY}"
        errors.append(forbidden(at, detail))
    return errors


def _group_errors(path: str, annotations: Mapping[str, str]) -> list[FieldError]:
    name = annotations.get(names.POD_SET_GROUP)
    if name is None:
        return []
    at = key(path, names.POD_SET_GROUP)
    errors: list[FieldError] = []
    if _is_unsigned(name):
        errors.append(invalid(at, name, "must not be a number"))
    errors += [
        forbidden(at, f"may not be set together with {other}")
        for other in _SLICES
        if other in annotations
    ]
    if not {names.REQUIRED_TOPOLOGY, names.PREFERRED_TOPOLOGY} & annotations.keys():
        detail = f"may only be set with {names.REQUIRED_TOPOLOGY} or {names.PREFERRED_TOPOLOGY}"
        errors.append(forbidden(at, detail))
    return errors


def _constraint_errors(
    path: str, annotations: Mapping[str, str], pods: int, options: Options
) -> list[FieldError]:
    text = annotations.get(names.SLICE_CONSTRAINTS)
    if text is None:
        return []
    at = key(path, names.SLICE_CONSTRAINTS)
    if not options.gate(Gate.TAS_MULTI_LAYER):
        return [forbidden(at, f"needs the feature gate {Gate.TAS_MULTI_LAYER}")]
    errors = [
        forbidden(at, f"may not be set together with {other}")
        for other in (names.SLICE_REQUIRED_TOPOLOGY, names.SLICE_SIZE)
        if other in annotations
    ]
    layers = _layers(text)
    if layers is None:
        detail = 'must be a JSON array of {"topology": <node label>, "size": <integer>}'
        return [*errors, invalid(at, text, detail)]
    if not 1 <= len(layers) <= _LAYERS_MAX:
        return [*errors, invalid(at, text, f"must have between 1 and {_LAYERS_MAX} entries")]
    return errors + _layer_errors(at, layers, pods)


def _layer_errors(at: str, layers: list[_Layer], pods: int) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, layer in enumerate(layers):
        errors += check(f"{at}[{i}].topology", layer.topology, qualified_name)
        if layer.topology in seen:
            errors.append(duplicate(f"{at}[{i}].topology", layer.topology))
        seen.add(layer.topology)
        if layer.size < 1:
            errors.append(invalid(f"{at}[{i}].size", layer.size, _AT_LEAST_1))
        elif i and layers[i - 1].size >= 1 and layers[i - 1].size % layer.size:
            detail = f"must divide the size of the entry before, {layers[i - 1].size}"
            errors.append(invalid(f"{at}[{i}].size", layer.size, detail))
    if layers[0].size > pods:
        errors.append(_too_large(f"{at}[0].size", layers[0].size, pods))
    return errors


def _layers(text: str) -> list[_Layer] | None:
    try:
        items: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(items, list):
        return None
    layers = [_layer(item) for item in items]
    return [layer for layer in layers if layer is not None] if None not in layers else None


def _layer(item: object) -> _Layer | None:
    if not isinstance(item, dict):
        return None
    topology, size = item.get("topology", ""), item.get("size", 0)
    is_typed = isinstance(topology, str) and isinstance(size, int) and not isinstance(size, bool)
    return _Layer(topology=topology, size=size) if is_typed else None
