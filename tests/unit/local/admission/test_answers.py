"""What a webhook's answer does to a request."""

import asyncio
from typing import Any

import pytest
from aiohttp import web
from tests.unit.local.admission.conftest import Cluster, Webhook, create, entry, job, patched

from sluice.local.admission import WebhookAdmission
from sluice.local.apiserver.status import ApiError

SUSPEND = {"op": "replace", "path": "/spec/suspend", "value": True}


async def refused(admission: WebhookAdmission, **fields: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await admission.validate(create(**fields))
    return caught.value


async def test_the_review_says_all_about_the_request(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook
) -> None:
    webhook.answers["/a"] = lambda _: {"allowed": True}
    cluster.add("validating", entry(webhook))
    await admission.validate(create(dry_run=True))
    sent = webhook.seen[0][1]
    sent.pop("uid")
    kind = {"group": "batch", "version": "v1", "kind": "Job"}
    resource = {"group": "batch", "version": "v1", "resource": "jobs"}
    assert sent == {
        "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
        "name": "j", "namespace": "ns", "operation": "CREATE",
        "userInfo": {"username": "alice", "groups": ["dev"]}, "object": job(), "oldObject": None,
        "dryRun": True, "options": {"kind": "CreateOptions"},
    }  # fmt: skip
    assert webhook.timeouts == ["5s"]


async def test_a_patch_changes_the_object(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook
) -> None:
    webhook.answers["/a"] = lambda _: {**patched(SUSPEND), "warnings": ["careful"]}
    cluster.add("mutating", entry(webhook))
    request = create()
    changed = await admission.mutate(request)
    assert changed is not None
    assert changed["spec"] == {"suspend": True}
    assert request.warnings == ["careful"]


async def test_an_answer_without_a_patch_leaves_the_very_object(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook
) -> None:
    webhook.answers["/a"] = lambda _: {"allowed": True}
    cluster.add("mutating", entry(webhook))
    request = create()
    assert await admission.mutate(request) is request.obj


async def test_a_denial_carries_reason_code_and_text(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook
) -> None:
    webhook.answers["/a"] = lambda _: {
        "allowed": False, "status": {"message": "spec.x: Required value", "code": 403,
                                     "reason": "Forbidden"}
    }  # fmt: skip
    cluster.add("validating", entry(webhook))
    error = await refused(admission)
    assert (error.code, error.reason) == (403, "Forbidden")
    assert error.message == (
        'admission webhook "w.a.example.com" denied the request: spec.x: Required value'
    )


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({}, "denied the request without explanation"),
        ({"reason": "Busy"}, "denied the request: Busy"),
        ({"code": 200, "message": "no"}, "denied the request: no"),
    ],
)
async def test_a_denial_is_never_a_success(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook, status: Any, text: str
) -> None:
    webhook.answers["/a"] = lambda _: {"allowed": False, "status": status}
    cluster.add("validating", entry(webhook))
    error = await refused(admission)
    assert error.code == 400
    assert error.message.endswith(text)


def reply(**fields: Any) -> web.Response:
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", **fields}
    return web.json_response(review)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda _: web.Response(status=500, text="boom"), 'an error on the server ("boom")'),
        (lambda _: web.Response(status=404), "could not find the requested resource"),
        (lambda _: web.Response(text="<html>"), "couldn't decode the reply as JSON"),
        (lambda _: reply(), "webhook response was absent"),
        (lambda _: reply(response={"uid": "other"}), "expected response.uid="),
        (lambda r: reply(response={"uid": r["uid"]}, kind="X"), "expected webhook response of"),
        (lambda _: patched(SUSPEND), "validating webhook may not return response.patch"),
    ],
)
async def test_a_reply_that_makes_no_sense_is_a_failure(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook, answer: Any, text: str
) -> None:
    webhook.answers["/a"] = answer
    cluster.add("validating", entry(webhook))
    error = await refused(admission)
    assert error.code == 500
    prefix = 'Internal error occurred: failed calling webhook "w.a.example.com": '
    assert error.message.startswith(prefix)
    assert text in error.message


async def test_a_failure_may_be_ignored(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook
) -> None:
    webhook.answers["/a"] = lambda _: web.Response(status=503)
    cluster.add("mutating", entry(webhook, failurePolicy="Ignore"))
    request = create()
    assert await admission.mutate(request) is request.obj


