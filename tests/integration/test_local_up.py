"""``sluice up`` as a person uses it: kubectl, the examples, several at once, nothing left."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.support.commands import (
    environment,
    kubectl_for,
    left,
    line_with,
    lines_until,
    rest_of,
    sluice,
)
from tests.support.kubectl import Kubectl

from sluice.cli import manifests

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

BOTH = [
    pytest.param((), id="embedded"),
    pytest.param(("--real",), id="real", marks=pytest.mark.real),
]
EXAMPLES = manifests.folder() / "examples"
CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
webhook: {{port: {taken}}}
metrics: {{bindAddress: "127.0.0.1:{taken}"}}
health: {{healthProbeBindAddress: "127.0.0.1:{taken}"}}
manageJobsWithoutQueueName: true
"""
UNQUEUED = """
apiVersion: batch/v1
kind: Job
metadata: {name: unqueued, namespace: default}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: busybox}]
"""


@asynccontextmanager
async def running(temporary: Path, *arguments: str) -> AsyncIterator[Kubectl]:
    """Run ``sluice up`` until the context ends, by SIGTERM; lend a kubectl for it."""
    kubeconfig = temporary / "mine" / "kubeconfig"
    async with sluice(temporary, "up", "--kubeconfig", str(kubeconfig), *arguments) as process:
        assert str(kubeconfig) in await line_with(process, "kubeconfig")
        await line_with(process, "Ctrl-C")
        yield kubectl_for(kubeconfig, temporary)
        process.send_signal(signal.SIGTERM)
        output = await rest_of(process)
    assert process.returncode == 0, output
    assert output.endswith("stopped; nothing is left behind\n")
    assert "Traceback" not in output
    assert not kubeconfig.exists(), "it would lead nowhere"
    assert left(temporary) == set()


@pytest.mark.parametrize("flags", BOTH)
async def test_it_serves_until_it_is_ended(tmp_path: Path, flags: tuple[str]) -> None:
    async with running(tmp_path, "--nodes", "4", *flags) as kubectl:
        assert kubectl.kubeconfig.stat().st_mode & 0o077 == 0, "others may not read credentials"
        nodes = await kubectl("get", "nodes", "-o", "name")
        assert nodes.split() == [f"node/node-{i}" for i in range(4)]


@pytest.mark.parametrize("flags", BOTH)
async def test_the_examples_run_as_the_greeting_says(tmp_path: Path, flags: tuple[str]) -> None:
    async with running(tmp_path, "--run-time", "1s", *flags) as kubectl:
        await kubectl("apply", "-k", str(EXAMPLES))
        await kubectl("create", "-f", str(EXAMPLES / "jobs.yaml"))
        jobs = ("job", "--all", "--all-namespaces", "--timeout=60s")
        await kubectl("wait", "--for=condition=Complete", *jobs)
        for program, kind in (("sluice", "queues"), ("kubectl-sluice", "workloads")):
            shown = await output_of(tmp_path, kubectl.kubeconfig, program, "get", kind, "-A")
            assert "team-vision" in shown
        assert "Finished" in shown
        # A bare Pod is to be restarted, so it goes on.
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"}}
        container = {"name": "c", "image": "busybox"}
        await kubectl.apply({**pod, "spec": {"containers": [container]}})
        await kubectl("wait", "--for=condition=Ready", "pod/bare", "--timeout=60s")
        late = await kubectl.run("wait", "--for=condition=Ready=false", "pod/bare", "--timeout=3s")
        assert late.code == 1


