"""kubectl's everyday commands: the same words and effects on every control plane."""

import asyncio
import json
import os
from typing import Any

import pytest
import pytest_asyncio
from tests.support.controlplane import ControlPlane, KubectlFactory
from tests.support.kubectl import Kubectl

pytestmark = pytest.mark.slow

PROCESS_TIMEOUT_S = 30.0


def job(name: str = "work", **spec: Any) -> dict[str, Any]:
    template = {
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "busybox:1", "env": [{"name": "A"}]}],
        }
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "suspend": True,
            "parallelism": 2,
            "completions": 4,
            "template": template,
            **spec,
        },
    }


@pytest_asyncio.fixture
async def kubectl(
    control_plane: ControlPlane, namespace: str, kubectl_of: KubectlFactory
) -> Kubectl:
    """kubectl within a fresh namespace."""
    return kubectl_of(control_plane).within(namespace)


async def edit(kubectl: Kubectl, editor: str, *arguments: str) -> int:
    """Run `kubectl edit` with a program as the editor."""
    process = await start(kubectl, "edit", *arguments, editor=editor)
    await asyncio.wait_for(process.communicate(), PROCESS_TIMEOUT_S)
    return process.returncode or 0


async def start(kubectl: Kubectl, *arguments: str, editor: str = "") -> asyncio.subprocess.Process:
    """Start kubectl and leave it running."""
    return await asyncio.create_subprocess_exec(
        kubectl.program,
        "--kubeconfig",
        kubectl.kubeconfig,
        "--namespace",
        kubectl.namespace,
        *arguments,
        env={"HOME": str(kubectl.home), "PATH": os.environ["PATH"], "KUBE_EDITOR": editor},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_get_in_its_forms(kubectl: Kubectl) -> None:
    await kubectl.apply(job())
    header, row = (await kubectl("get", "jobs")).splitlines()
    assert header.split() == ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
    assert row.split()[:3] == ["work", "Suspended", "0/4"] or row.split()[1] == "Running"
    wide = await kubectl("get", "jobs", "-o", "wide")
    assert "CONTAINERS" in wide
    assert "busybox:1" in wide
    assert "app=work" in await kubectl("get", "jobs", "--show-labels")
    assert "work" in await kubectl("get", "jobs", "-A", "--no-headers")
    assert (await kubectl("get", "job", "work", "-o", "name")).strip() == "job.batch/work"
    path = "jsonpath={.spec.parallelism} {.metadata.labels.app}"
    assert await kubectl("get", "job", "work", "-o", path) == "2 work"
    assert "suspend: true" in await kubectl("get", "job", "work", "-o", "yaml")
    columns = "custom-columns=N:.metadata.name"
    assert (await kubectl("get", "job", "-o", columns)).split() == ["N", "work"]
    assert "work" in await kubectl("get", "jobs", "-l", "app=work")
    assert (await kubectl.run("get", "jobs", "-l", "app=other")).err.startswith("No resources")
    assert "work" in await kubectl("get", "jobs", "--field-selector", "metadata.name=work")
    assert "work" in await kubectl("get", "all")
    assert "work" in await kubectl("get", "jobs", "--sort-by", ".metadata.name", "--chunk-size=1")


async def test_watching_a_table(kubectl: Kubectl) -> None:
    await kubectl.apply(job())
    process = await start(kubectl, "get", "jobs", "-w")
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PROCESS_TIMEOUT_S):
            assert b"NAME" in await process.stdout.readline()
            assert b"work" in await process.stdout.readline()
            await kubectl.apply(job("later"))
            while b"later" not in await process.stdout.readline():
                pass
    finally:
        process.terminate()
        await process.wait()


async def test_what_is_missing_is_said(kubectl: Kubectl) -> None:
    result = await kubectl.run("get", "job", "none")
    assert result.code == 1
    assert 'Error from server (NotFound): jobs.batch "none" not found' in result.err
    assert "doesn't have a resource type" in (await kubectl.run("get", "nonsense")).err