async def test_nobody_listens(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook
) -> None:
    cluster.add("validating", entry(webhook))
    webhook.port = 1
    error = await refused(admission)
    assert "dial tcp 127.0.0.1:1: connect: connection refused" in error.message
    assert 'Post "https://hooks.sluice.svc:443/a?timeout=5s"' in error.message


async def test_no_such_service(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook
) -> None:
    config = webhook.client_config("/a")
    config["service"] = {**config["service"], "name": "gone"}
    cluster.add("validating", entry(webhook, clientConfig=config))
    assert 'service "gone" not found' in (await refused(admission)).message


async def test_an_untrusted_certificate(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook
) -> None:
    config = {**webhook.client_config("/a"), "caBundle": ""}
    cluster.add("validating", entry(webhook, clientConfig=config))
    error = await refused(admission)
    assert "tls: failed to verify certificate" in error.message


@pytest.mark.slow
async def test_a_slow_webhook_is_given_up(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook
) -> None:
    started = asyncio.get_running_loop().time()
    release = asyncio.Event()

    class Hanging(web.StreamResponse):
        async def prepare(self, request: web.BaseRequest) -> None:
            await asyncio.wait_for(release.wait(), timeout=10)

    webhook.answers["/a"] = lambda _: Hanging()
    cluster.add("validating", entry(webhook, timeoutSeconds=1))
    error = await refused(admission)
    release.set()
    assert "context deadline exceeded" in error.message
    assert asyncio.get_running_loop().time() - started < 5


async def test_dry_run_is_refused_where_it_would_have_effects(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook
) -> None:
    cluster.add("validating", entry(webhook, sideEffects="Some"))
    error = await refused(admission, dry_run=True)
    assert error.code == 400
    assert error.message == 'admission webhook "w.a.example.com" does not support dry run'


async def test_a_patch_that_does_not_apply(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook
) -> None:
    webhook.answers["/a"] = lambda _: patched({"op": "remove", "path": "/nope"})
    cluster.add("mutating", entry(webhook))
    with pytest.raises(ApiError) as caught:
        await admission.mutate(create())
    assert caught.value.code == 500


def appends(letter: str, *, limit: int = 9) -> Any:
    """Return an answer that adds a letter to the annotation `x`, up to a length."""

    def answer(request: dict[str, Any]) -> Any:
        text = request["object"]["metadata"].get("x", "")
        if len(text) >= limit:
            return {"allowed": True}
        return patched({"op": "add", "path": "/metadata/x", "value": text + letter})

    return answer


async def test_webhooks_are_asked_by_name_of_their_configuration(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook
) -> None:
    webhook.answers |= {"/a": appends("a"), "/b": appends("b"), "/c": appends("c")}
    cluster.add("mutating", entry(webhook, "/c"), name="z")
    cluster.add("mutating", entry(webhook, "/b"), entry(webhook, "/a"), name="y")
    changed = await admission.mutate(create())
    assert changed is not None
    assert changed["metadata"]["x"] == "bac"


async def test_reinvocation_after_a_later_change(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook
) -> None:
    webhook.answers |= {"/a": appends("a"), "/b": appends("b"), "/c": appends("c", limit=0)}
    cluster.add(
        "mutating",
        entry(webhook, "/a", reinvocationPolicy="IfNeeded"),
        entry(webhook, "/b", reinvocationPolicy="Never"),
        entry(webhook, "/c", reinvocationPolicy="IfNeeded"),
    )
    changed = await admission.mutate(create())
    assert changed is not None
    assert changed["metadata"]["x"] == "aba"
    # The third saw no change after its own call until the first was asked again.
    assert webhook.paths == ["/a", "/b", "/c", "/a", "/c"]


async def test_a_changed_configuration_is_followed(
    admission: WebhookAdmission, cluster: Cluster, webhook: Webhook
) -> None:
    webhook.answers["/a"] = lambda _: {"allowed": True}
    await admission.validate(create())
    cluster.add("validating", entry(webhook))
    await admission.validate(create())
    cluster.configurations.clear()
    await admission.validate(create())
    assert webhook.paths == ["/a"]
