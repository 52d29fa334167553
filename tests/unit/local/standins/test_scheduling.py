"""Where pods go: the rules, and the scheduler on the embedded API server."""

from typing import Any

import pytest
from tests.support.waiting import has_condition
from tests.unit.local.standins.conftest import NAMESPACE, Cluster, template

from sluice.kube.client import PatchType
from sluice.kube.resources import NODES, PODS
from sluice.local.standins import fitting, records


def node(**fields: Any) -> fitting.NodeRoom:
    values: dict[str, Any] = {
        "name": "n", "labels": {"zone": "a", "size": "5"}, "taints": (),
        "allocatable": {"cpu": 4000, "memory": 8 * 2**30, "pods": 10, "nvidia.com/gpu": 2},
    }  # fmt: skip
    return fitting.NodeRoom(**(values | fields))


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {}, "spec": {"containers": [], **spec}}


def asks(**amounts: str) -> list[dict[str, Any]]:
    named = {key.replace("gpu", "nvidia.com/gpu"): value for key, value in amounts.items()}
    return [{"name": "c", "resources": {"requests": named}}]


def term(*expressions: dict[str, Any], **more: Any) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [{"matchExpressions": list(expressions), **more}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return {"affinity": {"nodeAffinity": affinity}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
AFFINITY = ["node(s) didn't match Pod's node affinity/selector"]
TAINTED = ["node(s) had untolerated taint {gpu: yes}"]
CASES: list[tuple[str, dict[str, Any], dict[str, Any], list[str]]] = [
    ("fits", {"containers": asks(cpu="4", gpu="2")}, {}, []),
    ("too much cpu", {"containers": asks(cpu="4001m")}, {}, ["Insufficient cpu"]),
    ("no such resource", {"containers": asks(**{"example.com/x": "1"})}, {},
     ["Insufficient example.com/x"]),
    ("several", {"containers": asks(cpu="5", memory="9Gi")}, {},
     ["Insufficient cpu", "Insufficient memory"]),
    ("selector", {"nodeSelector": {"zone": "a"}}, {}, []),
    ("selector of another", {"nodeSelector": {"zone": "b"}}, {}, AFFINITY),
    ("affinity in", term(expression("zone", "In", "a", "b")), {}, []),
    ("affinity not in", term(expression("zone", "NotIn", "a")), {}, AFFINITY),
    ("affinity exists", term(expression("rack", "Exists")), {}, AFFINITY),
    ("affinity absent", term(expression("rack", "DoesNotExist")), {}, []),
    ("affinity greater", term(expression("size", "Gt", "4")), {}, []),
    ("affinity less", term(expression("size", "Lt", "4")), {}, AFFINITY),
    ("affinity by name", term(matchFields=[expression("metadata.name", "In", "n")]), {}, []),
    ("empty term matches nothing", term(), {}, AFFINITY),
    ("taint", {}, {"taints": (TAINT,)}, TAINTED),
    ("soft taint", {}, {"taints": ({**TAINT, "effect": "PreferNoSchedule"},)}, []),
    ("tolerated", {"tolerations": [{"key": "gpu", "value": "yes"}]}, {"taints": (TAINT,)}, []),
    ("tolerated by existence", {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
     {"taints": (TAINT,)}, []),
    ("everything tolerated", {"tolerations": [{"operator": "Exists"}]}, {"taints": (TAINT,)}, []),
    ("another value", {"tolerations": [{"key": "gpu", "value": "no"}]}, {"taints": (TAINT,)},
     TAINTED),
    ("another effect", {"tolerations": [{"key": "gpu", "operator": "Exists",
                                         "effect": "NoExecute"}]}, {"taints": (TAINT,)}, TAINTED),
]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "changed", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_refusals(spec: dict[str, Any], changed: dict[str, Any], expected: list[str]) -> None:
    wanted = pod(**spec)
    found = fitting.refusals(wanted, records.requests(wanted), node(**changed), {})
    assert found == expected


def test_what_runs_already_counts() -> None:
    wanted = pod(containers=asks(cpu="1"))
    asked = records.requests(wanted)
    assert fitting.refusals(wanted, asked, node(), {"cpu": 3000}) == []
    assert fitting.refusals(wanted, asked, node(), {"cpu": 3001}) == ["Insufficient cpu"]
    assert fitting.refusals(wanted, asked, node(), {"pods": 10}) == ["Too many pods"]


def test_init_containers_count_with_their_peak() -> None:
    init = [
        {"name": "i", "resources": {"requests": {"cpu": "3"}}},
        {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
        {"name": "j", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
    ]
    asked = records.requests(pod(containers=asks(cpu="1"), initContainers=init))
    assert asked == {"cpu": 3000, "memory": 2**30, "pods": 1}


def test_a_cordoned_node_is_tainted() -> None:
    room = fitting.node_room({"metadata": {"name": "n"}, "spec": {"unschedulable": True}})
    assert [taint["key"] for taint in room.taints] == ["node.kubernetes.io/unschedulable"]


async def create_pod(cluster: Cluster, name: str, **fields: Any) -> None:
    made = template(run=None, **fields)
    made["metadata"] |= {"name": name}
    body = {"apiVersion": "v1", "kind": "Pod", **made}
    await cluster.client.create(PODS, NAMESPACE, body)


GPUS: dict[str, Any] = {"limits": {"nvidia.com/gpu": "2"}}


@pytest.mark.slow
async def test_a_pod_that_fits_nowhere_says_why_and_waits(cluster: Cluster) -> None:
    for name in ("a", "b", "c"):
        await create_pod(cluster, name, resources=dict(GPUS))
    waiting = await cluster.pod(has_condition("PodScheduled", "False", "Unschedulable"))
    message = waiting["status"]["conditions"][0]["message"]
    assert message == "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    name = waiting["metadata"]["name"]
    other = next(iter({"a", "b", "c"} - {name}))
    await cluster.client.delete(PODS, NAMESPACE, other)
    placed = await cluster.pod(
        lambda item: item["metadata"]["name"] == name and item["status"]["phase"] == "Running"
    )
    assert has_condition("PodScheduled", "True")(placed)


@pytest.mark.slow
async def test_pods_spread_over_nodes(cluster: Cluster) -> None:
    for name in ("a", "b"):
        await create_pod(cluster, name, resources={"requests": {"cpu": "1"}})
    for name in ("a", "b"):
        await cluster.pod(lambda item, wanted=name: item["metadata"]["name"] == wanted
                          and item["status"]["phase"] == "Running")  # fmt: skip
    assert {item["spec"]["nodeName"] for item in await cluster.pods()} == {"node-0", "node-1"}


@pytest.mark.slow
async def test_gates_hold_a_pod_back(cluster: Cluster) -> None:
    await create_pod(cluster, "a", schedulingGates=[{"name": "example.com/gate"}])
    held = await cluster.pod(has_condition("PodScheduled", "False", "SchedulingGated"))
    assert "nodeName" not in held["spec"]
    free = {"spec": {"schedulingGates": []}}
    await cluster.client.patch(PODS, NAMESPACE, "a", free, patch_type=PatchType.MERGE)
    await cluster.pod(lambda item: item["status"]["phase"] == "Running")


@pytest.mark.slow
async def test_a_new_node_takes_the_waiting(cluster: Cluster) -> None:
    await create_pod(cluster, "a", nodeSelector={"pool": "new"})
    await cluster.pod(has_condition("PodScheduled", "False", "Unschedulable"))
    labels = {"metadata": {"labels": {"pool": "new"}}}
    await cluster.client.patch(NODES, "", "node-1", labels, patch_type=PatchType.MERGE)
    placed = await cluster.pod(lambda item: item["status"]["phase"] == "Running")
    assert placed["spec"]["nodeName"] == "node-1"


@pytest.mark.slow
async def test_nodes_get_ready(cluster: Cluster) -> None:
    from tests.support.waiting import wait_for

    ready = await wait_for(cluster.client, NODES, "", has_condition("Ready"), deadline_s=15)
    assert ready["status"]["nodeInfo"]["architecture"] == "amd64"
