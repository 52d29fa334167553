"""Conversion webhooks: what is asked, what is believed."""

from typing import Any

import pytest
from tests.unit.local.admission.conftest import Webhook

from sluice.local.admission import WebhookConverter
from sluice.local.apiserver.status import ApiError

OLD, NEW = "example.com/v1", "example.com/v2"


def obj(name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"u-{name}", "finalizers": ["f"], "labels": {"a": "b"}}
    return {"apiVersion": OLD, "kind": "Thing", "metadata": metadata, **fields}


def conversion(webhook: Webhook) -> dict[str, Any]:
    return {"strategy": "Webhook", "webhook": {
        "clientConfig": webhook.client_config("/convert"), "conversionReviewVersions": ["v1"],
    }}  # fmt: skip


def success(*objects: dict[str, Any]) -> dict[str, Any]:
    return {"result": {"status": "Success"}, "convertedObjects": list(objects)}


async def test_objects_come_back_in_order(converter: WebhookConverter, webhook: Webhook) -> None:
    webhook.answers["/convert"] = lambda request: success(
        *({**item, "apiVersion": request["desiredAPIVersion"]} for item in request["objects"])
    )
    found = await converter.convert(conversion(webhook), [obj("a"), obj("b")], NEW)
    assert found == [{**obj("a"), "apiVersion": NEW}, {**obj("b"), "apiVersion": NEW}]
    assert len(webhook.seen) == 1


async def test_only_labels_and_annotations_of_metadata_may_change(
    converter: WebhookConverter, webhook: Webhook
) -> None:
    changed = {**obj("a"), "apiVersion": NEW}
    changed["metadata"] = {"name": "a", "uid": "u-a", "annotations": {"c": "d"}, "finalizers": []}
    webhook.answers["/convert"] = lambda _: success(changed)
    found = await converter.convert(conversion(webhook), [obj("a")], NEW)
    assert found[0]["metadata"] == {
        "name": "a", "uid": "u-a", "finalizers": ["f"], "annotations": {"c": "d"}
    }  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"result": {"status": "Failure", "message": "cannot"}}, "cannot"),
        (success(), "webhook returned 0 objects, expected 1"),
        (success(obj("a")), "invalid groupVersion"),
        (success({**obj("a"), "apiVersion": NEW, "kind": "Other"}), "invalid kind"),
        (success({**obj("b"), "apiVersion": NEW}), "metadata.name changed"),
    ],
)
async def test_answers_that_are_not_believed(
    converter: WebhookConverter, webhook: Webhook, answer: dict[str, Any], text: str
) -> None:
    webhook.answers["/convert"] = lambda _: answer
    with pytest.raises(ApiError) as caught:
        await converter.convert(conversion(webhook), [obj("a")], NEW)
    assert caught.value.code == 500
    assert "conversion webhook for example.com/v1, Kind=Thing failed" in caught.value.message
    assert text in caught.value.message
