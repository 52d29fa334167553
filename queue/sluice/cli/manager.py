"""``sluice manager``: the manager without a webhook."""

from sluice.cli.serving_command import serving_app

app = serving_app(
    "Run the manager without a webhook.",
    runs_manager=True,
    runs_webhook=False,
)
