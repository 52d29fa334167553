"""Keeps a TCP port for one control plane for as long as it lives.

Asking the system for a free port and closing the socket again leaves a gap in which another program
may take it; so does a restarted API server, which must come back on its port. Here the port stays
bound (never listening) with SO_REUSEPORT, and the API server shares it (`--permit-port-sharing`).
"""

from __future__ import annotations

import socket

LOOPBACK = "127.0.0.1"


class ReservedPort:
    """A port on the loopback interface that nobody else can be given."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._socket.bind((LOOPBACK, 0))

    @property
    def number(self) -> int:
        """The port."""
        return int(self._socket.getsockname()[1])

    def release(self) -> None:
        """Let go of the port."""
        self._socket.close()