async def test_apply_on_the_clients_side(kubectl: Kubectl) -> None:
    assert await kubectl.apply(job()) == "job.batch/work created\n"
    assert await kubectl.apply(job()) == "job.batch/work unchanged\n"
    assert await kubectl.apply(job(parallelism=3)) == "job.batch/work configured\n"
    changed = job()
    changed["metadata"]["labels"] = {"other": "label"}
    del changed["spec"]["parallelism"]
    await kubectl.apply(changed)
    found = await kubectl.get("job", "work")
    assert found["metadata"]["labels"] == {"other": "label"}
    assert found["spec"]["parallelism"] == 1


async def test_apply_on_the_servers_side(kubectl: Kubectl) -> None:
    text = json.dumps(job())
    applied = await kubectl("apply", "--server-side", "-f", "-", stdin=text)
    assert applied == "job.batch/work serverside-applied\n"
    other = json.dumps(job(parallelism=5))
    flags = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    result = await kubectl.run(*flags, stdin=other)
    assert result.code == 1
    assert 'conflict with "kubectl": .spec.parallelism' in result.err
    await kubectl(*flags, "--force-conflicts", stdin=other)
    assert (await kubectl.get("job", "work"))["spec"]["parallelism"] == 5
    fields = await kubectl("get", "job", "work", "-o", "yaml", "--show-managed-fields")
    assert "manager: other" in fields


async def test_from_client_side_to_server_side_apply(kubectl: Kubectl) -> None:
    await kubectl.apply(job())
    result = await kubectl.run("apply", "--server-side", "-f", "-", stdin=json.dumps(job()))
    assert result.code == 0
    assert "Warning" not in result.err
    assert (await kubectl.get("job", "work"))["spec"]["parallelism"] == 2


async def test_a_mistake_in_a_file_is_found(kubectl: Kubectl) -> None:
    for flags in ((), ("--server-side",)):
        wrong = json.dumps(job(paralelism=3))
        result = await kubectl.run("apply", *flags, "-f", "-", stdin=wrong)
        assert result.code == 1
        assert "spec.paralelism" in result.err
    result = await kubectl.run("apply", "-f", "-", stdin=json.dumps(job(parallelism=-1)))
    assert "spec.parallelism: Invalid value: -1" in result.err


async def test_dry_run_and_diff(kubectl: Kubectl) -> None:
    flags = ("apply", "--dry-run=server", "-f", "-")
    shown = await kubectl(*flags, "-o", "json", stdin=json.dumps(job()))
    assert json.loads(shown)["spec"]["backoffLimit"] == 6
    assert (await kubectl.run("get", "job", "work")).code == 1
    await kubectl.apply(job())
    same = await kubectl.run("diff", "-f", "-", stdin=json.dumps(job()))
    assert (same.code, same.out) == (0, "")
    other = await kubectl.run("diff", "-f", "-", stdin=json.dumps(job(parallelism=4)))
    assert other.code == 1
    assert "+  parallelism: 4" in other.out


async def test_create_and_replace(kubectl: Kubectl) -> None:
    created = await kubectl("create", "-f", "-", stdin=json.dumps(job()))
    assert created == "job.batch/work created\n"
    again = await kubectl.run("create", "-f", "-", stdin=json.dumps(job()))
    assert "AlreadyExists" in again.err
    live = await kubectl.get("job", "work")
    live["spec"]["parallelism"] = 7
    replaced = await kubectl("replace", "-f", "-", stdin=json.dumps(live))
    assert replaced == "job.batch/work replaced\n"
    stale = await kubectl.run("replace", "-f", "-", stdin=json.dumps(live))
    assert "the object has been modified" in stale.err


async def test_patches(kubectl: Kubectl) -> None:
    await kubectl.apply(job())
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    strategic = {"spec": {"template": {"spec": {"containers": [container]}}}}
    await kubectl("patch", "job", "work", "-p", json.dumps(strategic))
    merge = {"metadata": {"labels": {"app": None, "x": "y"}}}
    await kubectl("patch", "job", "work", "--type=merge", "-p", json.dumps(merge))
    operation = [{"op": "replace", "path": "/spec/parallelism", "value": 9}]
    await kubectl("patch", "job", "work", "--type=json", "-p", json.dumps(operation))
    found = await kubectl.get("job", "work")
    (merged,) = found["spec"]["template"]["spec"]["containers"]
    assert (merged["image"], merged["resources"]["requests"]) == ("busybox:1", {"cpu": "1"})
    assert found["metadata"]["labels"] == {"x": "y"}
    assert found["spec"]["parallelism"] == 9
    same = await kubectl("patch", "job", "work", "--type=json", "-p", json.dumps(operation))
    assert same == "job.batch/work patched (no change)\n"