async def output_of(temporary: Path, kubeconfig: Path, program: str, *arguments: str) -> str:
    """Run an installed program with KUBECONFIG set, as a person does."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).parent / program),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        env=environment(temporary, KUBECONFIG=str(kubeconfig)),
    )
    return await rest_of(process)


async def test_the_base_can_be_applied_to_the_embedded_one(tmp_path: Path) -> None:
    async with running(tmp_path) as kubectl:
        await kubectl("apply", "--server-side", "-k", str(manifests.folder() / "base"))
        await kubectl("apply", "-k", str(EXAMPLES))
        queue = await kubectl("get", "clusterqueue.v1beta1.kueue.x-k8s.io", "vision", "-o", "name")
        assert queue.strip() == "clusterqueue.kueue.x-k8s.io/vision"


async def test_two_with_the_same_configuration_run_at_once(tmp_path: Path) -> None:
    config = tmp_path / "mine" / "kueue.yaml"
    config.parent.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config.write_text(CONFIGURATION.format(taken=taken.getsockname()[1]))
        async with (
            sluice(tmp_path, "up", "--config", str(config)) as one,
            sluice(tmp_path, "up", "--config", str(config)) as other,
        ):
            for process in (one, other):
                greeting = await lines_until(process, "Ctrl-C")
                text = " ".join("".join(greeting).split())
                assert "webhook in it is replaced" in text
                (kubeconfig,) = [
                    line.split()[1] for line in greeting if line.startswith("kubeconfig")
                ]
                kubectl = kubectl_for(Path(kubeconfig), tmp_path)
                await kubectl("create", "-f", "-", stdin=UNQUEUED)
                # The file's other settings hold: this Job waits for a queue it does not name.
                job = await kubectl.get("job", "unqueued")
                assert job["spec"]["suspend"] is True
                process.send_signal(signal.SIGINT)
                output = await rest_of(process)
                assert process.returncode == 0, output
    assert left(tmp_path) == set()


@pytest.mark.parametrize("flags", BOTH)
async def test_it_can_be_interrupted_while_it_starts(tmp_path: Path, flags: tuple[str]) -> None:
    async with sluice(tmp_path, "up", *flags) as process:
        await line_with(process, "etcd" if flags else "control plane")
        process.send_signal(signal.SIGINT)
        output = await rest_of(process)
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert left(tmp_path) == set()


async def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        async with sluice(tmp_path, "up", "--port", port) as process:
            output = await rest_of(process)
    assert process.returncode == 2
    assert f"error: --port {port}: " in output


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--kubeconfig", "{home}/.kube/config"), ".kube, which is for real clusters"),
        (("--run-time", "soon"), "error: --run-time soon: "),
        (("--config", "{home}/none.yaml"), "none.yaml: No such file or directory"),
        (("--config", "{home}/mine/wrong.yaml"), 'wrong.yaml: unknown field "webhok"'),
        (("--real", "--port", "7"), "error: --port is for the embedded API server"),
    ],
)
async def test_what_cannot_be_used_is_named(
    tmp_path: Path, flags: tuple[str, ...], text: str
) -> None:
    (tmp_path / "mine").mkdir()
    wrong = CONFIGURATION.format(taken=9443).replace("webhook:", "webhok:")
    (tmp_path / "mine" / "wrong.yaml").write_text(wrong)
    arguments = [flag.format(home=tmp_path) for flag in flags]
    async with sluice(tmp_path, "up", *arguments) as process:
        output = await rest_of(process)
    assert process.returncode == 2, output
    assert text in output
    assert left(tmp_path) == set()


@pytest.mark.real
async def test_a_program_that_dies_ends_it_with_its_log(tmp_path: Path) -> None:
    async with sluice(tmp_path, "up", "--real", "--log-level", "error") as process:
        await line_with(process, "Ctrl-C")
        (pid,) = children_named("kube-scheduler", process.pid)
        os.kill(pid, signal.SIGKILL)
        output = await rest_of(process)
    assert process.returncode == 1, output
    assert "kube-scheduler ended unexpectedly" in output
    assert left(tmp_path) == set()


def children_named(name: str, parent: int) -> list[int]:
    """Return the child processes of a process that run a program."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command, status = (path / "cmdline").read_bytes(), (path / "status").read_text()
        except OSError:
            continue
        if name.encode() in command.split(b"\0")[0] and f"PPid:\t{parent}\n" in status:
            found.append(int(path.name))
    return found
