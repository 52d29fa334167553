"""Fixtures of the whole suite; each subject's live in their own module of ``tests/support``."""

pytest_plugins = ["tests.support.controlplane"]
