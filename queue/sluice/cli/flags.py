"""The flags that the serving commands share, and the settings they make. Used by those commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from sluice import log
from sluice.api.errors import ConfigError

Kubeconfig = Annotated[
    str | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="Kubeconfig; else $KUBECONFIG, the pod's service account, ~/.kube/config.",
    ),
]
ConfigFile = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="Kueue's Configuration file; else defaults."),
]
WebhookHost = Annotated[
    str | None,
    typer.Option("--webhook-host", metavar="ADDRESS", help="Overrides webhook.host."),
]
WebhookPort = Annotated[
    int | None,
    typer.Option(
        "--webhook-port", metavar="PORT", min=0, max=65535, help="Overrides webhook.port."
    ),
]
CertDir = Annotated[
    str | None,
    typer.Option(
        "--cert-dir", metavar="FOLDER", help="Overrides webhook.certDir: tls.crt and tls.key."
    ),
]
FeatureGates = Annotated[
    str, typer.Option("--feature-gates", metavar="A=true,B=false", help="Feature gates.")
]
LogLevel = Annotated[
    str, typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error.")
]
LogFormat = Annotated[str, typer.Option("--log-format", metavar="FORMAT", help="json or text.")]
ZapLogLevel = Annotated[str | None, typer.Option("--zap-log-level", hidden=True)]
ZapEncoder = Annotated[str | None, typer.Option("--zap-encoder", hidden=True)]
ZapDevel = Annotated[str | None, typer.Option("--zap-devel", hidden=True)]
ZapStacktrace = Annotated[str | None, typer.Option("--zap-stacktrace-level", hidden=True)]
ZapTime = Annotated[str | None, typer.Option("--zap-time-encoding", hidden=True)]

_LEVELS = ("debug", "info", "warning", "error")
_FORMATS = ("json", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeFlags:
    """What the command line says.

    Attributes:
        kubeconfig: Path, or None for the default places.
        config: Path of the Configuration file, or None.
        webhook_host: Overrides the file's.
        webhook_port: Overrides the file's.
        cert_dir: Overrides the file's.
        feature_gates: As given.
    """

    kubeconfig: str | None = None
    config: str | None = None
    webhook_host: str | None = None
    webhook_port: int | None = None
    cert_dir: str | None = None
    feature_gates: str = ""


def configure_logging(
    level: str, form: str, *, zap_level: str | None = None, zap_encoder: str | None = None
) -> None:
    """Set up logging; Kueue's own flags for it are understood too.

    Raises:
        ConfigError: A value is none of those allowed.
    """
    if zap_level is not None:
        level = "debug" if zap_level.isdecimal() and int(zap_level) > 0 else zap_level
        level = {"0": "info", "panic": "error"}.get(level, level)
    if zap_encoder is not None:
        form = "text" if zap_encoder == "console" else zap_encoder
    if level not in _LEVELS:
        raise ConfigError(f"--log-level: {level!r} is none of {', '.join(_LEVELS)}")
    if form not in _FORMATS:
        raise ConfigError(f"--log-format: {form!r} is none of {', '.join(_FORMATS)}")
    log.configure(level=level, text=form == "text")
