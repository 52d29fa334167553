"""``sluice get queues|workloads``: what waits where, as tables or JSON."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import typer

from sluice.api.errors import ConfigError, Forbidden
from sluice.cli import rows, target
from sluice.cli.tables import table
from sluice.clock import SystemClock
from sluice.kube.client import Client
from sluice.kube.resources import CLUSTER_QUEUES, LOCAL_QUEUES, WORKLOADS, Resource

app = typer.Typer(add_completion=False)

Json = dict[str, Any]
_PAGE = 500
_OUTPUTS = ("table", "wide", "json")


@app.command()
def get(
    what: Annotated[str, typer.Argument(metavar="queues|clusterqueues|workloads")],
    kubeconfig: target.Kubeconfig = None,
    context: target.Context = None,
    namespace: target.Namespace = "",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="All namespaces.")
    ] = False,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="table|wide|json", help="Form of the output.")
    ] = "table",
) -> None:
    """Show queues and Workloads: what waits, what runs, and why it waits."""
    if output not in _OUTPUTS:
        raise ConfigError(f"--output: {output!r} is none of {', '.join(_OUTPUTS)}")
    resource = target.kind_of(what)
    text = asyncio.run(_get(resource, kubeconfig, context, namespace, all_namespaces, output))
    print(text)


async def _get(
    resource: Resource,
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
    all_namespaces: bool,
    output: str,
) -> str:
    async with target.connected(kubeconfig, context) as (client, default):
        place = "" if all_namespaces else namespace or default
        if resource is WORKLOADS:
            return await _workloads(client, place, output)
        if resource is CLUSTER_QUEUES:
            return _cluster_queues(await list_all(client, CLUSTER_QUEUES), output)
        return await _queues(client, place, output)


async def list_all(client: Client, resource: Resource, namespace: str = "") -> list[Json]:
    """Return every object of a kind, read in pages."""
    items: list[Json] = []
    token = ""
    while True:
        page = await client.list(resource, namespace, limit=_PAGE, continue_token=token)
        items += page.get("items") or ()
        token = page["metadata"].get("continue") or ""
        if not token:
            return items


async def _queues(client: Client, namespace: str, output: str) -> str:
    local = await list_all(client, LOCAL_QUEUES, namespace)
    try:
        cluster = await list_all(client, CLUSTER_QUEUES)
    except Forbidden:
        cluster = []  # users of a namespace often may not see them
    if namespace:
        used = {queue["spec"]["clusterQueue"] for queue in local}
        cluster = [queue for queue in cluster if queue["metadata"]["name"] in used]
    if output == "json":
        return _json([*local, *cluster], LOCAL_QUEUES)
    if not local and not cluster:
        return _nothing("queues", namespace)
    headers, extra = list(rows.LOCAL_QUEUE_HEADERS), output == "wide"
    cells = [rows.local_queue_row(queue) for queue in local]
    if extra:
        headers.append("MESSAGE")
        cells = [[*row, rows.queue_message(queue)] for row, queue in zip(cells, local, strict=True)]
    if not namespace:
        headers.insert(0, "NAMESPACE")
        cells = [
            [queue["metadata"]["namespace"], *row] for row, queue in zip(cells, local, strict=True)
        ]
    parts = [table(headers, cells)]
    if cluster:
        parts.append(_cluster_queues(cluster, output))
    return "\n\n".join(parts)


def _cluster_queues(queues: list[Json], output: str) -> str:
    if output == "json":
        return _json(queues, CLUSTER_QUEUES)
    if not queues:
        return "No ClusterQueues found."
    headers, cells = list(rows.CLUSTER_QUEUE_HEADERS), [rows.cluster_queue_row(q) for q in queues]
    headers[0] = "CLUSTERQUEUE"
    if output == "wide":
        headers.append("MESSAGE")
        cells = [
            [*row, rows.queue_message(queue)] for row, queue in zip(cells, queues, strict=True)
        ]
    return table(headers, cells)


async def _workloads(client: Client, namespace: str, output: str) -> str:
    workloads = await list_all(client, WORKLOADS, namespace)
    if output == "json":
        return _json(workloads, WORKLOADS)
    if not workloads:
        return _nothing("Workloads", namespace)
    places: dict[str, int] = {}
    if not namespace:  # a place in a queue needs everything that waits in it
        local = await list_all(client, LOCAL_QUEUES)
        queue_of = {rows.key_of(queue): queue["spec"]["clusterQueue"] for queue in local}
        places = rows.positions(workloads, queue_of)
    now_ms = SystemClock().now_ms()
    headers, cells = list(rows.WORKLOAD_HEADERS), []
    for workload in workloads:
        row = rows.workload_row(workload, now_ms=now_ms, position=places.get(rows.key_of(workload)))
        if output == "wide":
            row.append(rows.workload_message(workload))
        if not namespace:
            row.insert(0, workload["metadata"]["namespace"])
        cells.append(row)
    if output == "wide":
        headers.append("MESSAGE")
    if not namespace:
        headers.insert(0, "NAMESPACE")
    return table(headers, cells)


def _json(items: list[Json], resource: Resource) -> str:
    for item in items:
        item.setdefault("apiVersion", resource.api_version)
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2)


def _nothing(what: str, namespace: str) -> str:
    return f"No {what} found{f' in namespace {namespace}' if namespace else ''}."
