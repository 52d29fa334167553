"""The same requests to the embedded and to a real API server: the same codes, reasons and fields.

What differs on purpose is listed in docs/embedded.md. Texts are compared where people search for
them; identities and times are not.
"""

import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from tests.support.apiserver import (
    APPLY,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    TABLE,
    job,
    pod,
    serving,
    widget_crd,
)

from sluice.kube.access import ClusterAccess
from sluice.local.real import RealControlPlane

pytestmark = [pytest.mark.slow, pytest.mark.real]

NAMESPACE = "parity"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
WIDGETS = f"/apis/example.com/v1/namespaces/{NAMESPACE}/widgets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
IDENTITY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")

Request = tuple[str, str, Any, str]


def plain(value: Any) -> Any:
    """Return JSON without what is different in each cluster."""
    if isinstance(value, dict):
        left_out = ("resourceVersion", "managedFields", "uid", "continue")
        return {
            IDENTITY.sub("ID", key): plain(child)
            for key, child in value.items()
            if key not in left_out and child is not None
        }
    if isinstance(value, list):
        return [plain(child) for child in value]
    return TIME.sub("TIME", IDENTITY.sub("ID", value)) if isinstance(value, str) else value


def essence(code: int, body: Any) -> Any:
    """Return what must be alike of an answer: all of an object, the core of a Status."""
    if not isinstance(body, dict):
        return (code,)
    if body.get("kind") == "Status":
        details = body.get("details") or {}
        causes = {(c["field"], c["reason"]) for c in details.get("causes") or () if c.get("field")}
        return code, body.get("reason"), details.get("name"), causes
    if body.get("kind") == "Table":
        names = [column["name"] for column in body["columnDefinitions"]]
        ages = [i for i, name in enumerate(names) if name in ("Age", "Duration")]
        rows = [
            plain([cell for i, cell in enumerate(row["cells"]) if i not in ages])
            for row in body["rows"]
        ]
        return code, names, rows
    return code, plain(body)


class Pair:
    """Sends each request to both servers."""

    def __init__(self, sessions: list[aiohttp.ClientSession]) -> None:
        self._sessions = sessions

    async def send(self, method: str, path: str, body: Any = None, kind: str = "") -> list[Any]:
        """Return what must be alike of each answer."""
        return [essence(*answer) for answer in await self._answers(method, path, body, kind)]

    async def bodies(self, method: str, path: str, body: Any, kind: str) -> list[Any]:
        """Return the answers' bodies."""
        return [found for _, found in await self._answers(method, path, body, kind)]

    async def _answers(self, method: str, path: str, body: Any, kind: str) -> list[tuple[int, Any]]:
        answers = []
        headers = {"User-Agent": "parity/1"}
        if kind == "table":
            headers |= TABLE
        elif body is not None:
            headers["Content-Type"] = kind or "application/json"
        for session in self._sessions:
            data = None if body is None else json.dumps(body)
            async with session.request(method, path, data=data, headers=headers) as response:
                found = await response.json() if response.content_type.endswith("json") else None
                answers.append((response.status, found))
        return answers


async def opened(stack: AsyncExitStack, access: ClusterAccess) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(ssl=access.tls or True)
    authorization = await access.credentials.authorization()
    headers = {"Authorization": authorization} if authorization else {}
    session = aiohttp.ClientSession(access.host, connector=connector, headers=headers)
    return await stack.enter_async_context(session)


@pytest_asyncio.fixture
async def pair(real_apiserver: RealControlPlane) -> AsyncIterator[Pair]:
    """Both servers, with a namespace, its account and the CRD of widgets."""
    # Neither has controllers, so nothing but the requests changes an object.
    async with serving() as embedded, AsyncExitStack() as stack:
        both = Pair([embedded.session, await opened(stack, real_apiserver.access())])
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        await both.send("POST", "/api/v1/namespaces", namespace)
        await both.send("POST", ACCOUNTS, account)
        await both.send("POST", CRDS, widget_crd())
        while (await both.send("GET", WIDGETS))[1][0] != 200:
            pass
        yield both
        for path in (JOBS, PODS, WIDGETS):
            await both.send("DELETE", f"{path}?propagationPolicy=Background&gracePeriodSeconds=0")


