"""From files, flags and environment to settings. Only the composition root reads those."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sluice.api import names
from sluice.api.configuration import Settings, default_settings, parse
from sluice.api.configuration_models import KUEUE_NAMESPACE
from sluice.api.errors import ConfigError, KubeError, NotFound
from sluice.api.feature_gates import parse_flag
from sluice.cli.flags import ServeFlags
from sluice.kube.access import ClusterAccess
from sluice.kube.client import Client
from sluice.kube.config import load
from sluice.kube.resources import NAMESPACES

_SIZE_MAX: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Everything a serving command starts from.

    Attributes:
        access: How to reach the API server.
        settings: The Configuration file, with the flags' overrides.
        identity: Unique name of this process.
        is_in_pod: Whether it runs in a cluster, behind a Service.
    """

    access: ClusterAccess
    settings: Settings
    identity: str
    is_in_pod: bool


async def prepare(flags: ServeFlags, environ: Mapping[str, str] | None = None) -> Start:
    """Read everything the command line names.

    Raises:
        ConfigError: Something is wrong with a file, a flag or the cluster's address.
    """
    environ = os.environ if environ is None else environ
    text = None if flags.config is None else read_file(flags.config)
    settings = settings_of(text, flags, KUEUE_NAMESPACE)  # a bad file fails before a bad cluster
    access = await load(kubeconfig=flags.kubeconfig, environ=environ)
    if "namespace" not in settings.given:
        namespace = access.namespace if _is_pod(access) else await _existing_namespace(access)
        settings = settings_of(text, flags, namespace)
    return Start(
        access=access,
        settings=settings,
        identity=f"{socket.gethostname()}_{uuid.uuid4().hex}",
        is_in_pod=_is_pod(access),
    )


def read_file(path: str) -> str:
    """Return the text of the Configuration file.

    Raises:
        ConfigError: It cannot be read.
    """
    try:
        data = Path(path).read_bytes()
        if len(data) > _SIZE_MAX:
            raise ConfigError(f"--config {path}: larger than 1 MiB: this is no configuration file")
        return data.decode()
    except OSError as error:
        raise ConfigError(f"--config {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"--config {path}: not UTF-8 text: {error.reason}") from error


def settings_of(text: str | None, flags: ServeFlags, default_namespace: str) -> Settings:
    """Return the settings of a file's text (None: defaults) with the flags' overrides.

    Raises:
        ConfigError: The message names the file and every field that is wrong.
    """
    gates = parse_flag(flags.feature_gates)
    if text is None:
        settings = default_settings(default_namespace=default_namespace, gates=gates)
    else:
        try:
            settings = parse(text, default_namespace=default_namespace, gates=gates)
        except ConfigError as error:
            raise ConfigError(f"--config {flags.config}: {error}") from error
    return with_overrides(settings, flags)


def with_overrides(settings: Settings, flags: ServeFlags) -> Settings:
    """Return settings with the webhook's flags in place of the file's values."""
    given = {
        "host": flags.webhook_host,
        "port": flags.webhook_port,
        "cert_dir": flags.cert_dir,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        return settings
    configuration = settings.configuration
    webhook = configuration.webhook.model_copy(update=changes)
    return Settings(
        configuration=configuration.model_copy(update={"webhook": webhook}),
        gates=settings.gates,
        given=settings.given,
    )


def _is_pod(access: ClusterAccess) -> bool:
    return access.source == "the pod's service account"


async def _existing_namespace(access: ClusterAccess) -> str:
    """Return Kueue's namespace where there is one, else our own.

    Outside a pod nothing else tells which of the two installs this program serves.
    """
    async with Client(access) as client:
        try:
            await client.get(NAMESPACES, "", KUEUE_NAMESPACE, retry=False)
        except NotFound:
            return names.SYSTEM_NAMESPACE
        except KubeError:
            return KUEUE_NAMESPACE  # the caller finds out why it cannot be reached
    return KUEUE_NAMESPACE
