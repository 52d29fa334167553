"""Patches of the embedded API server, and ownership of fields (server-side apply)."""

from sluice.local.merge.merger import Merger

__all__ = ["Merger"]