def box(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": 3, **spec},
    }


CONTAINER = {"name": "c", "image": "busybox"}
POD_SPEC = {"restartPolicy": "Never", "containers": [CONTAINER]}
LABELLED = {"metadata": {"labels": {"app": "x"}}, "spec": POD_SPEC}
WHERE = {"nodeSelector": {"a": "b"}}
ALWAYS = {"spec": {"restartPolicy": "Always", "containers": [CONTAINER]}}

JOB_REQUESTS: list[Request] = [
    ("POST", JOBS, job("a", parallelism=2), ""),
    ("POST", JOBS, job("a"), ""),
    ("POST", f"{JOBS}?dryRun=All", job("b", backoffLimit=None), ""),
    ("POST", f"{JOBS}?dryRun=Some", job("b"), ""),
    ("POST", f"{JOBS}?fieldValidation=Strict", job("b", foo=1), ""),
    ("POST", f"{JOBS}?fieldValidation=Foo", job("b"), ""),
    ("POST", JOBS, job("Bad_Name"), ""),
    ("POST", JOBS, job("b", parallelism="two"), ""),
    ("POST", JOBS, job("b", parallelism=-1), ""),
    ("POST", JOBS, job("b", completionMode="Indexed", parallelism=2), ""),
    ("POST", JOBS.replace(NAMESPACE, "nowhere"), job("b"), ""),
    ("POST", JOBS, {**job("b"), "apiVersion": "batch/v2"}, ""),
    ("POST", JOBS, {**job("b"), "metadata": {}}, ""),
    ("POST", JOBS, {**job("b"), "metadata": {"name": "b", "namespace": "other"}}, ""),
    ("GET", f"{JOBS}/a", None, ""),
    ("GET", JOBS, None, ""),
    ("GET", JOBS, None, "table"),
    ("GET", f"{JOBS}/none", None, ""),
    ("GET", f"{JOBS}?labelSelector=job-name%3Da", None, ""),
    ("GET", f"{JOBS}?fieldSelector=spec.foo%3Da", None, ""),
    ("GET", f"{JOBS}?resourceVersionMatch=Exact", None, ""),
    ("PUT", f"{JOBS}/none", job("none"), ""),
    ("PUT", f"{JOBS}/a", {**job("a"), "metadata": {"name": "a", "resourceVersion": "1"}}, ""),
    ("PATCH", f"{JOBS}/a", {"spec": {"parallelism": 3}}, MERGE),
    ("PATCH", f"{JOBS}/a", {"metadata": {"resourceVersion": "1"}}, MERGE),
    ("PATCH", f"{JOBS}/a", {"spec": {"completions": 3}}, MERGE),
    ("PATCH", f"{JOBS}/a", {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}, MERGE),
    ("PATCH", f"{JOBS}/a", {"spec": {"template": {"spec": {"containers": [
        {"name": "c", "resources": {"requests": {"cpu": "1000m"}}}]}}}}, STRATEGIC),
    ("PATCH", f"{JOBS}/a", [{"op": "add", "path": "/spec/parallelism", "value": 5}], JSON_PATCH),
    ("PATCH", f"{JOBS}/a", [{"op": "test", "path": "/spec/parallelism", "value": 9}], JSON_PATCH),
    ("PATCH", f"{JOBS}/a", {}, "application/json"),
    ("PATCH", f"{JOBS}/a?force=true", {}, MERGE),
    ("PATCH", f"{JOBS}/c", job("c"), APPLY),
    ("PATCH", f"{JOBS}/c?fieldManager=one", job("c", parallelism=1), APPLY),
    ("PATCH", f"{JOBS}/c?fieldManager=two", job("c", parallelism=2), APPLY),
    ("PATCH", f"{JOBS}/c?fieldManager=two&force=true", job("c", parallelism=2), APPLY),
    ("PATCH", f"{JOBS}/c/status", {"status": {"active": 1}, "spec": {"parallelism": 9}}, MERGE),
    ("DELETE", f"{JOBS}/a", {"preconditions": {"uid": "other"}}, ""),
    ("DELETE", f"{JOBS}/a", {"propagationPolicy": "Foo"}, ""),
    ("DELETE", f"{JOBS}/a?propagationPolicy=Foreground", None, ""),
    ("GET", f"{JOBS}/a", None, ""),
    ("DELETE", f"{JOBS}/c", None, ""),
    ("PUT", JOBS, job("a"), ""),
    ("POST", f"{JOBS}/a", job("a"), ""),
    ("GET", f"{JOBS}/a/foo", None, ""),
    ("POST", JOBS, job("labelled", template=LABELLED), ""),
    ("POST", JOBS, job("stopped"), ""),
    ("PATCH", f"{JOBS}/stopped/status", {"status": {"active": 1}}, MERGE),
    ("PATCH", f"{JOBS}/stopped", {"spec": {"template": {"spec": {"nodeSelector": {}}}}}, MERGE),
    ("PATCH", f"{JOBS}/stopped", {"spec": {"template": {"spec": WHERE}}}, MERGE),
    ("PATCH", f"{JOBS}/stopped/status", {"status": {"active": None}}, MERGE),
    ("PATCH", f"{JOBS}/stopped", {"spec": {"template": {"spec": WHERE}}}, MERGE),
]  # fmt: skip

