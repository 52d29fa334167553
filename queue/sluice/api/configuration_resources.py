"""The rules of ``resources`` and ``metrics.customLabels`` in the Configuration file. Pure.

Source: docs/spec/api.md section 6. Called by ``configuration_validate``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from sluice.api.configuration_models import (
    CustomLabel,
    DeviceClassMapping,
    DeviceSource,
    Resources,
    Transformation,
)
from sluice.api.errors import (
    FieldError,
    FieldErrorKind,
    duplicate,
    forbidden,
    invalid,
    required,
    too_many,
)
from sluice.api.feature_gates import FeatureGates
from sluice.api.quantity import is_quantity
from sluice.api.validate.syntax import check, qualified_name

_MAPPINGS_MAX: Final = 16
_DEVICE_CLASSES_MAX: Final = 8
_LABELS_MAX: Final = 20
_LABELS_OF_KIND_MAX: Final = 6
_WORKLOAD_LABELS_MAX: Final = 2
_TRACKED_MAX: Final = 16
_WORKLOAD_TRACKED_MAX: Final = 12
_LABEL_NAME: Final = re.compile("[a-zA-Z][a-zA-Z0-9_]*")


def resource_errors(resources: Resources, gates: FeatureGates) -> list[FieldError]:
    """Return the broken rules of ``resources``."""
    path = "resources"
    errors: list[FieldError] = []
    if resources.quota_check_strategy == "IgnoreUndeclared" and resources.exclude_resource_prefixes:
        detail = "cannot be combined with quotaCheckStrategy IgnoreUndeclared: remove one of them"
        errors.append(forbidden(f"{path}.excludeResourcePrefixes", detail))
    errors += _transformation_errors(f"{path}.transformations", resources.transformations)
    errors += _mapping_errors(f"{path}.deviceClassMappings", resources.device_class_mappings, gates)
    return errors


def _transformation_errors(path: str, items: Sequence[Transformation]) -> Iterable[FieldError]:
    seen: set[str] = set()
    for i, item in enumerate(items):
        if item.input in seen:
            yield duplicate(f"{path}[{i}].input", item.input)
        seen.add(item.input)
        for name, amount in sorted(item.outputs.items()):
            if not is_quantity(amount):
                yield invalid(f"{path}[{i}].outputs[{name}]", amount, "must be a quantity")


def _mapping_errors(
    path: str, mappings: Sequence[DeviceClassMapping], gates: FeatureGates
) -> Iterable[FieldError]:
    if len(mappings) > _MAPPINGS_MAX:
        yield too_many(path, len(mappings), _MAPPINGS_MAX)
    names: set[str] = set()
    owners: dict[str, tuple[str, bool]] = {}
    for i, mapping in enumerate(mappings):
        at = f"{path}[{i}]"
        yield from check(f"{at}.name", mapping.name, qualified_name)
        if mapping.name in names:
            yield duplicate(f"{at}.name", mapping.name)
        names.add(mapping.name)
        if not mapping.device_class_names:
            yield required(f"{at}.deviceClassNames", "name at least one DeviceClass")
        if len(mapping.device_class_names) > _DEVICE_CLASSES_MAX:
            count = len(mapping.device_class_names)
            yield too_many(f"{at}.deviceClassNames", count, _DEVICE_CLASSES_MAX)
        counts_only = bool(mapping.sources) and all(s.counter for s in mapping.sources)
        for j, name in enumerate(mapping.device_class_names):
            owner, owner_counts_only = owners.get(name, (mapping.name, counts_only))
            if owner != mapping.name and not (counts_only and owner_counts_only):
                yield duplicate(f"{at}.deviceClassNames[{j}]", name)
            owners[name] = (owner, owner_counts_only)
        yield from _source_errors(f"{at}.sources", mapping.sources, gates)


def _source_errors(
    path: str, sources: Sequence[DeviceSource], gates: FeatureGates
) -> Iterable[FieldError]:
    for i, source in enumerate(sources):
        if (source.counter is None) == (source.capacity is None):
            yield invalid(f"{path}[{i}]", "object", "must have exactly one of counter and capacity")
        for name, used, gate in (
            ("counter", source.counter, "KueueDRAIntegrationPartitionableDevices"),
            ("capacity", source.capacity, "KueueDRAIntegrationConsumableCapacity"),
        ):
            if used is not None and not gates.enabled(gate):
                yield forbidden(f"{path}[{i}].{name}", f"needs the feature gate {gate}")
    if any(s.counter for s in sources) and any(s.capacity for s in sources):
        yield forbidden(path, "must not mix counter and capacity")


def label_errors(labels: Sequence[CustomLabel], gates: FeatureGates) -> list[FieldError]:
    """Return the broken rules of ``metrics.customLabels``."""
    path = "metrics.customLabels"
    if labels and not gates.enabled("CustomMetricLabels"):
        return [forbidden(path, "needs the feature gate CustomMetricLabels")]
    errors: list[FieldError] = []
    if len(labels) > _LABELS_MAX:
        errors.append(too_many(path, len(labels), _LABELS_MAX))
    for kind, count in sorted(Counter(label.source_kind for label in labels).items()):
        most = _WORKLOAD_LABELS_MAX if kind == "Workload" else _LABELS_OF_KIND_MAX
        if count > most:
            detail = f"must have at most {most} labels of kind {kind}"
            errors.append(FieldError(FieldErrorKind.TOO_MANY, path, detail, count))
    seen: set[str] = set()
    for i, label in enumerate(labels):
        if label.name in seen:
            errors.append(duplicate(f"{path}[{i}].name", label.name))
        seen.add(label.name)
        errors += _one_label_errors(f"{path}[{i}]", label)
    return errors


def _one_label_errors(path: str, label: CustomLabel) -> Iterable[FieldError]:
    if not _LABEL_NAME.fullmatch(label.name):
        yield invalid(f"{path}.name", label.name, "must match ^[a-zA-Z][a-zA-Z0-9_]*$")
    if label.source_label_key and label.source_annotation_key:
        yield forbidden(
            f"{path}.sourceAnnotationKey", "cannot be combined with sourceLabelKey: keep one"
        )
    for name, key in (
        ("sourceLabelKey", label.source_label_key),
        ("sourceAnnotationKey", label.source_annotation_key),
    ):
        if key:
            yield from check(f"{path}.{name}", key, qualified_name)
    values = label.tracked_values
    at = f"{path}.trackedValues"
    is_workload = label.source_kind == "Workload"
    if is_workload and not values:
        yield required(at, "list the values to track: Workloads have too many otherwise")
    most = _WORKLOAD_TRACKED_MAX if is_workload else _TRACKED_MAX
    if len(values) > most:
        yield too_many(at, len(values), most)
    for i, value in enumerate(values):
        if value in values[:i]:
            yield duplicate(f"{at}[{i}]", value)
