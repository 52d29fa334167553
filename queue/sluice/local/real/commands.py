"""The command lines of the programs, and the files that some of them read.

Settings stay at the release's defaults, so that what holds here holds on a cluster: default
admission plugins, RBAC, default feature gates. What differs is what a throw-away control plane on
one machine needs: loopback only, no leader election, hardly any client-side rate limit, etcd
without fsync. Used only by `sluice.local.real.plane`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sluice.local.real.ports import LOOPBACK
from sluice.local.real.programs import Programs

_ETCD_QUOTA_BYTES: Final = 4 * 1024**3
_CLIENT_QPS: Final = 2000
_CLIENT_BURST: Final = 4000


LONGEST_SOCKET = "etcd-peer.sock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the files of one control plane are.

    Attributes:
        folder: Everything is below it; only its owner may enter.
    """

    folder: Path

    @property
    def etcd_socket(self) -> Path:
        """Socket of etcd: faster than TCP, and only the owner of the folder can connect."""
        return self.folder / "etcd.sock"

    @property
    def kubeconfig(self) -> Path:
        """Credentials of the administrator."""
        return self.folder / "admin.kubeconfig"

    def file(self, name: str) -> Path:
        """Return the path of another file, such as ``server.pem``."""
        return self.folder / name

    def log(self, name: str) -> Path:
        """Return the log file of a program."""
        return self.folder / f"{name}.log"


def etcd(programs: Programs, layout: Layout) -> list[str]:
    """Return the command line of etcd: one member, reached by a socket only."""
    # etcd insists on addresses with a port to advertise. Nobody uses them: there are no peers, and
    # kube-apiserver keeps to the socket it is given.
    peer = "http://localhost:2380"
    return _command(
        programs,
        "etcd",
        {
            "name": "sluice",
            "data-dir": str(layout.file("etcd")),
            "listen-client-urls": f"unix://{layout.etcd_socket}",
            "advertise-client-urls": "http://localhost:2379",
            "listen-peer-urls": f"unix://{layout.file(LONGEST_SOCKET)}",
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"sluice={peer}",
            "quota-backend-bytes": str(_ETCD_QUOTA_BYTES),
            # The data is thrown away with the folder; waiting for the disk would buy nothing.
            "unsafe-no-fsync": "true",
            "log-level": "warn",
        },
    )


def api_server(
    programs: Programs, layout: Layout, port: int, extra: Mapping[str, str]
) -> list[str]:
    """Return the command line of kube-apiserver.

    Args:
        programs: Where it is.
        layout: Where its files are.
        port: Port that is reserved for it.
        extra: Flags to add or replace, without the leading dashes.
    """
    flags = {
        "etcd-servers": f"unix://{layout.etcd_socket}",
        "bind-address": LOOPBACK,
        "advertise-address": LOOPBACK,
        # A loopback address is refused in the endpoints of the Service "kubernetes".
        "endpoint-reconciler-type": "none",
        "secure-port": str(port),
        "permit-port-sharing": "true",
        "tls-cert-file": str(layout.file("server.pem")),
        "tls-private-key-file": str(layout.file("server.key")),
        "client-ca-file": str(layout.file("ca.pem")),
        "authorization-mode": "Node,RBAC",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": str(layout.file("service-accounts.pub")),
        "service-account-signing-key-file": str(layout.file("service-accounts.key")),
        "service-cluster-ip-range": "10.96.0.0/16",
        "allow-privileged": "true",
    }
    return _command(programs, "kube-apiserver", {**flags, **extra})


def controller_manager(programs: Programs, layout: Layout) -> list[str]:
    """Return the command line of kube-controller-manager, with its default controllers."""
    return _command(
        programs,
        "kube-controller-manager",
        {
            "kubeconfig": str(layout.kubeconfig),
            "leader-elect": "false",
            "secure-port": "0",
            "root-ca-file": str(layout.file("ca.pem")),
            "service-account-private-key-file": str(layout.file("service-accounts.key")),
            "kube-api-qps": str(_CLIENT_QPS),
            "kube-api-burst": str(_CLIENT_BURST),
            "concurrent-job-syncs": "10",
        },
    )


def scheduler(programs: Programs, layout: Layout) -> list[str]:
    """Return the command line of kube-scheduler."""
    config = str(layout.file("scheduler.json"))
    return _command(programs, "kube-scheduler", {"config": config, "secure-port": "0"})


def scheduler_config(layout: Layout) -> str:
    """Return the scheduler's configuration, JSON; waiting Pods are retried within seconds."""
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {
                "kubeconfig": str(layout.kubeconfig),
                "qps": _CLIENT_QPS,
                "burst": _CLIENT_BURST,
            },
            "leaderElection": {"leaderElect": False},
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 2,
        }
    )


def kwok(programs: Programs, layout: Layout) -> list[str]:
    """Return the command line of kwok: it plays every node there is, and renews their Leases."""
    return _command(
        programs,
        "kwok",
        {
            "kubeconfig": str(layout.kubeconfig),
            "config": str(layout.file("stages.yaml")),
            "manage-all-nodes": "true",
            "node-lease-duration-seconds": "40",
            "cidr": "10.128.0.0/9",
            "node-ip": "10.64.0.1",
        },
    )


def _command(programs: Programs, name: str, flags: Mapping[str, str]) -> list[str]:
    return [
        str(programs.path(name)),
        *(f"--{flag}={value}" for flag, value in flags.items() if value != ""),
    ]