BINDING = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}}
POD = pod("a", automountServiceAccountToken=False)
POD_REQUESTS: list[Request] = [
    ("POST", PODS, POD, ""),
    ("POST", PODS, pod("b", priorityClassName="none"), ""),
    ("POST", PODS, pod("b", priority=7), ""),
    ("POST", PODS, pod("b", serviceAccountName="none"), ""),
    ("POST", PODS, pod("b", containers=[]), ""),
    ("GET", PODS, None, "table"),
    ("POST", f"{PODS}/a/binding", {**BINDING, "target": {"kind": "Node", "name": "n1"}}, ""),
    ("POST", f"{PODS}/a/binding", {**BINDING, "target": {"kind": "Node", "name": "n2"}}, ""),
    ("PATCH", f"{PODS}/a", {"spec": {"hostNetwork": True}}, MERGE),
    ("PATCH", f"{PODS}/a/status", {"status": {"phase": "Running"}}, MERGE),
    ("GET", f"{PODS}?fieldSelector=spec.nodeName%3Dn1,status.phase%3DPending", None, ""),
    ("GET", PODS, None, "table"),
    ("DELETE", f"{PODS}/a?gracePeriodSeconds=30", None, ""),
    ("GET", PODS, None, "table"),
    ("DELETE", f"{PODS}/a?gracePeriodSeconds=0", None, ""),
    ("GET", f"{PODS}/a", None, ""),
]

