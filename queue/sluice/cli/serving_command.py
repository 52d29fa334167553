"""The command that ``run``, ``manager`` and ``webhook`` are: the same flags, other parts."""

from __future__ import annotations

import typer

from sluice.cli import flags


def serving_app(help_text: str, *, runs_manager: bool, runs_webhook: bool) -> typer.Typer:
    """Return the application of one serving command.

    Args:
        help_text: What the help page says.
        runs_manager: Whether it decides.
        runs_webhook: Whether it serves the webhook.
    """
    app = typer.Typer(add_completion=False)

    @app.command(help=help_text)
    def serve_command(
        kubeconfig: flags.Kubeconfig = None,
        config: flags.ConfigFile = None,
        webhook_host: flags.WebhookHost = None,
        webhook_port: flags.WebhookPort = None,
        cert_dir: flags.CertDir = None,
        feature_gates: flags.FeatureGates = "",
        log_level: flags.LogLevel = "info",
        log_format: flags.LogFormat = "json",
        zap_log_level: flags.ZapLogLevel = None,
        zap_encoder: flags.ZapEncoder = None,
        zap_devel: flags.ZapDevel = None,
        zap_stacktrace_level: flags.ZapStacktrace = None,
        zap_time_encoding: flags.ZapTime = None,
    ) -> None:
        del zap_devel, zap_stacktrace_level, zap_time_encoding  # nothing to set with them here
        flags.configure_logging(
            log_level, log_format, zap_level=zap_log_level, zap_encoder=zap_encoder
        )
        given = flags.ServeFlags(
            kubeconfig=kubeconfig,
            config=config,
            webhook_host=webhook_host,
            webhook_port=webhook_port,
            cert_dir=cert_dir,
            feature_gates=feature_gates,
        )
        from sluice.cli.serving import serve  # late, so that --help is quick

        serve(given, runs_manager=runs_manager, runs_webhook=runs_webhook)

    return app
