"""The file in which a local control plane tells how to reach it: private, ours, gone at the end.

Never inside ~/.kube and never over somebody else's file: those are for real clusters. Called by
``sluice.cli`` and the embedded API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import yaml

from sluice.api.errors import ConfigError

CONTEXT: Final = "sluice"
"""Name of context and cluster in every kubeconfig of a local control plane."""
_SIZE_MAX: Final = 1024 * 1024


@contextmanager
def lent(path: Path, content: bytes) -> Iterator[Path]:
    """Write a kubeconfig, and remove it at the end unless somebody has changed it.

    Raises:
        ConfigError: See `write`.
    """
    written = write(path, content)
    try:
        yield path
    finally:
        with suppress(OSError):
            if written.read_bytes() == content:
                written.unlink()


def write(path: Path, content: bytes) -> Path:
    """Write a kubeconfig, readable by its owner only; return where it is.

    Raises:
        ConfigError: The path is inside ~/.kube, names a file that is not ours, or can't be written.
    """
    try:
        resolved = path.expanduser().resolve()
        home = (Path.home() / ".kube").resolve()
        if resolved == home or home in resolved.parents:
            raise ConfigError(
                f"{path} is inside {home}, which is for real clusters; choose another file and "
                "point KUBECONFIG to it"
            )
        if resolved.exists() and not _is_ours(resolved):
            raise ConfigError(
                f"{path} exists and is not the kubeconfig of a local control plane; choose "
                "another file"
            )
        resolved.parent.mkdir(parents=True, exist_ok=True)
        resolved.touch(mode=0o600)
        resolved.chmod(0o600)
        resolved.write_bytes(content)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise ConfigError(f"{path} can't be written: {where}{error.strerror}") from error
    return resolved


def _is_ours(path: Path) -> bool:
    """Tell whether a file may be replaced: empty, or left by a control plane that was killed."""
    if not path.is_file() or path.stat().st_size > _SIZE_MAX:
        return False
    content = path.read_bytes()
    if not content.strip():
        return True
    try:
        found = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError):
        return False
    clusters = found.get("clusters") if isinstance(found, dict) else None
    return (
        isinstance(clusters, list)
        and bool(clusters)
        and all(isinstance(item, dict) and item.get("name") == CONTEXT for item in clusters)
    )
