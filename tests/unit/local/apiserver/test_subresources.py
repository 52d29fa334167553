"""Bindings, evictions, tokens and reviews."""

import pytest
from tests.support.apiserver import PODS, Http, binding, client_of, pod

ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
REVIEWS = "/apis/authorization.k8s.io/v1"


def review(group: str, kind: str, **spec: object) -> dict[str, object]:
    return {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}


async def test_binding_gives_a_pod_its_node_once(http: Http) -> None:
    await http.ok("POST", PODS, pod("a"))
    await http.ok("POST", f"{PODS}/a/binding", binding("a", "n1"))
    bound = await http.ok("GET", f"{PODS}/a")
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["status"]["conditions"][0]["type"] == "PodScheduled"
    reply = await http("POST", f"{PODS}/a/binding", binding("a", "n2"))
    assert (reply.code, reply.reason) == (409, "Conflict")
    assert 'already assigned to node "n1"' in reply.message
    assert (await http("POST", f"{PODS}/none/binding", binding("none", "n1"))).code == 404


async def test_a_gated_pod_is_not_bound(http: Http) -> None:
    await http.ok("POST", PODS, pod("a", schedulingGates=[{"name": "x.y/z"}]))
    assert (await http("POST", f"{PODS}/a/binding", binding("a", "n1"))).code == 409


async def test_a_binding_needs_a_node(http: Http) -> None:
    await http.ok("POST", PODS, pod("a"))
    body = binding("a", "n1")
    del body["target"]
    assert (await http("POST", f"{PODS}/a/binding", body)).code == 400


async def test_an_eviction_deletes_the_pod(http: Http) -> None:
    await http.ok("POST", PODS, pod("a"))
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    await http.ok("POST", f"{PODS}/a/eviction", body)
    assert (await http("GET", f"{PODS}/a")).code == 404


async def test_a_token_lets_its_account_in(http: Http) -> None:
    request = review("authentication.k8s.io", "TokenRequest", expirationSeconds=600)
    issued = await http.ok("POST", f"{ACCOUNT}/token", request)
    token = issued["status"]["token"]
    assert issued["status"]["expirationTimestamp"].endswith("Z")
    async with client_of(http.server, token) as session:
        account = Http(http.server, session)
        whoami = review("authentication.k8s.io", "SelfSubjectReview")
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        found = (await account.ok("POST", path, whoami))["status"]["userInfo"]
    assert found["username"] == "system:serviceaccount:default:default"
    assert "system:serviceaccounts:default" in found["groups"]
    ask = review("authentication.k8s.io", "TokenReview", token=token)
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    assert (await http.ok("POST", path, ask))["status"]["authenticated"] is True
    ask = review("authentication.k8s.io", "TokenReview", token="nonsense")
    assert (await http.ok("POST", path, ask))["status"]["authenticated"] is False


@pytest.mark.parametrize("seconds", [1, "x", -5])
async def test_a_token_must_live_ten_minutes(http: Http, seconds: object) -> None:
    request = review("authentication.k8s.io", "TokenRequest", expirationSeconds=seconds)
    assert (await http("POST", f"{ACCOUNT}/token", request)).code == 422


async def test_a_missing_account_gets_no_token(http: Http) -> None:
    request = review("authentication.k8s.io", "TokenRequest")
    path = ACCOUNT.replace("/default", "/none", 2).replace("/none", "/default", 1)
    assert (await http("POST", f"{path}/token", request)).code == 404


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("SelfSubjectAccessReview", f"{REVIEWS}/selfsubjectaccessreviews"),
        ("SubjectAccessReview", f"{REVIEWS}/subjectaccessreviews"),
        (
            "LocalSubjectAccessReview",
            f"{REVIEWS}/namespaces/default/localsubjectaccessreviews",
        ),
    ],
)
async def test_everything_is_allowed(http: Http, kind: str, path: str) -> None:
    ask = review("authorization.k8s.io", kind, resourceAttributes={"verb": "get"})
    answer = await http("POST", path, ask)
    assert (answer.code, answer.body["status"]["allowed"]) == (201, True)
    assert (await http("POST", path, {**ask, "spec": "x"})).code == 400


async def test_the_rules_of_everybody_are_all(http: Http) -> None:
    ask = review("authorization.k8s.io", "SelfSubjectRulesReview", namespace="default")
    answer = await http.ok("POST", f"{REVIEWS}/selfsubjectrulesreviews", ask)
    assert answer["status"]["resourceRules"][0]["verbs"] == ["*"]


async def test_what_needs_a_running_container_says_that_there_is_none(http: Http) -> None:
    await http.ok("POST", PODS, pod("a"))
    reply = await http("GET", f"{PODS}/a/log")
    assert (reply.code, reply.reason) == (404, "NotFound")
    assert "the Pods of this control plane run nothing" in reply.message
    other = await http("GET", f"{PODS}/a/nonsense")
    assert other.message == "the server could not find the requested resource"
