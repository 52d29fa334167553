"""Built-in kinds: decoding, canonical quantities, empty fields, and rules beyond the schema."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.api import quantity
from sluice.local.apiserver.kinds.builtin import type_schema
from sluice.local.apiserver.status import ApiError
from sluice.local.schema import CompiledSchema, Compiler
from sluice.local.schema.quantities import canonical_text

CONTAINER: dict[str, Any] = {"name": "c", "image": "i"}


def compiled(group: str, kind: str) -> CompiledSchema:
    return Compiler().compile(type_schema(group, "v1", kind))


JOB = compiled("batch", "Job")
POD = compiled("", "Pod")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", "1"), (2, "2"), ("0.5", "500m"), ("1000m", "1"), ("1500m", "1500m"), ("1000", "1k"),
        ("100000", "100k"), ("1024Ki", "1Mi"), ("1.5Gi", "1536Mi"), ("512Ki", "512Ki"),
        ("0.5Ki", "512"), ("0", "0"), ("0Gi", "0"), ("1e3", "1e3"), ("1M", "1M"), ("-1", "-1"),
        ("nope", "nope"), (True, True),
    ],
)  # fmt: skip
def test_canonical_quantities(text: Any, expected: Any) -> None:
    assert canonical_text(text) == expected


@given(st.from_regex(r"\A[0-9]{1,6}(\.[0-9]{1,3})?(m|k|M|Ki|Mi|Gi)?\Z"))
def test_canonical_quantities_are_the_same_amount(text: str) -> None:
    before, after = quantity.parse(text), quantity.parse(canonical_text(text))
    # Amounts finer than a billionth, or binary ones finer than one, are rounded up.
    assert before <= after <= before + 1
    assert canonical_text(canonical_text(text)) == canonical_text(text)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"parallelism": "1"},
         "string into Go struct field JobSpec.spec.parallelism of type int32"),
        ({"parallelism": 1.5},
         "number 1.5 into Go struct field JobSpec.spec.parallelism of type int32"),
        ({"suspend": "x"}, "string into Go struct field JobSpec.spec.suspend of type bool"),
        ({"template": []},
         "array into Go struct field JobSpec.spec.template of type v1.PodTemplateSpec"),
        ({"template": {"spec": {"nodeSelector": {"a": 1}}}},
         "number into Go struct field PodSpec.spec.template.spec.nodeSelector of type string"),
        ({"template": {"spec": {"containers": ["x"]}}},
         "string into Go struct field PodSpec.spec.template.spec.containers of type v1.Container"),
    ],
)  # fmt: skip
def test_what_does_not_decode_is_a_bad_request(spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(ApiError) as caught:
        JOB.prune({"kind": "Job", "metadata": {}, "spec": spec})
    assert caught.value.code == 400
    assert caught.value.message == (
        f'Job in version "v1" cannot be handled as a Job: json: cannot unmarshal {problem}'
    )


def test_a_bad_quantity_does_not_decode() -> None:
    container = {**CONTAINER, "resources": {"requests": {"cpu": "1x"}}}
    with pytest.raises(ApiError, match="unable to parse quantity's suffix"):
        POD.prune({"metadata": {}, "spec": {"containers": [container]}})


def test_typed_form() -> None:
    requests = {"cpu": 2, "memory": "0.1m"}
    container = {**CONTAINER, "args": [], "resources": {"requests": requests, "limits": {}}}
    pod: dict[str, Any] = {
        "metadata": {"labels": {}, "annotations": None},
        "spec": {"containers": [container], "nodeSelector": {}, "securityContext": {}},
    }
    POD.default(pod)
    assert pod == {
        "metadata": {},
        "spec": {
            "containers": [{**CONTAINER, "resources": {"requests": {"cpu": "2", "memory": "1m"}}}],
            "securityContext": {},
        },
    }


def pod_texts(**spec: Any) -> list[str]:
    body = {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER], **spec}}
    return [cause.text() for cause in POD.validate(body, None)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"containers": [{"image": "i"}]}, ["spec.containers[0].name: Required value"]),
        ({"containers": [CONTAINER, CONTAINER]},
         ['spec.containers[1].name: Duplicate value: "c"']),
        ({"containers": [{**CONTAINER, "resources": {"requests": {"cpu": "-1"}}}]},
         ['spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than '
          "or equal to 0"]),
        ({"containers": [{**CONTAINER, "resources": {"requests": {"cpu": "2"},
                                                     "limits": {"cpu": "1"}}}]},
         ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal '
          "to cpu limit of 1"]),
        ({"containers": [{**CONTAINER, "resources": {"requests": {"nvidia.com/gpu": "1"}}}]},
         ["spec.containers[0].resources.limits: Required value: Limit must be set for non "
          "overcommitable resources"]),
        ({"tolerations": [{"key": "a", "operator": "Sometimes"}]},
         ['spec.tolerations[0].operator: Unsupported value: "Sometimes": supported values: '
          '"Equal", "Exists"']),
        ({"tolerations": [{"key": "a", "tolerationSeconds": 5}]},
         ['spec.tolerations[0].effect: Invalid value: "": effect must be \'NoExecute\' when '
          "`tolerationSeconds` is set"]),
        ({"schedulingGates": [{"name": "g"}, {"name": "g"}]},
         ['spec.schedulingGates[1].name: Duplicate value: "g"']),
    ],
)  # fmt: skip
def test_rules_of_pods(spec: dict[str, Any], expected: list[str]) -> None:
    assert pod_texts(**spec) == expected


def job(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    labels = {
        "batch.kubernetes.io/controller-uid": "u", "controller-uid": "u",
        "batch.kubernetes.io/job-name": "j", "job-name": "j",
    }  # fmt: skip
    template = {"metadata": {"labels": labels},
                "spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}  # fmt: skip
    selector = {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    return {
        "metadata": {"name": "j", "uid": "u"}, "status": status or {},
        "spec": {"template": template, "selector": selector, **spec},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"completionMode": "Odd"},
         ['spec.completionMode: Unsupported value: "Odd": supported values: "NonIndexed", '
          '"Indexed"']),
        ({"backoffLimitPerIndex": 1},
         ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"]),
        ({"managedBy": "me"},
         ['spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as '
          '"acme.io/foo")']),
        ({"selector": {"matchLabels": {"x": "y"}}}, ["spec.template.metadata.labels"]),
    ],
)  # fmt: skip
def test_rules_of_jobs(spec: dict[str, Any], expected: list[str]) -> None:
    found = [cause.text() for cause in JOB.validate(job(**spec), None)]
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))


def condition(kind: str) -> dict[str, str]:
    return {"type": kind, "status": "True"}


DONE = [condition("SuccessCriteriaMet"), condition("Complete")]
TIMES = {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:01Z"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"conditions": DONE, **TIMES}, ""),
        ({}, {"conditions": DONE[1:], **TIMES}, "without the SuccessCriteriaMet=true condition"),
        ({}, {"conditions": DONE, **TIMES, "active": 1}, "active>0 is invalid for finished job"),
        ({}, {"conditions": DONE}, "completionTime is required for Complete jobs"),
        ({}, {"conditions": [condition("Failed")], "startTime": TIMES["startTime"]},
         "without the FailureTarget=true condition"),
        ({"conditions": DONE, **TIMES}, {"startTime": TIMES["startTime"]},
         "cannot disable the terminal Complete=True condition"),
        ({"failed": 2}, {"failed": 1}, "cannot decrease the failed counter"),
        ({"startTime": TIMES["startTime"]}, {"startTime": TIMES["completionTime"]},
         "field is immutable for unsuspended job once set"),
        ({"startTime": TIMES["startTime"], "conditions": [condition("Suspended")]},
         {"startTime": TIMES["completionTime"],
          "conditions": [{"type": "Suspended", "status": "False"}]}, ""),
    ],
)  # fmt: skip
def test_rules_of_a_jobs_status(before: Any, after: Any, expected: str) -> None:
    found = " ".join(cause.text() for cause in JOB.validate(job(after), job(before)))
    assert expected in found
    assert bool(found) == bool(expected)


def test_a_webhooks_conditions_must_compile() -> None:
    schema = compiled("admissionregistration.k8s.io", "MutatingWebhookConfiguration")
    webhook = {
        "name": "a.example.com", "clientConfig": {"url": "https://x"}, "sideEffects": "Some",
        "matchConditions": [{"name": "c", "expression": "object."}],
    }  # fmt: skip
    found = schema.validate({"metadata": {"name": "x"}, "webhooks": [webhook]}, None)
    assert [cause.field for cause in found] == [
        "webhooks[0].sideEffects",
        "webhooks[0].matchConditions[0].expression",
    ]
