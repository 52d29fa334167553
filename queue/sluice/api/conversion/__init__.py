"""Conversion between v1beta1 and v1beta2 for the five kinds that need it."""

from sluice.api.conversion.convert import CONVERTED_KINDS, convert

__all__ = ["CONVERTED_KINDS", "convert"]
