"""Quantities of built-in kinds: canonical as on a real API server (Kubernetes 1.36.3)."""

from typing import Any

import pytest
from tests.support.apiserver import CRDS, JOBS, PODS, WIDGETS, Http, job, pod, widget, widget_crd


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, "1"), (0.5, "500m"), ("1000m", "1"), ("0.5", "500m"), ("1e3", "1e3"), ("2E", "2E"),
        ("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), ("2000", "2k"), ("1000Ki", "1000Ki"), ("0", "0"),
        (".5", "500m"), ("1Ki", "1Ki"), ("1024", "1024"),
        ("123456789", "123456789"), ("1e-3", "1e-3"), ("12e6", "12e6"),
        ("1024k", "1024k"), ("0.5Ki", "512"), ("1048576Ki", "1Gi"), ("1000M", "1G"),
        ("1000Gi", "1000Gi"), ("1.5M", "1500k"), ("100e-1", "10"),
        ("3000m", "3"), ("1500m", "1500m"), ("1.25Ki", "1280"),
    ],
)  # fmt: skip
async def test_values_a_real_server_gave(http: Http, value: Any, expected: str) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"memory": value}}}
    made = await http.ok("POST", f"{PODS}?dryRun=All", pod("a", containers=[container]))
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"memory": expected}


async def test_jobs_are_stored_with_canonical_quantities(http: Http) -> None:
    resources = {"requests": {"cpu": 1, "memory": "1024Mi"}, "limits": {"cpu": "2000m"}}
    container = {"name": "c", "image": "i", "resources": resources}
    body = job("a", template={"spec": {"restartPolicy": "Never", "containers": [container]}})
    made = await http.ok("POST", JOBS, body)
    (stored,) = made["spec"]["template"]["spec"]["containers"]
    assert stored["resources"] == {
        "requests": {"cpu": "1", "memory": "1Gi"},
        "limits": {"cpu": "2"},
    }
    again = {"spec": {"template": {"spec": {"containers": [container]}}}}
    kind = "application/strategic-merge-patch+json"
    assert await http.ok("PATCH", f"{JOBS}/a", again, kind=kind) == made


async def test_what_is_no_quantity_is_refused(http: Http) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "much"}}}
    body = job("a", template={"spec": {"restartPolicy": "Never", "containers": [container]}})
    assert (await http("POST", JOBS, body)).code in (400, 422)


async def test_custom_objects_keep_what_was_written(http: Http) -> None:
    crd = widget_crd()
    for version in crd["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["cpu"] = {"x-kubernetes-int-or-string": True}
    await http.ok("POST", CRDS, crd)
    assert (await http.ok("POST", WIDGETS, widget("a", cpu="1000m")))["spec"]["cpu"] == "1000m"
