"""The HTTPS server: starts, tells its port, and stops without dropping a request.

Called by the composition root and by tests.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from sluice.api.errors import ConfigError
from sluice.log import get_logger
from sluice_webhook.app import Application
from sluice_webhook.tls import LiveTls

log = get_logger("sluice_webhook.server")

_SETUP_ROUNDS: Final = 3
"""Rounds of the event loop from a readable port to a connection that is set up: the callback that
accepts, the task that it makes, and one to spare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Where and how to serve.

    Attributes:
        host: Address to listen on; empty for all.
        port: Port to listen on; 0 picks a free one.
        drain_s: Time between turning unready and closing the port, in which clients move on.
        finish_s: Time for running requests to end once the port is closed.
        handshake_timeout_s: Time for a client to complete the TLS handshake.
        idle_s: Time after which an idle connection is closed; the API server keeps its own 90 s.
        backlog: Connections that wait to be accepted.
    """

    host: str = ""
    port: int = 9443
    drain_s: float = 0.0
    finish_s: float = 30.0
    handshake_timeout_s: float = 10.0
    idle_s: float = 120.0
    backlog: int = 512


class _TlsSite(web.BaseSite):
    """A TCP site with a bound on the time of handshakes, which aiohttp's own lacks."""

    def __init__(self, runner: web.AppRunner, tls: LiveTls, options: ServerOptions) -> None:
        super().__init__(runner, ssl_context=tls.context, backlog=options.backlog)
        self._options = options
        self.port = options.port

    @property
    def name(self) -> str:
        """Return the address for messages."""
        return f"https://{self._options.host or '[::]'}:{self.port}"

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: The address cannot be used.
        """
        await super().start()
        server = self._runner.server
        assert server is not None
        listening = await asyncio.get_running_loop().create_server(
            server,
            self._options.host or None,
            self._options.port,
            ssl=self._ssl_context,
            backlog=self._options.backlog,
            ssl_handshake_timeout=self._options.handshake_timeout_s,
        )
        self._server = listening
        self.port = listening.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the port, once every connection that was accepted is also set up.

        asyncio forgets, without closing it, a connection whose setup it begins after the close:
        its client would wait until its own time is up.
        """
        loop = asyncio.get_running_loop()
        server = self._server
        if isinstance(server, asyncio.Server) and isinstance(loop, asyncio.SelectorEventLoop):
            for listening in server.sockets:
                loop.remove_reader(listening.fileno())
            for _ in range(_SETUP_ROUNDS):
                await asyncio.sleep(0)
        await super().stop()


class WebhookServer:
    """Serves an application over TLS. Use as an async context manager, or call start and stop."""

    def __init__(
        self, application: Application, tls: LiveTls, options: ServerOptions | None = None
    ) -> None:
        self._application = application
        self._tls = tls
        self._options = options or ServerOptions()
        self._runner: web.AppRunner | None = None
        self._site: _TlsSite | None = None

    @property
    def port(self) -> int:
        """Return the port listened on, once started."""
        return self._options.port if self._site is None else self._site.port

    async def start(self) -> None:
        """Listen and serve.

        Raises:
            ConfigError: The address cannot be used.
        """
        runner = web.AppRunner(
            self._application.web,
            access_log=None,
            auto_decompress=False,
            keepalive_timeout=self._options.idle_s,
            shutdown_timeout=self._options.finish_s,
        )
        await runner.setup()
        site = _TlsSite(runner, self._tls, self._options)
        try:
            await site.start()
        except OSError as error:
            await runner.cleanup()
            where = f"{self._options.host or 'all addresses'}, port {self._options.port}"
            raise ConfigError(f"webhook: cannot listen on {where}: {error.strerror}") from error
        self._runner, self._site = runner, site
        log.info("webhook serves", fields={"host": self._options.host, "port": self.port})

    async def stop(self) -> None:
        """Turn unready, let clients move on, close the port, finish what runs, close the rest."""
        runner, self._runner = self._runner, None
        if runner is None:
            return
        self._application.drain()
        try:
            await asyncio.sleep(self._options.drain_s)
        finally:
            await runner.cleanup()
        log.info("webhook stopped", fields={"port": self.port})

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        await self.stop()
