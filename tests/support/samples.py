"""Sample objects of the eleven kinds in both versions; together they set every field there is.

Used by the tests of models, conversion and CRDs. The objects are in tests/unit/api/samples.
"""

import copy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from sluice.api.models.kinds import KINDS, Kind, Version

Object = dict[str, Any]
_DIRECTORY = Path(__file__).parents[1] / "unit/api/samples"
VERSIONS: list[tuple[Kind, Version]] = [(k, v) for k in KINDS for v in k.versions]
"""Every kind with each of its versions."""


@cache
def _all() -> tuple[Object, ...]:
    return tuple(
        document
        for path in sorted(_DIRECTORY.glob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text())
    )


def samples(kind: str, version: str) -> list[Object]:
    """Return fresh copies of the samples of a kind in a version; the fullest comes first."""
    wanted = (kind, f"kueue.x-k8s.io/{version}")
    found = [s for s in _all() if (s["kind"], s["apiVersion"]) == wanted]
    assert found, f"no sample of {kind} in {version}"
    return copy.deepcopy(found)


def version_id(case: tuple[Kind, Version]) -> str:
    """Return a test id for an entry of `VERSIONS`."""
    kind, version = case
    return f"{kind.kind}-{version.name}"
