"""Kueue's Configuration file: read, converted, defaulted and checked. Pure.

``parse`` is the one way in; the composition root reads the file and calls it. Everything that can
be wrong with a file is one ConfigError that names each field and the fix. Source: docs/spec/api.md
section 6.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sluice.api.configuration_beta1 import to_beta2
from sluice.api.configuration_models import (
    FRAMEWORKS_DEFAULT,
    KUEUE_NAMESPACE,
    READY_TIMEOUT_MS,
    Configuration,
)
from sluice.api.configuration_resources import label_errors
from sluice.api.configuration_validate import validate
from sluice.api.configuration_yaml import read_mapping
from sluice.api.errors import ConfigError, aggregate, invalid, not_supported, required
from sluice.api.feature_gates import FeatureGates, resolve
from sluice.api.names import NAMESPACE_NAME_LABEL
from sluice.api.selectors import LabelSelector, compile_selector

CONFIG_GROUP: Final = "config.kueue.x-k8s.io"
V1BETA1: Final = f"{CONFIG_GROUP}/v1beta1"
V1BETA2: Final = f"{CONFIG_GROUP}/v1beta2"
KIND: Final = "Configuration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A file that was read and found good.

    Attributes:
        configuration: Its content, defaults filled in.
        gates: Every feature gate, from the file or the flag.
        given: The file's own content as v1beta2 JSON, to tell what was set on purpose.
    """

    configuration: Configuration
    gates: FeatureGates
    given: Mapping[str, Any]

    @property
    def managed_namespaces(self) -> LabelSelector:
        """Return which namespaces are managed, by the labels of the Namespace."""
        return compile_selector(self.configuration.managed_jobs_namespace_selector.to_json())


def default_settings(
    *, default_namespace: str = KUEUE_NAMESPACE, gates: Mapping[str, bool] | None = None
) -> Settings:
    """Return what holds without a file.

    Args:
        default_namespace: Namespace of this program.
        gates: Settings of --feature-gates.

    Raises:
        ConfigError: The gates cannot be set so.
    """
    raw: dict[str, Any] = {"apiVersion": V1BETA2, "kind": KIND, "waitForPodsReady": {}}
    return _settings(raw, default_namespace, gates or {})


def parse(
    text: str, *, default_namespace: str = KUEUE_NAMESPACE, gates: Mapping[str, bool] | None = None
) -> Settings:
    """Return the settings of a file's text.

    Args:
        text: YAML or JSON.
        default_namespace: Namespace when the file names none.
        gates: Settings of --feature-gates; not together with the file's own.

    Raises:
        ConfigError: The message names every field that is wrong, and why.
    """
    raw = read_mapping(text)
    version, kind = raw.get("apiVersion"), raw.get("kind")
    if kind != KIND:
        raise ConfigError(str(not_supported("kind", kind, [KIND])))
    if version not in (V1BETA1, V1BETA2):
        raise ConfigError(str(not_supported("apiVersion", version, [V1BETA2, V1BETA1])))
    if version == V1BETA1:
        raw = to_beta2(raw, V1BETA2)
    else:
        raw.setdefault("waitForPodsReady", {})
    if gates and raw.get("featureGates"):
        raise ConfigError(
            "feature gates are set both by --feature-gates and by featureGates: use one of them"
        )
    return _settings(raw, default_namespace, gates or {})


def _settings(
    raw: dict[str, Any], default_namespace: str, flag_gates: Mapping[str, bool]
) -> Settings:
    given = {name: value for name, value in raw.items() if name != "waitForPodsReady" or value}
    filled = _filled(raw, default_namespace)
    try:
        configuration = Configuration.model_validate(filled)
    except ValidationError as error:
        raise ConfigError("; ".join(_problem(detail) for detail in error.errors())) from None
    gates = resolve(flag_gates or configuration.feature_gates)
    errors = validate(configuration, gates)
    errors += label_errors(configuration.metrics.custom_labels, gates)
    if errors:
        raise ConfigError(aggregate(errors))
    if gates.enabled("DisableWaitForPodsReady"):
        configuration = configuration.model_copy(update={"wait_for_pods_ready": None})
    return Settings(configuration=configuration, gates=gates, given=given)


def _filled(raw: Mapping[str, Any], default_namespace: str) -> dict[str, Any]:
    """Return the file's content with the defaults that depend on other fields."""
    filled = dict(raw)
    namespace = filled.setdefault("namespace", default_namespace)
    filled.setdefault(
        "managedJobsNamespaceSelector",
        {
            "matchExpressions": [
                {
                    "key": NAMESPACE_NAME_LABEL,
                    "operator": "NotIn",
                    "values": ["kube-system", namespace],
                }
            ]
        },
    )
    ready = filled.get("waitForPodsReady")
    if isinstance(ready, dict):
        filled["waitForPodsReady"] = _filled_ready(ready)
    return filled


def _filled_ready(ready: Mapping[str, Any]) -> dict[str, Any]:
    filled = dict(ready)
    if filled.get("timeout") in (None, "0", "0s"):
        filled["timeout"] = f"{READY_TIMEOUT_MS // 1000}s"
    filled.setdefault("recoveryTimeout", filled["timeout"])
    return filled


def _problem(detail: ErrorDetails) -> str:
    """Return one sentence about a value that has not the file's shape."""
    path = _path(detail["loc"])
    match detail["type"]:
        case "extra_forbidden":
            close = difflib.get_close_matches(str(detail["loc"][-1]), _siblings(detail["loc"]), n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            return f'unknown field "{path}"{hint}'
        case "missing":
            return str(required(path))
        case "literal_error":
            expected = detail["ctx"]["expected"].replace("'", "").replace(" or ", ", ")
            return str(not_supported(path, detail["input"], expected.split(", ")))
        case "value_error":
            return str(invalid(path, _shown(detail["input"]), str(detail["ctx"]["error"])))
        case "tuple_type":
            return str(invalid(path, _shown(detail["input"]), "must be a list"))
        case _:
            text = detail["msg"].removeprefix("Input should be ").removeprefix("a valid ")
            return str(invalid(path, _shown(detail["input"]), f"must be {text}"))


def _shown(value: object) -> object:
    return value if isinstance(value, str | int | float | bool) else type(value).__name__


def _path(location: Sequence[int | str]) -> str:
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part != "[key]":
            path += f".{part}" if path else part
    return path


def _siblings(location: Sequence[int | str]) -> list[str]:
    """Return the field names of the section that holds a location."""
    section: type[BaseModel] | None = Configuration
    for part in location[:-1]:
        if isinstance(part, int) or section is None:
            continue
        section = next(
            (_section_of(f.annotation) for f in section.model_fields.values() if f.alias == part),
            None,
        )
    return [f.alias or "" for f in section.model_fields.values()] if section else []


def _section_of(annotation: Any) -> type[BaseModel] | None:
    """Return the section inside an annotation such as ``tuple[Section, ...] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = _section_of(inner)
        if found is not None:
            return found
    return None


__all__ = ["FRAMEWORKS_DEFAULT", "Configuration", "Settings", "default_settings", "parse"]
