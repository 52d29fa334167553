"""``sluice webhook``: the webhook without a manager."""

from sluice.cli.serving_command import serving_app

app = serving_app(
    "Run the webhook without a manager.",
    runs_manager=False,
    runs_webhook=True,
)
