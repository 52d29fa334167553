"""Which requests reach a webhook."""

from typing import Any

import pytest
from tests.unit.local.admission.conftest import Cluster, Webhook, create, entry, job

from sluice.local.admission import WebhookAdmission
from sluice.local.apiserver.seams import AdmissionRequest, Gvk, Gvr, Operation
from sluice.local.apiserver.status import ApiError

ALL = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"],
       "scope": "*"}  # fmt: skip


def rule(**changed: Any) -> list[dict[str, Any]]:
    return [{**ALL, **changed}]


STATUS = create(subresource="status")
NAMESPACE = create(
    {"metadata": {"name": "n", "labels": {"team": "a"}}},
    kind=Gvk(group="", version="v1", kind="Namespace"),
    resource=Gvr(group="", version="v1", resource="namespaces"), namespace="n", name="n",
)  # fmt: skip
CONFIGURATION = create(
    {"metadata": {"name": "c"}},
    kind=Gvk(group="admissionregistration.k8s.io", version="v1",
             kind="MutatingWebhookConfiguration"),
    resource=Gvr(group="admissionregistration.k8s.io", version="v1",
                 resource="mutatingwebhookconfigurations"), namespace="", name="c",
)  # fmt: skip
QUEUED = create(job(labels={"queue": "q"}))
CASES: list[tuple[str, dict[str, Any], AdmissionRequest, bool]] = [
    ("everything", {"rules": rule()}, create(), True),
    ("another operation", {"rules": rule(operations=["DELETE"])}, create(), False),
    ("another group", {"rules": rule(apiGroups=["apps"])}, create(), False),
    ("another version", {"rules": rule(apiVersions=["v2"])}, create(), False),
    ("any resource, no subresource", {"rules": rule()}, STATUS, False),
    ("any subresource", {"rules": rule(resources=["*/*"])}, STATUS, True),
    ("one subresource", {"rules": rule(resources=["jobs/status"])}, STATUS, True),
    ("status of anything", {"rules": rule(resources=["*/status"])}, STATUS, True),
    ("subresources of another", {"rules": rule(resources=["pods/*"])}, STATUS, False),
    ("second rule", {"rules": [*rule(apiGroups=["apps"]), ALL]}, create(), True),
    ("namespaced only", {"rules": rule(scope="Namespaced")}, create(), True),
    ("a namespace is no namespaced object", {"rules": rule(scope="Namespaced")}, NAMESPACE, False),
    ("cluster-scoped only", {"rules": rule(scope="Cluster")}, create(), False),
    ("configurations are exempt", {"rules": rule()}, CONFIGURATION, False),
    ("object selector", {"objectSelector": {"matchLabels": {"queue": "q"}}}, QUEUED, True),
    ("object selector, no label", {"objectSelector": {"matchLabels": {"queue": "q"}}}, create(),
     False),
    ("object selector, old object", {"objectSelector": {"matchExpressions": [
        {"key": "queue", "operator": "Exists"}]}},
     create(operation=Operation.UPDATE, old_obj=job(labels={"queue": "q"})), True),
    ("namespace selector", {"namespaceSelector": {"matchLabels": {"team": "a"}}}, create(), False),
    ("namespace selector, the namespace itself",
     {"rules": rule(), "namespaceSelector": {"matchLabels": {"team": "a"}}}, NAMESPACE, True),
    ("condition holds", {"matchConditions": [
        {"name": "c", "expression": "'queue' in object.metadata.?labels.orValue({})"}]}, QUEUED,
     True),
    ("condition fails", {"matchConditions": [
        {"name": "c", "expression": "has(object.metadata.labels)"}]}, create(), False),
    ("one of two conditions fails", {"matchConditions": [
        {"name": "a", "expression": "true"}, {"name": "b", "expression": "false"}]}, create(),
     False),
    ("condition on the request", {"matchConditions": [
        {"name": "c", "expression": "request.userInfo.username == 'alice' && "
                                    "request.operation == 'CREATE' && oldObject == null"}]},
     create(), True),
    ("a false condition outweighs a broken one", {"matchConditions": [
        {"name": "a", "expression": "object.nope == 1"}, {"name": "b", "expression": "false"}]},
     create(), False),
    ("broken condition, fail open", {"failurePolicy": "Ignore", "matchConditions": [
        {"name": "a", "expression": "object.nope == 1"}]}, create(), False),
    ("old object of a delete", {"rules": rule(), "matchConditions": [
        {"name": "c", "expression": "object == null && oldObject.metadata.name == 'j'"}]},
     create(operation=Operation.DELETE, obj=None, old_obj=job()), True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "request_", "is_asked"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
async def test_matching(
    admission: WebhookAdmission,
    cluster: Cluster,
    webhook: Webhook,
    fields: dict[str, Any],
    request_: AdmissionRequest,
    is_asked: bool,
) -> None:
    webhook.answers["/a"] = lambda _: {"allowed": True}
    cluster.add("validating", entry(webhook, **fields))
    await admission.validate(request_)
    assert len(webhook.seen) == is_asked


async def test_a_namespace_with_the_label(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook
) -> None:
    webhook.answers["/a"] = lambda _: {"allowed": True}
    selector = {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}
    cluster.add("validating", entry(webhook, namespaceSelector=selector))
    cluster.namespaces["ns"] = {"metadata": {"name": "ns", "labels": {"team": "b"}}}
    await admission.validate(create())
    assert webhook.paths == ["/a"]


async def test_a_broken_condition_fails_closed(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook
) -> None:
    condition = {"name": "c", "expression": "object.nope == 1"}
    cluster.add("validating", entry(webhook, matchConditions=[condition]))
    with pytest.raises(ApiError) as caught:
        await admission.validate(create())
    assert caught.value.code == 403
    assert caught.value.message == (
        "jobs.batch \"j\" is forbidden: expression 'object.nope == 1' resulted in error: "
        "no such key: nope"
    )


async def test_another_version_of_the_resource_is_converted(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook
) -> None:
    webhook.answers["/a"] = lambda _: {
        "allowed": True, "patchType": "JSONPatch",
        "patch": "W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NlZW4iLCJ2YWx1ZSI6dHJ1ZX1d",
    }  # fmt: skip

    async def convert(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
        return {**obj, "apiVersion": api_version}

    cluster.add("mutating", entry(webhook, rules=rule(apiVersions=["v2"])))
    other = (Gvr(group="batch", version="v2", resource="jobs"),
             Gvk(group="batch", version="v2", kind="Job"))  # fmt: skip
    changed = await admission.mutate(create(equivalents=(other,), convert=convert))
    sent = webhook.seen[0][1]
    assert (sent["kind"]["version"], sent["requestKind"]["version"]) == ("v2", "v1")
    assert sent["object"]["apiVersion"] == "batch/v2"
    assert changed is not None
    assert (changed["apiVersion"], changed["seen"]) == ("batch/v1", True)


async def test_exact_policy_wants_its_own_version_only(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook
) -> None:
    cluster.add("mutating", entry(webhook, rules=rule(apiVersions=["v2"]), matchPolicy="Exact"))
    other = (Gvr(group="batch", version="v2", resource="jobs"),
             Gvk(group="batch", version="v2", kind="Job"))  # fmt: skip
    await admission.mutate(create(equivalents=(other,)))
    assert webhook.seen == []