WIDGET_REQUESTS: list[Request] = [
    ("POST", WIDGETS, box("a"), ""),
    ("POST", WIDGETS, box("b", size=0), ""),
    ("POST", WIDGETS, box("b", size=11), ""),
    ("POST", WIDGETS, box("b", size="x"), ""),
    ("POST", WIDGETS, box("b", color="green"), ""),
    ("POST", f"{WIDGETS}?fieldValidation=Strict", box("b", foo=1), ""),
    ("POST", WIDGETS, {"metadata": {"name": "b"}}, ""),
    ("GET", WIDGETS, None, "table"),
    ("GET", WIDGETS.replace("v1", "v1beta1"), None, ""),
    ("GET", f"{WIDGETS}?fieldSelector=spec.color%3Dred", None, ""),
    ("GET", f"{WIDGETS}?fieldSelector=spec.size%3D3", None, ""),
    ("PUT", f"{WIDGETS}/a", box("a", size=4), ""),
    ("PATCH", f"{WIDGETS}/a", {"spec": {"size": 4}}, MERGE),
    ("PATCH", f"{WIDGETS}/a", {"spec": {"size": 4}}, STRATEGIC),
    ("PATCH", f"{WIDGETS}/a/status", {"status": {"phase": "Up"}, "spec": {"size": 9}}, MERGE),
    ("PATCH", f"{WIDGETS}/c?fieldManager=one", box("c"), APPLY),
    ("PATCH", f"{WIDGETS}/c?fieldManager=two", box("c", size=5), APPLY),
    ("PATCH", f"{WIDGETS}/c?fieldManager=two", box("c", foo=5), APPLY),
    ("PATCH", f"{WIDGETS}/a", {"metadata": {"finalizers": ["x.y/z"]}}, MERGE),
    ("DELETE", f"{WIDGETS}/a", None, ""),
    ("PATCH", f"{WIDGETS}/a", {"metadata": {"finalizers": ["x.y/z", "x.y/new"]}}, MERGE),
    ("PATCH", f"{WIDGETS}/a", {"metadata": {"finalizers": None}}, MERGE),
    ("GET", f"{WIDGETS}/a", None, ""),
]


def placed(obj: dict[str, Any]) -> dict[str, Any]:
    """Return the object with its namespace, as kubectl sends it."""
    return {**obj, "metadata": {**obj["metadata"], "namespace": NAMESPACE}}


TEXTS: list[Request] = [
    ("POST", JOBS, job("b", template=ALWAYS), ""),
    ("POST", JOBS, {**job("b"), "metadata": {"name": "j" * 64, "labels": {"a": "b"}}}, ""),
    ("POST", JOBS, {**job("b"), "metadata": {"name": "b", "labels": {"a": "x" * 64}}}, ""),
    ("POST", JOBS, {**job("b"), "metadata": {"name": "b", "labels": {"x" * 64: ""}}}, ""),
    ("PATCH", f"{JOBS}/c?fieldManager=one", job("c", parallelism=1, backoffLimit=1), APPLY),
    ("PATCH", f"{JOBS}/c?fieldManager=two", job("c", parallelism=2), APPLY),
    ("PATCH", f"{JOBS}/c?fieldManager=two", job("c", parallelism=2, backoffLimit=2), APPLY),
    ("PATCH", f"{JOBS}/c?fieldManager=two", placed(job("c", foo=1)), APPLY),
    ("PATCH", f"{JOBS}/c?fieldManager=two", placed(job("c", parallelism="x")), APPLY),
    ("PATCH", f"{WIDGETS}/c?fieldManager=two", placed(box("c", foo=5)), APPLY),
    ("PATCH", f"{WIDGETS}/c?fieldManager=two", placed(box("c", size="x", color=1)), APPLY),
]


async def test_texts_are_alike(pair: Pair) -> None:
    for request in TEXTS:
        answers = await pair.bodies(*request)
        # Which of several mistakes comes first is by chance in a real server.
        embedded, real = (sorted(plain(body).get("message", "").splitlines()) for body in answers)
        assert embedded == real, request[:2]


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param(JOB_REQUESTS, id="jobs"),
        pytest.param(POD_REQUESTS, id="pods"),
        pytest.param(WIDGET_REQUESTS, id="custom"),
    ],
)
async def test_answers_are_alike(pair: Pair, requests: list[Request]) -> None:
    differences = []
    for request in requests:
        embedded, real = await pair.send(*request)
        if embedded != real:
            differences.append(f"{request[:2]}\n  embedded {embedded}\n  real     {real}")
    assert not differences, "\n".join(differences)
