"""What the demo submits, and when, to which nodes.

Two teams own 8 of 16 GPUs each. Research starts early and borrows what products leaves idle;
products comes later and gets its share back by preemption; what was preempted runs again when there
is room.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sluice.api import names
from sluice.local.real import SimulatedNode

Json = dict[str, Any]

GPU: Final = "nvidia.com/gpu"
RUN_TIME: Final = "sluicegate.io/run-time"
NODES: Final = 4
GPUS_PER_NODE: Final = 4
QUOTA: Final = 8
"""GPUs that each team's queue owns; manifests/demo/queues.yaml says so."""
_GPU_TAINT: Final = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def demo_nodes() -> tuple[SimulatedNode, ...]:
    """Return the nodes: label and taint are those that GPU nodes commonly have."""
    return tuple(
        SimulatedNode(
            name=f"node-{i}",
            gpus=GPUS_PER_NODE,
            labels={"sluicegate.io/gpu": "a100"},
            taints=(_GPU_TAINT,),
        )
        for i in range(NODES)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoJob:
    """One Job of the demo.

    Attributes:
        name: Its name.
        namespace: Its team, also the name of its ClusterQueue; "default" for a Job without a queue.
        at_s: When it is submitted, seconds from the start.
        pods: Pods of one GPU each.
        run_s: How long its pods run.
        priority: WorkloadPriorityClass, empty for none.
        queue: LocalQueue, empty for none.
        can_run: Whether it can ever be admitted.
    """

    name: str
    namespace: str
    at_s: float
    pods: int
    run_s: float
    priority: str = ""
    queue: str = "gpus"
    can_run: bool = True

    def to_object(self) -> Json:
        """Return the manifest."""
        labels = {}
        if self.queue:
            labels[names.QUEUE_LABEL] = self.queue
        if self.priority:
            labels[names.PRIORITY_CLASS_LABEL] = self.priority
        container: Json = {"name": "main", "image": "registry.example.com/train:1"}
        if self.queue:
            container["resources"] = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": self.name, "namespace": self.namespace, "labels": labels},
            "spec": {
                "parallelism": self.pods,
                "completions": self.pods,
                "template": {
                    "metadata": {"annotations": {RUN_TIME: f"{self.run_s}s"}},
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [container],
                        "tolerations": []
                        if self.queue
                        else [{"operator": "Exists", "effect": "NoSchedule"}],
                    },
                },
            },
        }


JOBS: Final = (
    DemoJob(name="pretrain", namespace="research", at_s=0, pods=8, run_s=9, priority="production"),
    DemoJob(name="sweep", namespace="research", at_s=0.5, pods=4, run_s=9, priority="development"),
    DemoJob(name="no-queue", namespace="default", at_s=1, pods=1, run_s=4, queue=""),
    DemoJob(name="eval", namespace="products", at_s=3, pods=4, run_s=6, priority="production"),
    DemoJob(name="finetune", namespace="products", at_s=5, pods=4, run_s=6, priority="production"),
    DemoJob(name="too-big", namespace="products", at_s=6, pods=20, run_s=1, can_run=False),
)

MISTAKE: Final = DemoJob(name="typo", namespace="research", at_s=2, pods=1, run_s=1, queue="GPUs")
"""A Job that the webhook refuses: no queue can have that name."""
