"""docs/spec/api.md 2.3.4, 2.3.6 and 2.4: what new Jobs may say, and the texts."""

from typing import Any

import pytest
from tests.support.lookups import StaticLookups
from tests.support.objects import Json, changed

from sluice.jobs.admission.batch import BatchJobAdmission
from sluice.jobs.admission.context import Context, Options

KX = "kueue.x-k8s.io"
LABELS = "metadata.labels"
ANNOTATIONS = "metadata.annotations"
TEMPLATE = "spec.template.metadata.annotations"
JOB: Json = {
    "metadata": {"name": "sample"},
    "spec": {"parallelism": 4, "completions": 8, "template": {"spec": {"containers": []}}},
}
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LONG = "x" * 64


async def texts(job: Json, gates: dict[str, bool] | None = None) -> list[str]:
    context = Context(
        namespace="team-a", options=Options(gates=gates or {}), lookups=StaticLookups()
    )
    return [str(error) for error in await BatchJobAdmission().on_create(job, context)]


def with_annotation(name: str, value: str) -> Json:
    return changed(JOB, {f"{ANNOTATIONS}.[{KX}/{name}]": value})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, [], id="plain"),
        pytest.param({f"{LABELS}.[{KX}/queue-name]": "main"}, [], id="queue"),
        pytest.param(
            {f"{LABELS}.[{KX}/queue-name]": "Main"},
            [f'{LABELS}[{KX}/queue-name]: Invalid value: "Main": {SUBDOMAIN}'],
            id="queue syntax",
        ),
        pytest.param(
            {f"{LABELS}.[{KX}/queue-name]": ""},
            [f'{LABELS}[{KX}/queue-name]: Invalid value: "": {SUBDOMAIN}'],
            id="empty queue",
        ),
        pytest.param({f"{LABELS}.[{KX}/prebuilt-workload-name]": "wl"}, [], id="prebuilt"),
        pytest.param(
            {f"{LABELS}.[{KX}/prebuilt-workload-name]": "W"},
            [f'{LABELS}[{KX}/prebuilt-workload-name]: Invalid value: "W": {SUBDOMAIN}'],
            id="prebuilt label",
        ),
        pytest.param(
            {
                f"{LABELS}.[{KX}/prebuilt-workload-name]": "ok",
                f"{ANNOTATIONS}.[{KX}/prebuilt-workload-name]": "W",
            },
            [f'{ANNOTATIONS}[{KX}/prebuilt-workload-name]: Invalid value: "W": {SUBDOMAIN}'],
            id="prebuilt annotation goes first",
        ),
        pytest.param({f"{LABELS}.[{KX}/max-exec-time-seconds]": "60"}, [], id="max exec"),
        pytest.param(
            {f"{LABELS}.[{KX}/max-exec-time-seconds]": "0"},
            [f'{LABELS}[{KX}/max-exec-time-seconds]: Invalid value: "0": must be greater than 0'],
            id="max exec 0",
        ),
        pytest.param(
            {f"{LABELS}.[{KX}/max-exec-time-seconds]": "1h"},
            [
                f'{LABELS}[{KX}/max-exec-time-seconds]: Invalid value: "1h": '
                "must be an integer number of seconds"
            ],
            id="max exec text",
        ),
        pytest.param({f"{ANNOTATIONS}.[{KX}/elastic-job]": "true"}, [], id="elastic"),
        pytest.param(
            {f"{ANNOTATIONS}.[{KX}/admission-gated-by]": "x"},
            [
                f'{ANNOTATIONS}[{KX}/admission-gated-by]: Invalid value: "x": '
                'must be a domain-prefixed path (such as "acme.io/foo")'
            ],
            id="gated",
        ),
        pytest.param({f"{ANNOTATIONS}.[{KX}/job-min-parallelism]": "3"}, [], id="partial"),
        pytest.param(
            {f"{ANNOTATIONS}.[{KX}/job-min-parallelism]": "4"},
            [
                f"{ANNOTATIONS}[{KX}/job-min-parallelism]: Invalid value: 4: "
                "should be between 0 and 3"
            ],
            id="partial all",
        ),
        pytest.param(
            {f"{ANNOTATIONS}.[{KX}/job-min-parallelism]": "2", "spec.completions": 2},
            [
                f"{ANNOTATIONS}[{KX}/job-min-parallelism]: Invalid value: 2: "
                "should be between 0 and 1"
            ],
            id="few completions are fewer pods",
        ),
        pytest.param(
            {f"{ANNOTATIONS}.[{KX}/job-min-parallelism]": "0"},
            [
                f"{ANNOTATIONS}[{KX}/job-min-parallelism]: Invalid value: 0: "
                "should be between 0 and 3"
            ],
            id="partial none",
        ),
        pytest.param(
            {f"{ANNOTATIONS}.[{KX}/job-min-parallelism]": "half"},
            [f'{ANNOTATIONS}[{KX}/job-min-parallelism]: Invalid value: "half": must be an integer'],
            id="partial text",
        ),
        pytest.param(
            {
                f"{ANNOTATIONS}.[{KX}/job-min-parallelism]": "2",
                f"{ANNOTATIONS}.[{KX}/elastic-job]": "true",
            },
            [
                f'{ANNOTATIONS}[{KX}/job-min-parallelism]: Invalid value: "2": '
                f"cannot be used together with {KX}/elastic-job"
            ],
            id="partial elastic",
        ),
        pytest.param(
            {
                f"{ANNOTATIONS}.[{KX}/job-completions-equal-parallelism]": "true",
                "spec.completionMode": "Indexed",
                "spec.completions": 4,
            },
            [],
            id="sync",
        ),
        pytest.param(
            {f"{ANNOTATIONS}.[{KX}/job-completions-equal-parallelism]": "no"},
            [
                f'{ANNOTATIONS}[{KX}/job-completions-equal-parallelism]: Invalid value: "no": '
                "must be a boolean value"
            ],
            id="sync text",
        ),
        pytest.param(
            {f"{ANNOTATIONS}.[{KX}/job-completions-equal-parallelism]": "F"}, [], id="sync off"
        ),
        pytest.param(
            {
                f"{ANNOTATIONS}.[{KX}/job-completions-equal-parallelism]": "true",
                "spec.completions": 4,
            },
            [
                f'{ANNOTATIONS}[{KX}/job-completions-equal-parallelism]: Invalid value: "true": '
                "may not be true when spec.completionMode is NonIndexed"
            ],
            id="sync without indexes",
        ),
        pytest.param(
            {
                f"{ANNOTATIONS}.[{KX}/job-completions-equal-parallelism]": "true",
                "spec.completionMode": "Indexed",
            },
            [
                "spec.completions: Invalid value: 8: should be equal to spec.parallelism, 4, "
                f"when {KX}/job-completions-equal-parallelism is true"
            ],
            id="sync differs",
        ),
        pytest.param(
            {
                f"{ANNOTATIONS}.[{KX}/elastic-job]": "true",
                f"{TEMPLATE}.[{KX}/podset-required-topology]": "rack",
            },
            [
                f"{TEMPLATE}.{KX}/podset-required-topology: Forbidden: "
                "elastic jobs cannot ask for this topology"
            ],
            id="elastic topology",
        ),
    ],
)
async def test_create(changes: dict[str, Any], expected: list[str]) -> None:
    assert await texts(changed(JOB, changes)) == expected


@pytest.mark.parametrize(
    ("name", "path"),
    [("W", f"{LABELS}[{KX}/prebuilt-workload-name]"), (LONG, "")],
)
async def test_without_its_gate_the_annotation_counts_only_when_no_label_holds_it(
    name: str, path: str
) -> None:
    job = changed(
        JOB,
        {
            f"{ANNOTATIONS}.[{KX}/prebuilt-workload-name]": name,
            f"{LABELS}.[{KX}/prebuilt-workload-name]": "W",
        },
    )
    expected = [f'{path}: Invalid value: "W": {SUBDOMAIN}'] if path else []
    assert await texts(job, {"WorkloadIdentifierAnnotations": False}) == expected


async def test_gates_switch_rules_off() -> None:
    gated = with_annotation("admission-gated-by", "x")
    assert await texts(gated, {"AdmissionGatedBy": False}) == []
    bad = changed(JOB, {f"{TEMPLATE}.[{KX}/podset-slice-size]": "0"})
    assert len(await texts(bad)) == 2
    assert await texts(bad, {"TopologyAwareScheduling": False}) == []
