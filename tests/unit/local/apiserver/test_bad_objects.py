"""Whatever is sent, the server takes it or says what is wrong with it; nothing breaks it."""

import copy
import random
from typing import Any

import pytest
from tests.support.apiserver import (
    CONFIG_MAPS,
    CRDS,
    JOBS,
    MERGE,
    NAMESPACES,
    PODS,
    STRATEGIC,
    WIDGETS,
    Http,
    Reply,
    config_map,
    job,
    namespace,
    pod,
    widget,
    widget_crd,
)

MUTATIONS = 60
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, 1.5, "", "x", "Not A Name", "ünï", [], [None], ["x"], [[]], [{}],
    {}, {"x": "y"}, {"x": None}, {"": ""}, {"matchLabels": []}, [{"name": 1}],
)  # fmt: skip


def kind(api_version: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": name, "metadata": {"name": "a"}, **fields}


def in_default(group: str, plural: str) -> str:
    return f"/apis/{group}/v1/namespaces/default/{plural}"


TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
NEVER = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
FULL_POD = pod(
    "a",
    containers=[
        {
            "name": "c",
            "image": "i",
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "ports": [{"containerPort": 80}],
            "livenessProbe": {"httpGet": {"port": 80}},
            "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
        }
    ],
    volumes=[{"name": "v", "secret": {"secretName": "s"}}],
    tolerations=[{"key": "a", "operator": "Exists"}],
    schedulingGates=[{"name": "x.y/z"}],
)
METADATA = {
    "name": "a",
    "labels": {"a": "b"},
    "annotations": {"a": "b"},
    "finalizers": ["x.y/z"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}],
    "managedFields": [{"manager": "m", "operation": "Update", "fieldsV1": {"f:data": {}}}],
}
WEBHOOK = {
    "name": "a.b.c",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "clientConfig": {"service": {"namespace": "n", "name": "s"}},
    "rules": [{"apiGroups": ["z"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}],
    "matchConditions": [{"name": "m", "expression": "true"}],
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "config map": (CONFIG_MAPS, {**config_map("a"), "metadata": METADATA}),
    "job": (JOBS, job("a", podFailurePolicy={"rules": [{"action": "Count",
            "onPodConditions": [{"type": "Ready"}]}]})),
    "pod": (PODS, FULL_POD),
    "namespace": (NAMESPACES, namespace("a")),
    "node": ("/api/v1/nodes", kind("v1", "Node", status={"capacity": {"cpu": "1"}})),
    "service": ("/api/v1/namespaces/default/services",
                kind("v1", "Service", spec={"ports": [{"port": 1}]})),
    "secret": ("/api/v1/namespaces/default/secrets",
               kind("v1", "Secret", data={"k": "dg=="}, stringData={"a": "b"})),
    "limit range": ("/api/v1/namespaces/default/limitranges", kind("v1", "LimitRange",
                    spec={"limits": [{"type": "Container", "max": {"cpu": "1"}}]})),
    "event": ("/api/v1/namespaces/default/events",
              kind("v1", "Event", involvedObject={"kind": "Pod"}, source={"component": "c"})),
    "new event": (in_default("events.k8s.io", "events"), kind("events.k8s.io/v1", "Event",
                  regarding={"kind": "Pod"}, eventTime="2026-01-01T00:00:00.000000Z")),
    "lease": (in_default("coordination.k8s.io", "leases"),
              kind("coordination.k8s.io/v1", "Lease", spec={"leaseDurationSeconds": 1})),
    "priority class": ("/apis/scheduling.k8s.io/v1/priorityclasses",
                       kind("scheduling.k8s.io/v1", "PriorityClass", value=1)),
    "deployment": (in_default("apps", "deployments"), kind("apps/v1", "Deployment", spec={
                   "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE})),
    "stateful set": (in_default("apps", "statefulsets"), kind("apps/v1", "StatefulSet", spec={
                       "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE})),
    "cron job": (in_default("batch", "cronjobs"), kind("batch/v1", "CronJob", spec={
                 "schedule": "* * * * *", "jobTemplate": {"spec": {"template": NEVER}}})),
    "role binding": (in_default("rbac.authorization.k8s.io", "rolebindings"), kind(
                     "rbac.authorization.k8s.io/v1", "RoleBinding",
                     roleRef={"kind": "Role", "name": "r"},
                     subjects=[{"kind": "User", "name": "u"}])),
    "webhooks": ("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", kind(
                 "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration",
                 webhooks=[WEBHOOK])),
    "crd": (CRDS, widget_crd()),
    "widget": (WIDGETS, widget("a", color="red")),
    "review": ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", kind(
               "authorization.k8s.io/v1", "SelfSubjectAccessReview",
               spec={"resourceAttributes": {"verb": "get"}})),
}  # fmt: skip


def check(reply: Reply, sent: object) -> None:
    """Tell a defect of the server from the few cases that a real one answers with 500, too."""
    assert reply.body["kind"]
    assert reply.reason != "InternalError", (sent, reply.text)


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values below a JSON value."""
    children = node.items() if isinstance(node, dict) else enumerate(node)
    found = []
    for key, child in children:
        found.append((*path, key))
        if isinstance(child, (dict, list)):
            found += places(child, (*path, key))
    return found


def mutate(rng: random.Random, obj: dict[str, Any]) -> dict[str, Any]:
    """Return a copy in which one value is another, or gone."""
    changed = copy.deepcopy(obj)
    *path, last = rng.choice(places(changed))
    node: Any = changed
    for key in path:
        node = node[key]
    if rng.random() < 0.2:
        del node[last]
    else:
        node[last] = copy.deepcopy(rng.choice(VALUES))
    return changed


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
async def test_no_object_breaks_the_server(http: Http, case: str) -> None:
    path, good = CASES[case]
    if case == "widget":
        await http.ok("POST", CRDS, widget_crd())
    rng = random.Random(case)
    assert (await http("POST", f"{path}?dryRun=All", good)).code == 201
    for _ in range(MUTATIONS):
        bad = mutate(rng, mutate(rng, good))
        reply = await http("POST", f"{path}?dryRun=All", bad)
        check(reply, bad)
    if case in ("review", "crd"):
        return
    name = f"{path}/a"
    await http.ok("POST", path, good)
    for _ in range(MUTATIONS // 3):
        bad = mutate(rng, good)
        kinds = (MERGE,) if case == "widget" else (MERGE, STRATEGIC)
        for content_type in kinds:
            reply = await http("PATCH", f"{name}?dryRun=All", bad, kind=content_type)
            check(reply, bad)
        reply = await http("PUT", f"{name}?dryRun=All", bad)
        check(reply, bad)
        apply = f"{name}?dryRun=All&fieldManager=m&force=true"
        reply = await http("PATCH", apply, bad, kind="application/apply-patch+yaml")
        check(reply, bad)
