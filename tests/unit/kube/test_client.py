"""The client: paths, errors, what is sent again and what is not."""

import asyncio
import socket

import pytest
from tests.unit.kube.wire_server import Fault, WireServer

from sluice.api.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    Throttled,
    Transient,
)
from sluice.kube.access import ClusterAccess
from sluice.kube.client import Client, ClientOptions, PatchType
from sluice.kube.requests import Verb
from sluice.kube.resources import CONFIG_MAPS, WORKLOADS
from sluice.kube.responses import NotSent

PATH = "/api/v1/namespaces/ns/configmaps"


def config_map(name: str = "a", **data: str) -> dict[str, object]:
    return {**CONFIG_MAPS.skeleton("ns", name), "data": data}


async def test_an_object_is_created_read_replaced_and_deleted(client: Client) -> None:
    created = await client.create(CONFIG_MAPS, "ns", config_map(k="1"))
    assert (await client.get(CONFIG_MAPS, "ns", "a"))["data"] == {"k": "1"}
    created["data"] = {"k": "2"}
    await client.replace(CONFIG_MAPS, "ns", "a", created)
    with pytest.raises(Conflict):
        await client.replace(CONFIG_MAPS, "ns", "a", created)
    with pytest.raises(AlreadyExists):
        await client.create(CONFIG_MAPS, "ns", config_map())
    await client.delete(CONFIG_MAPS, "ns", "a")
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAPS, "ns", "a")


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", Invalid),
        (401, "Unauthorized", Forbidden),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", AlreadyExists),
        (410, "Expired", Gone),
        (415, "UnsupportedMediaType", Invalid),
        (422, "Invalid", Invalid),
        (500, "InternalError", Transient),
        (504, "Timeout", Transient),
    ],
)
async def test_each_status_has_its_error(
    client: Client, server: WireServer, status: int, reason: str, kind: type[KubeError]
) -> None:
    server.faults.append(Fault("POST", "", status=status, body={"reason": reason}))
    with pytest.raises(kind) as caught:
        await client.create(CONFIG_MAPS, "ns", config_map())
    assert type(caught.value) is kind
    assert caught.value.status == status
    assert str(caught.value) == "scripted"


async def test_a_proxy_that_answers_html_is_an_error_with_its_text(
    client: Client, server: WireServer
) -> None:
    server.faults.append(Fault("POST", "", status=502, text="<h1>Bad gateway</h1>"))
    with pytest.raises(Transient, match="Bad gateway"):
        await client.create(CONFIG_MAPS, "ns", config_map())


async def test_reads_are_tried_again_and_writes_of_unknown_outcome_are_not(
    client: Client, server: WireServer
) -> None:
    server.put(f"{PATH}/a", config_map())
    server.faults += [
        Fault("GET", "configmaps/a", status=503, times=2),
        Fault("PUT", "configmaps/a", status=503),
    ]
    await client.get(CONFIG_MAPS, "ns", "a")
    assert server.count("GET") == 3
    with pytest.raises(Transient):
        await client.replace(CONFIG_MAPS, "ns", "a", config_map())
    assert server.count("PUT") == 1


async def test_a_throttled_write_waits_and_is_sent_again(
    client: Client, server: WireServer
) -> None:
    server.faults.append(Fault("POST", "", status=429, headers={"Retry-After": "0"}, times=2))
    await client.create(CONFIG_MAPS, "ns", config_map())
    assert server.count("POST") == 3


async def test_without_retry_a_throttled_write_tells_the_wait(
    client: Client, server: WireServer
) -> None:
    server.faults.append(Fault("POST", "", status=429, headers={"Retry-After": "7"}))
    with pytest.raises(Throttled) as caught:
        await client.create(CONFIG_MAPS, "ns", config_map(), retry=False)
    assert caught.value.retry_after_s == 7
    assert server.count("POST") == 1


async def test_a_hanging_request_ends_at_its_time_limit(client: Client, server: WireServer) -> None:
    server.faults.append(Fault("PUT", "", hang=True))
    with pytest.raises(Transient, match=r"update /api/v1/.*: no answer in time"):
        await client.replace(CONFIG_MAPS, "ns", "a", config_map(), timeout_s=0.1)


async def test_no_server_is_an_error_that_says_the_request_was_not_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    async with Client(ClusterAccess(host=f"http://127.0.0.1:{port}")) as client:
        with pytest.raises(NotSent, match=f"127.0.0.1.*{port}"):
            await client.create(CONFIG_MAPS, "ns", config_map(), retry=False)


class Rotating:
    """Credentials of which each renewal gives the next token."""

    def __init__(self) -> None:
        self.number = 1

    async def authorization(self) -> str | None:
        return f"Bearer token-{self.number}"

    async def renew(self) -> bool:
        self.number += 1
        return True


async def test_refused_credentials_are_renewed_once(server: WireServer) -> None:
    server.faults.append(Fault("POST", "", status=401))
    access = ClusterAccess(host=server.url, credentials=Rotating())
    async with Client(access) as client:
        await client.create(CONFIG_MAPS, "ns", config_map())
        sent = [headers["Authorization"] for _, _, headers in server.requests]
        assert sent == ["Bearer token-1", "Bearer token-2"]
        server.faults.append(Fault("GET", "", status=401, times=9))
        with pytest.raises(Forbidden):
            await client.get(CONFIG_MAPS, "ns", "a")
        assert server.count("GET") == 2


async def test_patches_say_their_type_manager_and_force(client: Client, server: WireServer) -> None:
    server.put(f"{PATH}/a", config_map())
    await client.patch(
        CONFIG_MAPS,
        "ns",
        "a",
        {"data": {}},
        patch_type=PatchType.APPLY,
        field_manager="me",
        force=True,
    )
    method, path, headers = server.requests[-1]
    assert (method, headers["Content-Type"]) == ("PATCH", "application/apply-patch+yaml")
    assert path == f"{PATH}/a?fieldManager=me&force=true"


async def test_a_delete_carries_its_preconditions(client: Client, server: WireServer) -> None:
    server.put(f"{PATH}/a", config_map())
    await client.delete(
        CONFIG_MAPS, "ns", "a", uid="u", resource_version="7", propagation="Background"
    )
    assert server.bodies[-1] == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
    }


async def test_every_request_is_observed(server: WireServer) -> None:
    seen: list[tuple[Verb, str, int]] = []
    async with Client(
        server.access, observer=lambda verb, kind, code, _: seen.append((verb, kind, code))
    ) as client:
        await client.create(CONFIG_MAPS, "ns", config_map())
        with pytest.raises(NotFound):
            await client.get(WORKLOADS, "ns", "missing", subresource="status")
    assert seen == [
        (Verb.CREATE, "configmaps", 201),
        (Verb.GET, "workloads.kueue.x-k8s.io/status", 404),
    ]


async def test_limits_hold_for_each_kind(server: WireServer) -> None:
    options = ClientOptions(qps=20, burst=2)
    async with Client(server.access, options=options) as client:
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        for number in range(4):
            await client.create(CONFIG_MAPS, "ns", config_map(str(number)))
        assert loop.time() - started_s >= 0.09  # two at once, two at 20 a second


def test_paths() -> None:
    assert WORKLOADS.path() == "/apis/kueue.x-k8s.io/v1beta2/workloads"
    assert WORKLOADS.path("ns", "a", "status").endswith("/namespaces/ns/workloads/a/status")
    assert CONFIG_MAPS.path("ns", "a/b") == "/api/v1/namespaces/ns/configmaps/a%2Fb"
    with pytest.raises(ValueError, match="needs a namespace"):
        WORKLOADS.path("", "a")
