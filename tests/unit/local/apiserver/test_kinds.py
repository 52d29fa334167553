"""Built-in kinds: what they default to and what they refuse."""

from typing import Any

import pytest
from tests.support.apiserver import JOBS, MERGE, PODS, Http, config_map, job, pod

PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
ACCOUNT = "/api/v1/namespaces/default/serviceaccounts"


def kind(api_version: str, name: str, object_name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": object_name}
    return {"apiVersion": api_version, "kind": name, "metadata": metadata, **fields}


async def test_a_job_is_completed_as_the_reference_says(http: Http) -> None:
    made = await http.ok("POST", JOBS, job("a"))
    spec, uid = made["spec"], made["metadata"]["uid"]
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (1, 1, 6)
    assert spec["completionMode"] == "NonIndexed"
    assert spec["podReplacementPolicy"] == "TerminatingOrFailed"
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    labels = spec["template"]["metadata"]["labels"]
    assert labels == {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "a",
        "controller-uid": uid,
        "job-name": "a",
    }
    assert made["metadata"]["labels"] == labels
    template = spec["template"]["spec"]
    assert template["schedulerName"] == "default-scheduler"
    assert template["containers"][0]["imagePullPolicy"] == "Always"


async def test_a_job_without_labels_has_those_of_its_template(http: Http) -> None:
    asked = job("a")
    asked["spec"]["template"]["metadata"] = {"labels": {"app": "x"}}
    made = await http.ok("POST", JOBS, asked)
    labels = made["metadata"]["labels"]
    assert (labels["app"], labels["job-name"]) == ("x", "a")
    assert labels == made["spec"]["template"]["metadata"]["labels"]


async def test_a_job_with_labels_keeps_to_them(http: Http) -> None:
    asked = job("a")
    asked["metadata"]["labels"] = {"app": "x"}
    made = await http.ok("POST", JOBS, asked)
    assert made["metadata"]["labels"] == {"app": "x"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"parallelism": -1}, "spec.parallelism"),
        ({"completionMode": "Indexed", "parallelism": 2}, "spec.completions"),
        ({"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
         "spec.template.spec.restartPolicy"),
        ({"template": {"spec": {"restartPolicy": "Never"}}}, "spec.template.spec.containers"),
    ],
)  # fmt: skip
async def test_jobs_that_are_refused(http: Http, spec: dict[str, Any], field: str) -> None:
    reply = await http("POST", JOBS, job("a", **spec))
    assert reply.code == 422
    assert field in {cause["field"] for cause in reply.body["details"]["causes"]}


async def test_a_jobs_name_is_a_label_of_its_pods(http: Http) -> None:
    asked = job("j" * 63)
    asked["metadata"]["labels"] = {"app": "x"}
    assert (await http("POST", JOBS, asked)).code == 201
    asked["metadata"]["name"] = "j" * 64
    reply = await http("POST", JOBS, asked)
    assert reply.code == 422
    assert {cause["field"] for cause in reply.body["details"]["causes"]} == {"spec.template.labels"}


@pytest.mark.parametrize("spec", ["text", 1, [], {"template": "x"}, {"template": {"spec": []}},
                                  {"template": {"spec": {"containers": "x"}}},
                                  {"template": {"spec": {"containers": ["x"]}}},
                                  {"parallelism": "two"}, {"selector": 1}])  # fmt: skip
async def test_wrong_types_are_a_bad_request(http: Http, spec: Any) -> None:
    body = job("a")
    body["spec"] = spec if not isinstance(spec, dict) else {**body["spec"], **spec}
    reply = await http("POST", JOBS, body)
    assert (reply.code, reply.reason) == (400, "BadRequest")


