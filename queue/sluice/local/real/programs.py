"""Finds the programs of the real control plane on this machine.

Two places are looked at: the folder named by ``KUBEBUILDER_ASSETS`` (the convention of controller
test suites, which also holds etcd and kube-apiserver as other tools install them) and our own cache
folder, filled by ``make control-plane``. A folder is used whole: taking kube-apiserver from one and
kube-controller-manager from another would mix releases.

Used by the launcher, the build, ``sluice up --real`` and the tests. Nothing here reads the
environment; it is passed in.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sluice.local.real import versions
from sluice.local.real.errors import ProgramsMissing

ASSETS_VARIABLE: Final = "KUBEBUILDER_ASSETS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """A folder that holds programs of one control plane release."""

    folder: Path

    def path(self, name: str) -> Path:
        """Return where a program is, whether or not it exists."""
        return self.folder / name

    def missing(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return those of the named programs that cannot be run from this folder."""
        return tuple(name for name in names if not _is_program(self.folder / name))


def cache_root(environ: Mapping[str, str]) -> Path:
    """Return the folder under which every release has its cache folder.

    ``$XDG_CACHE_HOME/sluice/controlplane``, else ``~/.cache/sluice/controlplane``. As the XDG base
    directory rules ask, a relative ``XDG_CACHE_HOME`` is ignored.
    """
    base = Path(environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        base = Path(environ.get("HOME") or Path.home()) / ".cache"
    return base / "sluice" / "controlplane"


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return where `make control-plane` puts the programs of the pinned releases."""
    return cache_root(environ) / versions.cache_key()


def find(environ: Mapping[str, str], names: Sequence[str]) -> Programs:
    """Return the first folder that holds all the named programs.

    Args:
        environ: Process environment; ``KUBEBUILDER_ASSETS``, ``XDG_CACHE_HOME`` and ``HOME`` count.
        names: Programs needed, such as `versions.CLUSTER_PROGRAMS`.

    Raises:
        ProgramsMissing: No folder has them all. The message is one line that says where was looked
            and how to get them.
    """
    looked: list[str] = []
    for folder in _folders(environ):
        programs = Programs(folder=folder)
        missing = programs.missing(names)
        if not missing:
            return programs
        what = "nothing" if len(missing) == len(names) else f"no {', '.join(missing)}"
        looked.append(f"{what} in {folder}")
    raise ProgramsMissing(
        f"the real control plane is not on this machine ({'; '.join(looked)}): "
        "run `make control-plane` once (about six minutes)"
    )


def _folders(environ: Mapping[str, str]) -> list[Path]:
    assets = environ.get(ASSETS_VARIABLE, "")
    folders = [Path(assets)] if assets else []
    return [*folders, cache_folder(environ)]


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
