"""Typed models of the API's eleven kinds in both versions, the source of the CRDs."""

from sluice.api.models.base import GROUP, Model
from sluice.api.models.kinds import KINDS, Kind, Version

__all__ = ["GROUP", "KINDS", "Kind", "Model", "Version"]
