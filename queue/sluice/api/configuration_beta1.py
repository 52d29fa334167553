"""Kueue's v1beta1 Configuration turned into v1beta2. Pure.

Source: docs/spec/api.md section 6, "v1beta1 to v1beta2 differences". A v1beta1 file gets the
defaults of v1beta1 only, so waitForPodsReady stays off unless it is enabled. Called by
``configuration``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sluice.api.errors import ConfigError, invalid

_BOTH_STRATEGIES: Final = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]


def to_beta2(raw: Mapping[str, Any], version: str) -> dict[str, Any]:
    """Return a v1beta1 file's content as v1beta2.

    Fields that neither version knows stay, so that the reader of v1beta2 refuses them.

    Args:
        raw: The file's content.
        version: The apiVersion to write.

    Raises:
        ConfigError: A field that is converted has the wrong type.
    """
    converted = {**raw, "apiVersion": version}
    converted.pop("queueVisibility", None)
    if "integrations" in converted:
        integrations = _mapping(converted, "integrations")
        integrations.pop("podOptions", None)
        converted["integrations"] = integrations
    if "fairSharing" in converted:
        _convert_fair_sharing(converted)
    if "waitForPodsReady" in converted:
        _convert_ready(converted)
    return converted


def _convert_fair_sharing(converted: dict[str, Any]) -> None:
    sharing = _mapping(converted, "fairSharing")
    enabled = _flag(sharing, "fairSharing")
    if not enabled:
        del converted["fairSharing"]
        return
    if not sharing.get("preemptionStrategies"):
        sharing["preemptionStrategies"] = list(_BOTH_STRATEGIES)
    converted["fairSharing"] = sharing


def _convert_ready(converted: dict[str, Any]) -> None:
    ready = _mapping(converted, "waitForPodsReady")
    enabled = _flag(ready, "waitForPodsReady")
    if not enabled:
        del converted["waitForPodsReady"]
        return
    ready.setdefault("blockAdmission", True)
    converted["waitForPodsReady"] = ready


def _mapping(parent: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = parent[name]
    if not isinstance(value, dict):
        raise ConfigError(str(invalid(name, str(value), "must be a mapping")))
    return dict(value)


def _flag(section: dict[str, Any], path: str) -> bool:
    value = section.pop("enable", False)
    if not isinstance(value, bool):
        raise ConfigError(str(invalid(f"{path}.enable", str(value), "must be true or false")))
    return value
