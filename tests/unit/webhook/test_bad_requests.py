"""Whatever is sent, the answer is a Status with a reason: never a 500, never a stack trace."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.lookups import StaticLookups
from tests.support.objects import DROP, Json, changed
from tests.support.webhook import HOST, Served, review, served, trusting

from sluice_webhook.app import Limits
from sluice_webhook.review import MalformedReview, decode

pytestmark = pytest.mark.slow
PATH = "/validate-batch-v1-job"
JOB: Json = {"metadata": {"name": "sample"}, "spec": {}}
REVIEW = review(obj=JOB)
SMALL = Limits(
    review_bytes_max=4096,
    conversion_bytes_max=8192,
    review_timeout_s=0.2,
    body_timeout_s=0.2,
)


@pytest_asyncio.fixture
async def webhook() -> AsyncIterator[Served]:
    async with served(limits=SMALL) as running:
        yield running


def body(changes: dict[str, Any]) -> bytes:
    return json.dumps(changed(REVIEW, changes)).encode()


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"", "the body is not JSON: "),
        (b"{", "the body is not JSON: "),
        (b"\xff\xfe", "the body is not JSON: "),
        (b"[" * 2000, "the body is not JSON: "),
        (b"[]", 'not a AdmissionReview: <root>: Invalid value: "array": must be an object'),
        (b"{}", "expected admission.k8s.io/v1 AdmissionReview, got (none) (none)"),
        (
            body({"apiVersion": "admission.k8s.io/v1beta1"}),
            "expected admission.k8s.io/v1 AdmissionReview, "
            "got admission.k8s.io/v1beta1 AdmissionReview",
        ),
        (body({"request": None}), "the AdmissionReview has no request"),
        (body({"request": "x"}), 'not a AdmissionReview: request: Invalid value: "x": must be'),
        (body({"request.uid": DROP}), "the request has no uid"),
        (body({"request.uid": 5}), "malformed request: request.uid: Invalid value: 5: must be a"),
        (
            body({"request.operation": "PATCH"}),
            "request.operation is 'PATCH', not one of CREATE, UPDATE, DELETE, CONNECT",
        ),
        (body({"request.object": None}), "request.object is missing on CREATE"),
        (body({"request.operation": "UPDATE"}), "request.oldObject is missing on UPDATE"),
        (
            body({"request.object": "x"}),
            'malformed request: request.object: Invalid value: "x": must be an object',
        ),
        (
            body({"request.kind.kind": "CronJob"}),
            "/validate-batch-v1-job reviews batch/v1 Job, not batch/v1 CronJob",
        ),
        (
            body({"request.object.metadata": {"labels": ["a"]}}),
            'malformed object: metadata.labels: Invalid value: "array": must be an object',
        ),
        (
            body({"request.object.metadata.labels": {"a": 1}}),
            "malformed object: metadata.labels[a]: Invalid value: 1: must be a string",
        ),
        (
            body({"request.object.spec": 3}),
            "malformed object: spec: Invalid value: 3: must be an object",
        ),
    ],
)
async def test_malformed(webhook: Served, sent: bytes, message: str) -> None:
    status, answer = await webhook.post(PATH, sent)
    assert (status, answer["kind"], answer["code"]) == (400, "Status", 400)
    assert answer["reason"] == "BadRequest"
    assert answer["message"].startswith(message)


@pytest.mark.parametrize("path", [PATH, "/convert"])
@pytest.mark.parametrize("content_type", ["text/plain", "application/yaml", ""])
async def test_content_type(webhook: Served, path: str, content_type: str) -> None:
    status, answer = await webhook.post(path, json.dumps(REVIEW).encode(), content_type)
    assert (status, answer["reason"]) == (415, "UnsupportedMediaType")


async def test_content_type_parameters_are_fine(webhook: Served) -> None:
    status, _ = await webhook.post(
        PATH, json.dumps(REVIEW).encode(), "application/json; charset=utf-8"
    )
    assert status == 200


async def test_compressed_bodies_are_refused(webhook: Served) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    request = webhook.session.post(webhook.url(PATH), data=b"x", headers=headers)
    async with request as response:
        assert response.status == 415
        assert "compressed" in await response.text()


@pytest.mark.parametrize(("path", "bytes_max"), [(PATH, 4096), ("/convert", 8192)])
@pytest.mark.parametrize("is_chunked", [False, True])
async def test_size(webhook: Served, path: str, bytes_max: int, is_chunked: bool) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(bytes_max // 1024 + 1):
            yield b" " * 1024

    data: Any = chunks() if is_chunked else b" " * (bytes_max + 1)
    headers = {"Content-Type": "application/json"}
    async with webhook.session.post(webhook.url(path), data=data, headers=headers) as response:
        assert response.status == 413
        assert f"must not be larger than {bytes_max} bytes" in await response.text()
    status, _ = await webhook.post(path, b" " * bytes_max)
    assert status == 400, "a body of just that size is read"


@pytest.mark.parametrize("path", [PATH, "/convert"])
async def test_a_body_that_does_not_come(webhook: Served, path: str) -> None:
    reader, writer = await asyncio.open_connection(
        HOST, webhook.server.port, ssl=trusting(webhook.ca)
    )
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    writer.write(head.encode() + b"Content-Length: 10\r\n\r\n{")
    async with asyncio.timeout(5):
        line = await reader.readline()
    writer.close()
    await writer.wait_closed()
    assert line.split()[1] == b"408"


class Hanging(StaticLookups):
    """Lookups of which one never answers."""

    async def priority_class_exists(self, name: str) -> bool:
        await asyncio.Event().wait()
        return False


async def test_a_body_in_broken_chunks(webhook: Served) -> None:
    reader, writer = await asyncio.open_connection(
        HOST, webhook.server.port, ssl=trusting(webhook.ca)
    )
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    writer.write(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
    await writer.drain()
    writer.write(b"3\r\n{  \r\nzz\r\n")
    async with asyncio.timeout(5):
        line = await reader.readline()
    writer.close()
    await writer.wait_closed()
    assert line.split()[1] == b"400"


async def test_a_decision_that_takes_too_long_is_a_denial() -> None:
    async with served(limits=SMALL, lookups=Hanging()) as webhook:
        response = await webhook.review("/mutate-batch-v1-job", obj=JOB)
    assert response["status"]["code"] == 504
    assert response["status"]["message"] == "the review took longer than 0.2 s; try again"


class Faulty(StaticLookups):
    """Lookups with a fault in the program."""

    async def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        raise ZeroDivisionError("secret detail")

    async def local_queue_exists(self, namespace: str, name: str) -> bool:
        return True


async def test_a_fault_of_ours_is_logged_and_not_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        async with served(lookups=Faulty()) as webhook:
            sent = json.dumps(REVIEW).encode()
            status, answer = await webhook.post("/mutate-batch-v1-job", sent)
    assert (status, answer["message"]) == (500, "the webhook failed; its log says why")
    assert [record.getMessage() for record in caplog.records] == ["review failed"]


async def test_a_client_that_goes_away_leaves_no_trace(
    webhook: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        _, writer = await asyncio.open_connection(
            HOST, webhook.server.port, ssl=trusting(webhook.ca)
        )
        writer.write(
            f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            "Content-Length: 100\r\n\r\n{".encode()
        )
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        await webhook.review(PATH, obj=JOB)
    assert caplog.records == []


@pytest.mark.parametrize(("method", "path", "status"), [("GET", PATH, 405), ("POST", "/x", 404)])
async def test_other_paths(webhook: Served, method: str, path: str, status: int) -> None:
    async with webhook.session.request(method, webhook.url(path)) as response:
        assert response.status == status


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(ANY_JSON, st.sampled_from(sorted([*REVIEW["request"], "object"])))
def test_decoding_raises_malformed_review_only(value: Any, field: str) -> None:
    for sent in (value, {**REVIEW, "request": value}, changed(REVIEW, {f"request.{field}": value})):
        try:
            decode(json.dumps(sent).encode())
        except MalformedReview:
            continue
