"""Rules of webhook configurations beyond unique names and review versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sluice.local.apiserver.status import Cause
from sluice.local.schema import causes
from sluice.local.schema.cel.environment import CelError
from sluice.local.schema.matching import compile_condition

View = Mapping[str, Any]

_TIMEOUT_S_MAX: Final = 30
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")


def validate(new: View, old: View | None) -> list[Cause]:
    """Return what is wrong with the webhooks of a configuration."""
    found: list[Cause] = []
    for index, webhook in enumerate(new.get("webhooks") or ()):
        path = f"webhooks[{index}]"
        name = str(webhook.get("name") or "")
        if name.count(".") < 2:
            detail = "should be a domain with at least three segments separated by dots"
            found.append(causes.invalid(f"{path}.name", name, detail))
        found += _validate_webhook(webhook, path)
    return found


def _validate_webhook(webhook: View, path: str) -> list[Cause]:
    found: list[Cause] = []
    effects, at = webhook.get("sideEffects"), f"{path}.sideEffects"
    if effects is None:
        found.append(causes.required(at, "must specify one of None, NoneOnDryRun"))
    elif effects not in _SIDE_EFFECTS:
        found.append(causes.not_supported(at, effects, _SIDE_EFFECTS))
    timeout_s = webhook.get("timeoutSeconds", 10)
    if not 1 <= timeout_s <= _TIMEOUT_S_MAX:
        detail = "the timeout value must be between 1 and 30 seconds"
        found.append(causes.invalid(f"{path}.timeoutSeconds", timeout_s, detail))
    config = webhook.get("clientConfig") or {}
    if bool(config.get("url")) == bool(config.get("service")):
        detail = "exactly one of url or service is required"
        found.append(causes.required(f"{path}.clientConfig", detail))
    for index, condition in enumerate(webhook.get("matchConditions") or ()):
        try:
            compile_condition(str(condition.get("expression", "")))
        except CelError as error:
            at = f"{path}.matchConditions[{index}].expression"
            detail = f"compilation failed: {error}"
            found.append(causes.invalid(at, condition.get("expression"), detail))
    return found
