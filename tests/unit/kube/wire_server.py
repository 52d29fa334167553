"""A small HTTP server that speaks Kubernetes' wire forms, with faults on demand.

It stores objects of any kind by path, with resource versions, paging, watches with bookmarks, 409,
410, and lets a test drop watches, hang or fail requests. It is no API server: what matters here is
how the client copes with what comes over the wire.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from sluice.kube.access import ClusterAccess

Json = dict[str, Any]
COLLECTIONS = {
    "configmaps",
    "leases",
    "events",
    "namespaces",
    "clusterqueues",
    "localqueues",
    "workloads",
}


class Fault:
    """What happens to the next requests that match instead of an answer."""

    def __init__(
        self,
        method: str,
        part: str,
        *,
        times: int = 1,
        status: int = 0,
        body: Json | None = None,
        headers: dict[str, str] | None = None,
        hang: bool = False,
        text: str | None = None,
    ) -> None:
        self.method = method
        self.part = part
        self.times = times
        self.status = status
        self.body = body or {}
        self.headers = headers or {}
        self.hang = hang
        self.text = text


class WireServer:
    """The server; use `serving()` to start one."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.version = 0
        self.compacted = 0
        self.history: list[tuple[int, str, Json]] = []
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.bodies: list[Any] = []
        self.watchers: set[asyncio.Queue[bytes | None]] = set()
        self.hanging = asyncio.Event()
        self.release = asyncio.Event()
        self.stirred = asyncio.Event()
        self.url = ""

    @property
    def access(self) -> ClusterAccess:
        return ClusterAccess(host=self.url)

    def count(self, method: str, part: str = "") -> int:
        return sum(1 for m, path, _ in self.requests if m == method and part in path)

    async def until(self, condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
        """Wait for something that changes when requests or watches come and go."""
        async with asyncio.timeout(timeout_s):
            while not condition():
                self.stirred.clear()
                await self.stirred.wait()

    def put(self, path: str, body: Json) -> Json:
        """Store an object as another client would."""
        kind = "MODIFIED" if path in self.objects else "ADDED"
        self.version += 1
        stored = json.loads(json.dumps(body))
        stored.setdefault("metadata", {})["resourceVersion"] = str(self.version)
        stored["metadata"].setdefault("name", path.rpartition("/")[2])
        self.stirred.set()
        self.objects[path] = stored
        self._publish(kind, stored)
        return stored

    def remove(self, path: str) -> None:
        stored = self.objects.pop(path)
        self.version += 1
        gone = json.loads(json.dumps(stored))
        gone["metadata"]["resourceVersion"] = str(self.version)
        self._publish("DELETED", gone)

    def bookmark(self) -> None:
        body = {"kind": "ConfigMap", "metadata": {"resourceVersion": str(self.version)}}
        self._send("BOOKMARK", body)

    def send_error(self, code: int) -> None:
        """Send an ERROR event to every watch, as the API server does when it has to give up."""
        body = {"kind": "Status", "code": code, "reason": "Expired", "message": "too old"}
        self._send("ERROR", body)

    def drop_watches(self) -> None:
        for queue in self.watchers:
            queue.put_nowait(None)

    def compact(self) -> None:
        """Forget history: older versions get 410."""
        self.compacted = self.version
        self.history.clear()

    def _publish(self, kind: str, body: Json) -> None:
        self.history.append((self.version, kind, body))
        self._send(kind, body)

    def _send(self, kind: str, body: Json) -> None:
        for queue in self.watchers:
            queue.put_nowait(json.dumps({"type": kind, "object": body}).encode() + b"\n")

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs, dict(request.headers)))
        self.stirred.set()
        fault = self._fault(request)
        if fault is not None:
            return await self._fail(fault)
        data = await request.read()
        body = json.loads(data) if data else None
        self.bodies.append(body)
        match request.method:
            case "GET":
                return await self._get(request)
            case "POST":
                path = f"{request.path}/{body['metadata']['name']}"
                if path in self.objects:
                    return status(409, "AlreadyExists")
                return web.json_response(self.put(path, body), status=201)
            case "PUT":
                return self._replace(request.path, body)
            case "PATCH":
                merged = {**self.objects[request.path], **body}
                return web.json_response(self.put(request.path, merged))
            case _:
                if request.path not in self.objects:
                    return status(404, "NotFound")
                self.remove(request.path)
                return status(200, "", "Success")

    def _fault(self, request: web.Request) -> Fault | None:
        for fault in self.faults:
            if fault.method == request.method and fault.part in request.path_qs and fault.times:
                fault.times -= 1
                return fault
        return None

    async def _fail(self, fault: Fault) -> web.Response:
        if fault.hang:
            self.hanging.set()
            await self.release.wait()
        if fault.text is not None:
            return web.Response(status=fault.status, text=fault.text, headers=fault.headers)
        body = {"kind": "Status", "code": fault.status, "message": "scripted", **fault.body}
        return web.json_response(body, status=fault.status or 500, headers=fault.headers)

    def _replace(self, path: str, body: Json) -> web.Response:
        stored = self.objects.get(path)
        if stored is None:
            return status(404, "NotFound")
        version = body["metadata"].get("resourceVersion")
        if version and version != stored["metadata"]["resourceVersion"]:
            return status(409, "Conflict")
        return web.json_response(self.put(path, body))

    async def _get(self, request: web.Request) -> web.StreamResponse:
        if request.path in self.objects:
            return web.json_response(self.objects[request.path])
        if request.path == "/version":
            return web.json_response({"gitVersion": "v1.36.0"})
        if request.query.get("watch"):
            return await self._watch(request)
        prefix = request.path + "/"
        paths = sorted(p for p in self.objects if p.startswith(prefix))
        if request.path.rpartition("/")[2] not in COLLECTIONS:
            return status(404, "NotFound")
        return self._list(request, paths)

    def _list(self, request: web.Request, paths: list[str]) -> web.Response:
        start = int(request.query.get("continue") or 0)
        limit = int(request.query.get("limit") or 0) or len(paths)
        page = [self.objects[p] for p in paths[start : start + limit]]
        more = start + limit < len(paths)
        metadata = {"resourceVersion": str(self.version)}
        if more:
            metadata["continue"] = str(start + limit)
        return web.json_response({"kind": "List", "metadata": metadata, "items": page})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        version = int(request.query["resourceVersion"])
        if version < self.compacted:
            return status(410, "Expired")
        response = web.StreamResponse()
        await response.prepare(request)
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        for at, kind, body in self.history:
            if at > version:
                queue.put_nowait(json.dumps({"type": kind, "object": body}).encode() + b"\n")
        self.watchers.add(queue)
        self.stirred.set()
        try:
            while (line := await queue.get()) is not None:
                middle = len(line) // 2  # events rarely arrive in one piece
                await response.write(line[:middle])
                await response.write(line[middle:])
        finally:
            self.watchers.discard(queue)
        return response


def status(code: int, reason: str, outcome: str = "Failure") -> web.Response:
    body = {"kind": "Status", "code": code, "reason": reason, "status": outcome}
    return web.json_response({**body, "message": reason}, status=code)


@asynccontextmanager
async def serving() -> AsyncIterator[WireServer]:
    server = WireServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.05)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        server.release.set()
        server.drop_watches()
        await runner.cleanup()