async def test_a_suspended_job_may_be_told_where_to_run(http: Http) -> None:
    await http.ok("POST", JOBS, job("a"))
    where = {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "t", "operator": "Exists"}]}
    patch: dict[str, Any] = {"spec": {"template": {"spec": where}}}
    assert (await http("PATCH", f"{JOBS}/a", patch, kind=MERGE)).code == 200
    for fixed in ({"priorityClassName": "x"}, {"hostNetwork": True}):
        patch = {"spec": {"template": {"spec": fixed}}}
        assert (await http("PATCH", f"{JOBS}/a", patch, kind=MERGE)).code == 422
    await http.ok("PATCH", f"{JOBS}/a", {"spec": {"suspend": False}}, kind=MERGE)
    patch = {"spec": {"template": {"spec": {"nodeSelector": {"a": "c"}}}}}
    assert (await http("PATCH", f"{JOBS}/a", patch, kind=MERGE)).code == 422
    assert (await http("PATCH", f"{JOBS}/a", {"spec": {"completions": 2}}, kind=MERGE)).code == 422


@pytest.mark.parametrize(
    ("status", "may_change"),
    [
        ({"startTime": None, "active": 1}, False),
        ({"active": 1, "conditions": [{"type": "Suspended", "status": "True"}]}, False),
        ({"active": 0}, False),
        ({"active": 0, "conditions": [{"type": "Suspended", "status": "True"}]}, True),
        ({"startTime": None, "active": 0}, True),
    ],
)
async def test_a_stopped_job_may_be_told_once_its_pods_are_gone(
    http: Http, status: dict[str, Any], may_change: bool
) -> None:
    await http.ok("POST", JOBS, job("a"))
    started = {"status": {"startTime": "2026-01-01T00:00:00Z", **status}}
    await http.ok("PATCH", f"{JOBS}/a/status", started, kind=MERGE)
    patch = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
    reply = await http("PATCH", f"{JOBS}/a", patch, kind=MERGE)
    assert reply.code == (200 if may_change else 422)


async def test_a_pod_is_completed_by_class_account_and_tolerations(http: Http) -> None:
    await http.ok("POST", PRIORITY_CLASSES, kind("scheduling.k8s.io/v1", "PriorityClass", "high",
                                                 value=1000, preemptionPolicy="Never"))  # fmt: skip
    made = await http.ok("POST", PODS, pod("a", priorityClassName="high"))
    spec = made["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
    assert spec["serviceAccountName"] == "default"
    assert {t["tolerationSeconds"] for t in spec["tolerations"]} == {300}
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    reply = await http("POST", PODS, pod("b", priorityClassName="none"))
    assert (reply.code, reply.reason) == (403, "Forbidden")
    assert "no PriorityClass with name none was found" in reply.message
    assert (await http("POST", PODS, pod("b", priority=7))).code == 403
    assert (await http("POST", PODS, pod("b", serviceAccountName="none"))).code == 403


async def test_a_global_default_class_is_taken(http: Http) -> None:
    await http.ok("POST", PRIORITY_CLASSES, kind("scheduling.k8s.io/v1", "PriorityClass", "usual",
                                                 value=7, globalDefault=True))  # fmt: skip
    spec = (await http.ok("POST", PODS, pod("a")))["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("usual", 7)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
)
async def test_quality_of_service(http: Http, resources: dict[str, Any], expected: str) -> None:
    container = {"name": "c", "image": "i:1", "resources": resources}
    made = await http.ok("POST", PODS, pod("a", containers=[container]))
    assert made["status"]["qosClass"] == expected


async def test_most_of_a_pod_is_fixed(http: Http) -> None:
    await http.ok("POST", PODS, pod("a"))
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "other:2"}]
    reply = await http("PATCH", f"{PODS}/a", image, kind="application/json-patch+json")
    assert reply.code == 200
    reply = await http("PATCH", f"{PODS}/a", {"spec": {"hostNetwork": True}}, kind=MERGE)
    assert (reply.code, reply.body["details"]["causes"][0]["field"]) == (422, "spec")


