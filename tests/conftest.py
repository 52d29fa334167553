"""Fixtures of the whole suite; each subject's live in their own module of ``tests/support``."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.support.controlplane"]

# How long an example takes says more about the machine than about the code. A run gives the same
# examples each time; `--hypothesis-profile=explore` looks for new ones.
settings.register_profile(
    "explore", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("sluice", settings.get_profile("explore"), derandomize=True)
settings.load_profile("sluice")
