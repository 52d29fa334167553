"""Typed models of Kueue's eleven kinds in both versions and of ours, the source of the CRDs."""

from sluice.api.models.base import GROUP, Model
from sluice.api.models.kinds import KINDS, OWN_KINDS, Kind, Version

__all__ = ["GROUP", "KINDS", "OWN_KINDS", "Kind", "Model", "Version"]