async def test_gates_hold_a_pod_back_until_they_are_taken_off(http: Http) -> None:
    made = await http.ok("POST", PODS, pod("a", schedulingGates=[{"name": "x.y/z"}]))
    assert made["status"]["conditions"][0]["reason"] == "SchedulingGated"
    patch = {"spec": {"schedulingGates": [], "nodeSelector": {"a": "b"}}}
    await http.ok("PATCH", f"{PODS}/a", patch, kind=MERGE)
    reply = await http("PATCH", f"{PODS}/a", {"spec": {"nodeSelector": {"a": "c"}}}, kind=MERGE)
    assert reply.code == 422


async def test_secrets_fold_plain_text_into_data(http: Http) -> None:
    path = "/api/v1/namespaces/default/secrets"
    made = await http.ok("POST", path, kind("v1", "Secret", "a", stringData={"k": "v"}))
    assert (made["data"], made["type"]) == ({"k": "dg=="}, "Opaque")
    assert "stringData" not in made
    assert (await http("PATCH", f"{path}/a", {"type": "other"}, kind=MERGE)).code == 422


async def test_immutable_config_maps_stay_as_they_are(http: Http) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    await http.ok("POST", path, {**config_map("a"), "immutable": True})
    for patch in ({"data": {"k": "w"}}, {"immutable": False}):
        assert (await http("PATCH", f"{path}/a", patch, kind=MERGE)).code == 422


async def test_priority_classes_keep_their_value(http: Http) -> None:
    body = kind("scheduling.k8s.io/v1", "PriorityClass", "high", value=10)
    await http.ok("POST", PRIORITY_CLASSES, body)
    assert (await http("PATCH", f"{PRIORITY_CLASSES}/high", {"value": 11}, kind=MERGE)).code == 422
    body = kind("scheduling.k8s.io/v1", "PriorityClass", "huge", value=1_000_000_001)
    assert (await http("POST", PRIORITY_CLASSES, body)).code == 422


async def test_a_lease_has_a_positive_duration(http: Http) -> None:
    body = kind("coordination.k8s.io/v1", "Lease", "a", spec={"leaseDurationSeconds": 0})
    assert (await http("POST", LEASES, body)).code == 422
    body["spec"] = {"leaseDurationSeconds": 15, "holderIdentity": "me"}
    made = await http.ok("POST", LEASES, body)
    assert "generation" not in made["metadata"]


async def test_a_limit_range_fills_in_what_follows(http: Http) -> None:
    limits = [{"type": "Container", "max": {"cpu": "4"}, "min": {"memory": "1Gi"}}]
    body = kind("v1", "LimitRange", "a", spec={"limits": limits})
    (item,) = (await http.ok("POST", "/api/v1/namespaces/default/limitranges", body))["spec"][
        "limits"
    ]
    assert item["default"] == {"cpu": "4"}
    assert item["defaultRequest"] == {"cpu": "4", "memory": "1Gi"}


async def test_events_have_two_shapes_of_one_object(http: Http) -> None:
    new = "/apis/events.k8s.io/v1/namespaces/default/events"
    old = "/api/v1/namespaces/default/events"
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    body = kind("events.k8s.io/v1", "Event", "e", regarding=about, note="text", reason="Why",
                type="Normal", action="Do", reportingController="x/y", reportingInstance="i",
                eventTime="2026-01-01T00:00:00.000000Z")  # fmt: skip
    assert (await http.ok("POST", new, body))["note"] == "text"
    seen = await http.ok("GET", f"{old}/e")
    assert (seen["message"], seen["involvedObject"]["name"]) == ("text", "p")
    assert (seen["firstTimestamp"], seen["lastTimestamp"], seen["source"]) == (None, None, {})
    query = "fieldSelector=involvedObject.name%3Dp,type%3DNormal"
    assert (await http("GET", f"{old}?{query}")).names == ["e"]
    assert (await http("GET", f"{new}?fieldSelector=regarding.name%3Dq")).names == []
