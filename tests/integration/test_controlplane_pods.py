"""Jobs get Pods that run and end as their annotations say, on both control planes."""

from typing import Any

import pytest
from tests.support.controlplane import ControlPlane
from tests.support.waiting import has_condition, has_phase, wait_for, wait_until_deleted

from sluice.kube.client import Client
from sluice.kube.resources import BATCH_JOBS, NODES, PODS
from sluice.local.real import (
    EXIT_CODE_ANNOTATION,
    OUTCOME_ANNOTATION,
    RUN_TIME_ANNOTATION,
    RealControlPlane,
    SimulatedNode,
)

pytestmark = pytest.mark.slow


def job(name: str, annotations: dict[str, str], *, gpus: int = 0, **spec: Any) -> dict[str, Any]:
    resources: dict[str, Any] = {"requests": {"cpu": "1"}}
    if gpus:
        resources["limits"] = {"nvidia.com/gpu": str(gpus)}
    container = {"name": "main", "image": "none", "resources": resources}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "backoffLimit": 0,
            **spec,
            "template": {
                "metadata": {"annotations": annotations},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
        },
    }


async def test_pods_run_as_long_as_annotated_and_the_job_completes(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with Client(control_plane.access) as client:
        wanted = job("ok", {RUN_TIME_ANNOTATION: "1s"}, gpus=2, completions=2, parallelism=2)
        await client.create(BATCH_JOBS, namespace, wanted)
        running = await wait_for(client, PODS, namespace, has_phase("Running"))
        assert running["spec"]["nodeName"] in {"node-0", "node-1"}
        assert has_condition("Ready")(running)
        done = await wait_for(client, BATCH_JOBS, namespace, has_condition("Complete"))
        assert done["status"]["succeeded"] == 2
        pods = (await client.list(PODS, namespace))["items"]
    states = [pod["status"]["containerStatuses"][0]["state"]["terminated"] for pod in pods]
    assert [state["exitCode"] for state in states] == [0, 0]


async def test_a_pod_fails_with_the_annotated_exit_code(
    control_plane: ControlPlane, namespace: str
) -> None:
    annotations = {
        RUN_TIME_ANNOTATION: "100ms",
        OUTCOME_ANNOTATION: "Failed",
        EXIT_CODE_ANNOTATION: "42",
    }
    async with Client(control_plane.access) as client:
        await client.create(BATCH_JOBS, namespace, job("bad", annotations))
        failed = await wait_for(client, BATCH_JOBS, namespace, has_condition("Failed"))
        assert failed["status"]["failed"] == 1
        pod = await wait_for(client, PODS, namespace, has_phase("Failed"))
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 42


async def test_a_pod_without_a_run_time_runs_until_its_job_is_suspended(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with Client(control_plane.access) as client:
        await client.create(BATCH_JOBS, namespace, job("long", {}))
        pod = await wait_for(client, PODS, namespace, has_phase("Running"))
        name = pod["metadata"]["name"]
        await client.patch(BATCH_JOBS, namespace, "long", {"spec": {"suspend": True}})
        await wait_until_deleted(client, PODS, namespace, name)
        job_now = await wait_for(client, BATCH_JOBS, namespace, has_condition("Suspended"))
        assert not job_now["status"].get("active")


async def test_nodes_carry_the_resources_labels_and_taints_they_are_given(
    real_cluster: RealControlPlane, cluster_namespace: str
) -> None:
    taint = {"key": "spot", "value": "true", "effect": "NoSchedule"}
    node = SimulatedNode(
        name="spot-0", cpu="8", memory="32Gi", gpus=4, labels={"pool": "spot"}, taints=[taint]
    )
    await real_cluster.add_nodes([node])
    try:
        async with Client(real_cluster.access()) as client:
            made = await client.get(NODES, "", "spot-0")
            assert made["metadata"]["labels"]["pool"] == "spot"
            assert made["status"]["allocatable"]["nvidia.com/gpu"] == "4"
            assert taint in made["spec"]["taints"]
            wanted = job("on-spot", {RUN_TIME_ANNOTATION: "10ms"})
            pod_spec = wanted["spec"]["template"]["spec"]
            pod_spec["nodeSelector"] = {"pool": "spot"}
            pod_spec["tolerations"] = [{"key": "spot", "operator": "Exists"}]
            await client.create(BATCH_JOBS, cluster_namespace, wanted)
            await wait_for(client, BATCH_JOBS, cluster_namespace, has_condition("Complete"))
            pods = (await client.list(PODS, cluster_namespace))["items"]
        assert [pod["spec"]["nodeName"] for pod in pods] == ["spot-0"]
    finally:
        await real_cluster.remove_nodes(["spot-0"])


async def test_running_pods_survive_a_crash_of_the_api_server(
    real_cluster: RealControlPlane, cluster_namespace: str
) -> None:
    async with Client(real_cluster.access()) as client:
        wanted = job("steady", {RUN_TIME_ANNOTATION: "2s"})
        await client.create(BATCH_JOBS, cluster_namespace, wanted)
        await wait_for(client, PODS, cluster_namespace, has_phase("Running"))
        await real_cluster.restart_api_server(is_crash=True)
        await wait_for(client, BATCH_JOBS, cluster_namespace, has_condition("Complete"))
        assert len((await client.list(PODS, cluster_namespace))["items"]) == 1
