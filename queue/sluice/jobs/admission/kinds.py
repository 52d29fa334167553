"""The job kinds that Kueue's API knows, by framework name.

The webhook answers on the path of each, enabled or not, and the search for ancestors follows owner
references through them. Pure. Source: docs/spec/api.md 2.0, 2.3.1, 2.3.4 and 2.4.
"""

from __future__ import annotations

from typing import Final

from sluice.api.errors import ConfigError
from sluice.jobs.batch import BatchJob
from sluice.jobs.integration import JobKind

_TRAINING: Final = "kubeflow.org/training-operator"
_RAY: Final = "ray.io/kuberay-operator"


def _training(kind: str, *, prebuilt: bool = True) -> JobKind:
    return JobKind(
        framework=f"kubeflow.org/{kind.lower()}",
        group="kubeflow.org",
        version="v1",
        kind=kind,
        plural=f"{kind.lower()}s",
        manager=_TRAINING,
        prebuilt=prebuilt,
    )


def _ray(kind: str) -> JobKind:
    return JobKind(
        framework=f"ray.io/{kind.lower()}",
        group="ray.io",
        version="v1",
        kind=kind,
        plural=f"{kind.lower()}s",
        manager=_RAY,
    )


def _apps(kind: str) -> JobKind:
    return JobKind(
        framework=kind.lower(),
        group="apps",
        version="v1",
        kind=kind,
        plural=f"{kind.lower()}s",
        prebuilt=False,
    )


ALL_KINDS: Final = (
    BatchJob.kind,
    JobKind(
        framework="jobset.x-k8s.io/jobset",
        group="jobset.x-k8s.io",
        version="v1alpha2",
        kind="JobSet",
        plural="jobsets",
        manager="jobset.sigs.k8s.io/jobset-controller",
    ),
    JobKind(
        framework="kubeflow.org/mpijob",
        group="kubeflow.org",
        version="v2beta1",
        kind="MPIJob",
        plural="mpijobs",
        manager="kubeflow.org/mpi-operator",
    ),
    _training("PyTorchJob"),
    _training("TFJob"),
    _training("XGBoostJob"),
    _training("PaddleJob"),
    _training("JAXJob", prebuilt=False),
    JobKind(
        framework="trainer.kubeflow.org/trainjob",
        group="trainer.kubeflow.org",
        version="v1alpha1",
        kind="TrainJob",
        plural="trainjobs",
        manager="trainer.kubeflow.org/trainjob-controller",
    ),
    _ray("RayJob"),
    _ray("RayCluster"),
    _ray("RayService"),
    JobKind(
        framework="workload.codeflare.dev/appwrapper",
        group="workload.codeflare.dev",
        version="v1beta2",
        kind="AppWrapper",
        plural="appwrappers",
        manager="workload.codeflare.dev/appwrapper-controller",
    ),
    JobKind(
        framework="sparkoperator.k8s.io/sparkapplication",
        group="sparkoperator.k8s.io",
        version="v1beta2",
        kind="SparkApplication",
        plural="sparkapplications",
        prebuilt=False,
    ),
    JobKind(framework="pod", group="", version="v1", kind="Pod", plural="pods"),
    _apps("Deployment"),
    _apps("StatefulSet"),
    JobKind(
        framework="leaderworkerset.x-k8s.io/leaderworkerset",
        group="leaderworkerset.x-k8s.io",
        version="v1",
        kind="LeaderWorkerSet",
        plural="leaderworkersets",
        prebuilt=False,
    ),
)
"""Every kind of docs/spec/api.md 2.4, in its order."""

ELASTIC_FRAMEWORKS: Final = frozenset(
    {"batch/job", "ray.io/raycluster", "ray.io/rayjob", "ray.io/rayservice"}
)
"""Frameworks whose jobs may carry the elastic-job annotation (docs/spec/api.md 2.3.4)."""

GroupKind = tuple[str, str]
"""API group and kind."""

PASS_THROUGH: Final[frozenset[GroupKind]] = frozenset({("apps", "ReplicaSet")})
"""Kinds that the ancestor search goes through but never ends at."""


def parse_external(text: str) -> GroupKind:
    """Return group and kind of an ``integrations.externalFrameworks`` entry.

    Raises:
        ConfigError: The entry is not of the form ``Kind.version.group``.
    """
    kind, _, rest = text.partition(".")
    version, _, group = rest.partition(".")
    if not (kind and version and group):
        raise ConfigError(
            f"integrations.externalFrameworks: {text!r} is not of the form Kind.version.group, "
            "such as Workflow.v1.example.com"
        )
    return group, kind
