"""What ``sluice up`` starts with: nodes for the examples, run times, a greeting that works."""

from pathlib import Path

import pytest

from sluice.api.errors import ConfigError
from sluice.cli import manifests
from sluice.cli.up_cluster import run_seconds, up_nodes


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30.0), ("5m", 300.0), ("1.5s", 1.5), ("0", None), ("0s", None)]
)
def test_run_times(text: str, seconds: float | None) -> None:
    assert run_seconds(text) == seconds


@pytest.mark.parametrize("text", ["30", "soon", "", "-5s"])
def test_run_times_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match=f"--run-time {text}: "):
        run_seconds(text)


def test_the_nodes_are_those_of_the_examples() -> None:
    nodes = [node.to_object() for node in up_nodes(3, 8)]
    queues = manifests.read("examples", "cluster-queues.yaml")
    quota: dict[str, int] = {}
    for queue in queues:
        for flavor in queue["spec"]["resourceGroups"][0]["flavors"]:
            for resource in flavor["resources"]:
                if resource["name"] == "nvidia.com/gpu":
                    held = quota.get(flavor["name"], 0)
                    quota[flavor["name"]] = held + resource["nominalQuota"]
    for flavor in manifests.read("examples", "flavors.yaml"):
        labels = flavor["spec"]["nodeLabels"].items()
        taints = flavor["spec"].get("nodeTaints", [])
        found = [node for node in nodes if labels <= node["metadata"]["labels"].items()]
        assert all(node["spec"].get("taints", []) == taints for node in found)
        gpus = sum(int(node["status"]["capacity"]["nvidia.com/gpu"]) for node in found)
        assert gpus == quota[flavor["metadata"]["name"]]


def test_the_examples_are_where_the_greeting_says() -> None:
    assert (manifests.folder() / "examples" / "kustomization.yaml").is_file()
    assert Path(manifests.folder() / "examples" / "jobs.yaml").is_file()