async def test_label_annotate_and_edit(kubectl: Kubectl, namespace: str) -> None:
    await kubectl.apply(job())
    await kubectl("label", "job", "work", "a=b")
    await kubectl("annotate", "job", "work", "note=text")
    assert "already has a value" in (await kubectl.run("label", "job", "work", "a=c")).err
    await kubectl("label", "job", "work", "a=c", "--overwrite")
    await kubectl("label", "job", "work", "app-")
    found = (await kubectl.get("job", "work"))["metadata"]
    assert found["labels"] == {"a": "c"}
    assert found["annotations"]["note"] == "text"
    editor = "sed -i 's/parallelism: 2/parallelism: 6/'"
    assert await edit(kubectl, editor, "job", "work") == 0
    assert (await kubectl.get("job", "work"))["spec"]["parallelism"] == 6


async def test_describe_and_events(kubectl: Kubectl, namespace: str) -> None:
    await kubectl.apply(job())
    uid = (await kubectl.get("job", "work"))["metadata"]["uid"]
    about = {"kind": "Job", "apiVersion": "batch/v1", "namespace": namespace, "name": "work"}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "work.1"},
        "involvedObject": {**about, "uid": uid},
        "reason": "Noted",
        "message": "something happened",
        "type": "Normal",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "source": {"component": "tester"},
    }
    await kubectl("create", "-f", "-", stdin=json.dumps(event))
    described = await kubectl("describe", "job", "work")
    assert "Parallelism:" in described
    assert "something happened" in described
    assert "something happened" in await kubectl("events", "--for", "job/work")
    assert "Noted" in await kubectl("get", "events")
    new = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "work.2"},
        "regarding": about,
        "reason": "Anew",
        "action": "Do",
        "type": "Normal",
        "reportingController": "tester",
        "reportingInstance": "tester-1",
        "eventTime": "2026-01-01T00:00:00.000000Z",
    }
    await kubectl("create", "-f", "-", stdin=json.dumps(new))
    assert "Anew" in await kubectl("get", "events", "--sort-by=.lastTimestamp")


async def test_wait_for_what_is_there(kubectl: Kubectl) -> None:
    await kubectl.apply(job())
    await kubectl("wait", "--for=jsonpath={.spec.parallelism}=2", "job/work", "--timeout=20s")
    await kubectl("wait", "--for=create", "job/work", "--timeout=20s")
    late = await kubectl.run("wait", "--for=condition=Complete", "job/work", "--timeout=1s")
    assert "timed out waiting for the condition" in late.err


async def test_delete(kubectl: Kubectl) -> None:
    for name in ("a", "b", "c"):
        await kubectl.apply(job(name))
    await kubectl("delete", "job", "a", "--timeout=30s")
    await kubectl("delete", "-f", "-", "--timeout=30s", stdin=json.dumps(job("b")))
    assert (await kubectl.run("delete", "job", "a")).code == 1
    assert (await kubectl.run("delete", "job", "a", "--ignore-not-found")).code == 0
    await kubectl("wait", "--for=delete", "job/a", "--timeout=20s")
    await kubectl("delete", "jobs", "--all", "--timeout=30s")
    assert (await kubectl.get("jobs"))["items"] == []


async def test_explain_and_discovery(kubectl: Kubectl) -> None:
    explained = await kubectl("explain", "job.spec.suspend")
    assert "<boolean>" in explained
    assert "FIELDS" in await kubectl("explain", "pod.spec.containers")
    resources = await kubectl("api-resources", "--api-group=batch")
    assert "jobs" in resources
    assert "batch/v1" in await kubectl("api-versions")
    assert "Server Version: v1.36" in await kubectl("version")
    assert (await kubectl("get", "--raw", "/readyz")).strip() == "ok"
