"""The manifests that come with the program: in the wheel, or beside the sources.

Used by the commands that set a cluster up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from sluice.api.errors import ConfigError

Json = dict[str, Any]

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C parser where PyYAML has it: Workload's CRD alone is half a megabyte."""


def folder() -> Path:
    """Return the folder of manifests.

    Raises:
        ConfigError: The installation is incomplete.
    """
    package = Path(__file__).resolve().parents[1]
    for place in (package / "_manifests", package.parents[1] / "manifests"):
        if (place / "crds").is_dir():
            return place
    raise ConfigError(f"no manifests beside {package}: install the program again")


def read(*parts: str) -> list[Json]:
    """Return the objects of one YAML file, named by its path below the folder."""
    path = folder().joinpath(*parts)
    with path.open(encoding="utf-8") as stream:
        return [document for document in yaml.load_all(stream, Loader=_LOADER) if document]


def crds() -> Iterator[Json]:
    """Yield the CustomResourceDefinitions, by file name."""
    for path in sorted((folder() / "crds").glob("*_*.yaml")):
        yield from read("crds", path.name)


def webhook_configurations() -> list[Json]:
    """Return the admission webhook configurations."""
    return [*read("base", "webhook-mutating.yaml"), *read("base", "webhook-validating.yaml")]


def at_port(obj: Json, port: int) -> Json:
    """Return a CRD or webhook configuration whose calls to a Service use another port."""
    found = _at_port(obj, port)
    assert isinstance(found, dict)
    return found


def _at_port(value: object, port: int) -> object:
    if isinstance(value, Mapping):
        changed = {key: _at_port(item, port) for key, item in value.items()}
        service = changed.get("service")
        if isinstance(service, dict) and "path" in service:
            service["port"] = port
        return changed
    if isinstance(value, list):
        return [_at_port(item, port) for item in value]
    return value
