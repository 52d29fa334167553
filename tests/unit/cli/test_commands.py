"""Commands as a user runs them: output, exit codes, one line for what is wrong."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.unit.kube.wire_server import Fault, WireServer

from sluice import __version__
from sluice.cli.main import COMMANDS, execute

QUEUES = "/apis/kueue.x-k8s.io/v1beta2/namespaces/team/localqueues"
CLUSTER_QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/team/workloads"


async def run(*arguments: str) -> int:
    """Run a command in a thread: it has an event loop of its own."""
    return await asyncio.to_thread(execute, arguments)


def local_queue(server: WireServer, name: str) -> None:
    server.put(
        f"{QUEUES}/{name}",
        {
            "metadata": {"name": name, "namespace": "team"},
            "spec": {"clusterQueue": "cq"},
            "status": {"pendingWorkloads": 2},
        },
    )


async def test_queues_and_what_they_lead_to(
    server: WireServer, kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    local_queue(server, "lq")
    for name in ("cq", "other"):
        server.put(f"{CLUSTER_QUEUES}/{name}", {"metadata": {"name": name}, "spec": {}})
    assert await run("get", "queues", "--kubeconfig", kubeconfig) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1].split()[:3] == ["lq", "cq", "2"]
    assert "other" not in out


async def test_queues_of_who_may_not_see_cluster_queues(
    server: WireServer, kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    local_queue(server, "lq")
    server.faults.append(Fault("GET", "clusterqueues", status=403, times=9))
    assert await run("get", "queues", "--kubeconfig", kubeconfig) == 0
    assert "CLUSTERQUEUE   COHORT" not in capsys.readouterr().out


async def test_json_is_a_list_of_the_objects(
    server: WireServer, kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    local_queue(server, "lq")
    assert await run("get", "lq", "-o", "json", "--kubeconfig", kubeconfig) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "List"
    assert found["items"][0]["metadata"]["name"] == "lq"


async def test_nothing_is_said_to_be_nothing(
    kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await run("get", "workloads", "--kubeconfig", kubeconfig) == 0
    assert capsys.readouterr().out == "No Workloads found in namespace team.\n"


@pytest.mark.parametrize(
    ("arguments", "path", "spec"),
    [
        (("stop", "cq", "x"), f"{CLUSTER_QUEUES}/x", {"stopPolicy": "HoldAndDrain"}),
        (
            ("stop", "clusterqueue", "x", "--keep-already-running"),
            f"{CLUSTER_QUEUES}/x",
            {"stopPolicy": "Hold"},
        ),
        (("resume", "cq", "x"), f"{CLUSTER_QUEUES}/x", {"stopPolicy": "None"}),
        (("stop", "localqueue", "x"), f"{QUEUES}/x", {"stopPolicy": "HoldAndDrain"}),
        (("stop", "workload", "x"), f"{WORKLOADS}/x", {"active": False}),
        (("resume", "workload", "x"), f"{WORKLOADS}/x", {"active": True}),
    ],
)
async def test_stop_and_resume(
    server: WireServer,
    kubeconfig: str,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    path: str,
    spec: dict[str, object],
) -> None:
    server.put(path, {"metadata": {"name": "x"}})
    assert await run(*arguments, "--kubeconfig", kubeconfig) == 0
    assert server.bodies[-1] == {"spec": spec}
    assert "/x " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("stop", "workload", "w", "--keep-already-running"), 2, "is for queues"),
        (("stop", "job", "j"), 2, "'job' is none of clusterqueue, localqueue, workload"),
        (("stop", "lq", "gone"), 2, "LocalQueue 'gone' not found in namespace team"),
        (("get", "pods"), 2, "'pods' is none of"),
        (("get", "queues", "-o", "xml"), 2, "--output: 'xml' is none of table, wide, json"),
        (("get", "queues", "--context", "y"), 2, "object with name y"),
    ],
)
async def test_mistakes_are_one_line(
    server: WireServer,
    kubeconfig: str,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    server.faults.append(
        Fault("PATCH", "gone", status=404, body={"reason": "NotFound", "message": "not found"})
    )
    assert await run(*arguments, "--kubeconfig", kubeconfig) == code
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith("error: ")
    assert message in error


async def test_a_cluster_without_our_api_says_what_to_apply(
    server: WireServer, kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    body = {
        "reason": "NotFound",
        "message": "the server could not find the requested resource",
    }
    server.faults.append(Fault("GET", "workloads", status=404, body=body))
    assert await run("get", "workloads", "--kubeconfig", kubeconfig) == 2
    assert "apply manifests/base" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "manager", "webhook"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("apiVersion: v1", "kind: Unsupported value"),
        (
            "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nwebhok: {}",
            'unknown field "webhok"',
        ),
    ],
)
async def test_a_bad_configuration_file_ends_serving_commands(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    content: str,
    message: str,
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(content)
    assert await run(command, "--config", str(path), "--kubeconfig", "/nowhere") == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: --config {path}: ")
    assert message in error


async def test_a_missing_kubeconfig_ends_serving_commands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await run("run", "--kubeconfig", "/nowhere") == 2
    assert capsys.readouterr().err == (
        "error: kubeconfig /nowhere does not exist; pass --kubeconfig FILE\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--feature-gates", "A"), "'A' is not of the form"),
        (("run", "--feature-gates", "Nope=true"), "unknown feature gate Nope"),
        (("run", "--log-level", "loud"), "--log-level: 'loud' is none of"),
        (("run", "--zap-encoder", "xml"), "--log-format: 'xml' is none of"),
    ],
)
async def test_bad_flags(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert await run(*arguments) == 2
    assert message in capsys.readouterr().err


async def test_version(
    server: WireServer, kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await run("version", "--kubeconfig", kubeconfig) == 0
    assert capsys.readouterr().out == f"sluice {__version__}\nKubernetes v1.36.0\n"
    assert await run("version", "--client") == 0
    assert capsys.readouterr().out == f"sluice {__version__}\n"


async def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert await run("--help") == 0
    out = capsys.readouterr().out
    assert all(f" {name} " in out for name in COMMANDS)
