"""Fixtures of the whole suite; each subject's live in their own module of ``tests/support``."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.support.controlplane"]

# How long an example takes says more about the machine than about the code.
settings.register_profile(
    "sluice", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("sluice")
