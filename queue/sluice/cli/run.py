"""``sluice run``: manager and webhook in one process."""

from sluice.cli.serving_command import serving_app

app = serving_app(
    "Run the manager and the webhook: everything a cluster needs.",
    runs_manager=True,
    runs_webhook=True,
)
