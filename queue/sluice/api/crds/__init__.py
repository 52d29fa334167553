"""CustomResourceDefinitions generated from `sluice.api.models`."""

from sluice.api.crds.definitions import definition, definitions
from sluice.api.crds.structural import NotStructural, structural

__all__ = ["NotStructural", "definition", "definitions", "structural"]
