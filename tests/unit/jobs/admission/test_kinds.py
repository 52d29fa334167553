"""The table of job kinds, and who is enabled."""

import pytest

from sluice.api.errors import ConfigError
from sluice.api.validate.node import Node
from sluice.jobs.admission import common
from sluice.jobs.admission.context import Options
from sluice.jobs.admission.kinds import ALL_KINDS, parse_external
from sluice.jobs.admission.registry import select


def test_frameworks_and_kinds_are_unique() -> None:
    assert len({kind.framework for kind in ALL_KINDS}) == len(ALL_KINDS) == 18
    assert len({(kind.group, kind.kind) for kind in ALL_KINDS}) == len(ALL_KINDS)


def test_only_enabled_frameworks_are_admitted() -> None:
    assert list(select(["batch/job", "pod"])) == ["batch/job"]
    assert select(["pod"]) == {}


def test_external_frameworks() -> None:
    assert parse_external("Flow.v1.example.com") == ("example.com", "Flow")
    for text in ("Flow", "Flow.v1", ".v1.example.com", ""):
        with pytest.raises(ConfigError, match=r"not of the form Kind\.version\.group"):
            parse_external(text)


@pytest.mark.parametrize(
    ("framework", "annotations", "expected"),
    [
        (
            "kubeflow.org/jaxjob",
            {"kueue.x-k8s.io/prebuilt-workload-name": "wl"},
            "metadata.annotations[kueue.x-k8s.io/prebuilt-workload-name]: Forbidden: "
            "prebuilt Workloads are not supported for JAXJob",
        ),
        (
            "jobset.x-k8s.io/jobset",
            {"kueue.x-k8s.io/elastic-job": "true"},
            "metadata.annotations[kueue.x-k8s.io/elastic-job]: Forbidden: "
            "elastic jobs are not supported for JobSet",
        ),
    ],
)
def test_what_a_kind_does_not_support(
    framework: str, annotations: dict[str, str], expected: str
) -> None:
    (kind,) = (kind for kind in ALL_KINDS if kind.framework == framework)
    job = Node({"metadata": {"annotations": annotations}})
    assert [str(error) for error in common.on_create(job, kind, Options())] == [expected]
