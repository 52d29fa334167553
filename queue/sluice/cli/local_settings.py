"""The settings of a Sluice that ``up`` or ``demo`` runs: a file's, with this machine's addresses.

What a Configuration file says about where to listen, about certificates, leader election and the
namespace belongs to the cluster it was written for. Here the control plane has its own, so that
several run at once; all else of the file holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from sluice.api import names
from sluice.api.configuration import Settings, default_settings, parse
from sluice.api.errors import ConfigError

HOST: Final = "127.0.0.1"
SERVICE: Final = "sluice-webhook"
_SECRET: Final = "sluice-webhook-server-cert"
_ANY_PORT: Final = f"{HOST}:0"
REPLACED: Final = (
    "namespace",
    "webhook",
    "metrics.bindAddress",
    "health.healthProbeBindAddress",
    "leaderElection",
    "internalCertManagement",
)
"""Fields of a file that are not taken."""


def read_settings(file: str, text: str) -> Settings:
    """Return the settings of a Configuration file as they are.

    Raises:
        ConfigError: The message names the file and every field that is wrong.
    """
    try:
        return parse(text, default_namespace=names.SYSTEM_NAMESPACE)
    except ConfigError as error:
        raise ConfigError(f"--config {file}: {error}") from error


def local_settings(file: Settings | None, port: int) -> Settings:
    """Return the settings to run with.

    Args:
        file: From `read_settings`; None for defaults.
        port: Where the webhook listens on this machine.
    """
    base = file or default_settings(default_namespace=names.SYSTEM_NAMESPACE)
    old = base.configuration
    certificates = {
        "enable": True,
        "webhook_service_name": SERVICE,
        "webhook_secret_name": _SECRET,
    }
    changes = {
        "namespace": names.SYSTEM_NAMESPACE,
        "webhook": old.webhook.model_copy(update={"host": HOST, "port": port}),
        "metrics": old.metrics.model_copy(update={"bind_address": _ANY_PORT}),
        "health": old.health.model_copy(update={"health_probe_bind_address": _ANY_PORT}),
        "leader_election": old.leader_election.model_copy(update={"leader_elect": False}),
        "internal_cert_management": old.internal_cert_management.model_copy(update=certificates),
    }
    return replace(base, configuration=old.model_copy(update=changes))


def replaced_fields(settings: Settings) -> tuple[str, ...]:
    """Return which fields that a file sets are not taken."""
    return tuple(field for field in REPLACED if _has(settings.given, field.split(".")))


def _has(value: Any, path: list[str]) -> bool:
    if not path:
        return True
    return isinstance(value, Mapping) and path[0] in value and _has(value[path[0]], path[1:])
