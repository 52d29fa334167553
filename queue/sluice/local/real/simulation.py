"""Simulated nodes, and the annotations by which a Pod says how long it runs and how it ends.

kwok plays the kubelets by the rules in ``stages.yaml``; here is what callers need to use them. For
``sluice up --real``, the tests and the benchmarks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final

import yaml

RUN_TIME_ANNOTATION: Final = "sluicegate.io/run-time"
"""A Go duration such as ``1.5s``: the Pod ends so long after it began to run.

Absent: never, unless `stages` is told otherwise.
"""

OUTCOME_ANNOTATION: Final = "sluicegate.io/outcome"
"""``Succeeded`` (also when absent) or ``Failed``."""

EXIT_CODE_ANNOTATION: Final = "sluicegate.io/exit-code"
"""Exit code of the containers of a Pod that fails; 1 when absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedNode:
    """A node that exists only in the API.

    Attributes:
        name: Its name; also the value of the label ``kubernetes.io/hostname``.
        cpu: Kubernetes quantity.
        memory: Kubernetes quantity.
        gpus: Count of ``nvidia.com/gpu``; 0 leaves the resource out.
        pods: How many Pods fit.
        labels: Added to those every node has.
        taints: As in ``spec.taints``.
    """

    name: str
    cpu: str = "32"
    memory: str = "256Gi"
    gpus: int = 0
    pods: int = 1000
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()

    def to_object(self) -> dict[str, Any]:
        """Return the Node to create."""
        capacity = {"cpu": self.cpu, "memory": self.memory, "pods": str(self.pods)}
        if self.gpus:
            capacity["nvidia.com/gpu"] = str(self.gpus)
        labels = {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            **self.labels,
        }
        node: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": labels},
            "spec": {},
            "status": {"capacity": capacity, "allocatable": capacity},
        }
        if self.taints:
            node["spec"]["taints"] = [dict(taint) for taint in self.taints]
        return node


def stages(run_s: float | None = None) -> str:
    """Return the configuration of kwok, YAML.

    Args:
        run_s: Seconds that a Pod that is not to be restarted runs when it has no annotation for it;
            None lets it run for ever.
    """
    text = resources.files(__package__).joinpath("stages.yaml").read_text(encoding="utf-8")
    if run_s is None:
        return text
    ends = [stage for stage in yaml.safe_load_all(text) if _ends_a_pod(stage)]
    return "---\n".join([text, *(yaml.safe_dump(_by_default(stage, run_s)) for stage in ends)])


def _ends_a_pod(stage: Mapping[str, Any]) -> bool:
    return "durationFrom" in ((stage.get("spec") or {}).get("delay") or {})


def _by_default(stage: Mapping[str, Any], run_s: float) -> dict[str, Any]:
    """Return the stage for Pods that don't say how long they run."""
    spec = stage["spec"]
    key = f'.metadata.annotations["{RUN_TIME_ANNOTATION}"]'
    rules = [rule for rule in spec["selector"]["matchExpressions"] if rule["key"] != key]
    rules += [
        {"key": key, "operator": "DoesNotExist"},
        {"key": ".spec.restartPolicy", "operator": "NotIn", "values": ["Always"]},
    ]
    return {
        **stage,
        "metadata": {"name": f"{stage['metadata']['name']}-by-default"},
        "spec": {
            **spec,
            "selector": {"matchExpressions": rules},
            "delay": {"durationMilliseconds": round(run_s * 1000)},
        },
    }
