"""JSON patch, JSON merge patch and strategic merge patch, as the server calls them."""

from typing import Any

import pytest
from tests.unit.local.merge.worlds import THING, thing

from sluice.local.apiserver.kinds.builtin import type_schema
from sluice.local.apiserver.seams import PatchType
from sluice.local.apiserver.status import ApiError
from sluice.local.merge import Merger

JOB = type_schema("batch", "v1", "Job")
POD = type_schema("", "v1", "Pod")


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def strategic(live: Any, patch: Any) -> Any:
    return Merger().patch(PatchType.STRATEGIC, live, patch, POD)


def test_json_patch() -> None:
    live = thing({"text": "t"})
    operations = [
        {"op": "test", "path": "/spec/text", "value": "t"},
        {"op": "replace", "path": "/spec/text", "value": "u"},
        {"op": "add", "path": "/spec/set", "value": ["a"]},
        {"op": "add", "path": "/spec/set/-", "value": "b"},
    ]
    patched = Merger().patch(PatchType.JSON, live, operations, THING)
    assert patched["spec"] == {"text": "u", "set": ["a", "b"]}
    assert live["spec"] == {"text": "t"}


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        ([{"op": "test", "path": "/spec/text", "value": "other"}], 422),
        ([{"op": "remove", "path": "/spec/nope"}], 422),
        ([{"op": "add", "path": "/nope/deep", "value": 1}], 422),
        ([{"op": "fly", "path": "/spec"}], 400),
        ({"op": "remove"}, 400),
        ([{"op": "add", "path": "", "value": 1}], 400),
    ],
)
def test_json_patches_that_do_not_apply(operations: Any, code: int) -> None:
    with pytest.raises(ApiError) as caught:
        Merger().patch(PatchType.JSON, thing({"text": "t"}), operations, THING)
    assert caught.value.code == code


def test_merge_patch_removes_with_null_and_replaces_lists() -> None:
    live = thing({"text": "t", "struct": {"a": "1", "b": "2"}, "set": ["a"]})
    patch = {"spec": {"text": None, "struct": {"a": None}, "set": ["b"], "labels": {"x": None}}}
    patched = Merger().patch(PatchType.MERGE, live, patch, THING)
    assert patched["spec"] == {"struct": {"b": "2"}, "set": ["b"], "labels": {}}


def test_custom_resources_take_no_strategic_patch() -> None:
    with pytest.raises(ApiError) as caught:
        Merger().patch(PatchType.STRATEGIC, thing({}), {}, THING)
    assert caught.value.code == 415


def test_lists_with_a_merge_key_merge_by_it() -> None:
    live = pod(containers=[{"name": "a", "image": "1", "env": [{"name": "E", "value": "1"}]}])
    patch = {"spec": {"containers": [
        {"name": "b", "image": "2"},
        {"name": "a", "env": [{"name": "F", "value": "2"}]},
    ]}}  # fmt: skip
    assert strategic(live, patch)["spec"]["containers"] == [
        {"name": "b", "image": "2"},
        {"name": "a", "image": "1",
         "env": [{"name": "F", "value": "2"}, {"name": "E", "value": "1"}]},
    ]  # fmt: skip


def test_lists_without_one_are_replaced() -> None:
    live = pod(containers=[{"name": "a", "args": ["1"]}], tolerations=[{"key": "x"}])
    patch = {"spec": {"containers": [{"name": "a", "args": ["2"]}], "tolerations": []}}
    assert strategic(live, patch)["spec"] == {
        "containers": [{"name": "a", "args": ["2"]}], "tolerations": []
    }  # fmt: skip


def test_sets_of_texts_merge() -> None:
    live = {**pod(), "metadata": {"name": "p", "finalizers": ["a", "b"]}}
    patch = {"metadata": {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]}}
    assert strategic(live, patch)["metadata"]["finalizers"] == ["c", "b"]


def test_delete_directives() -> None:
    live = pod(containers=[{"name": "a"}, {"name": "b"}], securityContext={"runAsUser": 1})
    patch = {"spec": {
        "containers": [{"$patch": "delete", "name": "a"}], "securityContext": {"$patch": "delete"},
        "hostNetwork": None,
    }}  # fmt: skip
    assert strategic(live, patch)["spec"] == {"containers": [{"name": "b"}]}


def test_replace_directives() -> None:
    live = pod(containers=[{"name": "a"}], securityContext={"runAsUser": 1, "fsGroup": 2})
    patch = {"spec": {
        "containers": [{"name": "c"}, {"$patch": "replace"}],
        "securityContext": {"$patch": "replace", "runAsUser": 3},
    }}  # fmt: skip
    assert strategic(live, patch)["spec"] == {
        "containers": [{"name": "c"}], "securityContext": {"runAsUser": 3}
    }  # fmt: skip


def test_retained_keys_drop_the_others() -> None:
    live = pod(volumes=[{"name": "v", "emptyDir": {}}])
    patch = {"spec": {"volumes": [
        {"name": "v", "$retainKeys": ["name", "secret"], "secret": {"secretName": "s"}}
    ]}}  # fmt: skip
    assert strategic(live, patch)["spec"]["volumes"] == [
        {"name": "v", "secret": {"secretName": "s"}}
    ]


def test_the_order_a_patch_asks_for() -> None:
    live = pod(containers=[{"name": "a"}, {"name": "server"}, {"name": "b"}])
    patch = {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}],
                      "containers": [{"name": "c"}]}}  # fmt: skip
    names = [item["name"] for item in strategic(live, patch)["spec"]["containers"]]
    assert names == ["server", "b", "c", "a"]


def test_an_item_without_the_merge_key() -> None:
    with pytest.raises(ApiError, match=r"map: map\[image:x\] does not contain declared merge key"):
        strategic(pod(containers=[{"name": "a"}]), {"spec": {"containers": [{"image": "x"}]}})


@pytest.mark.parametrize(
    "patch",
    [
        [], {"spec": {"$patch": "burn"}}, {"spec": {"$setElementOrder/containers": 5}},
        {"spec": {"$setElementOrder/containers": ["a"], "containers": [{"name": "b"}]}},
        {"spec": {"$retainKeys": "x"}}, {"spec": {"containers": [[]]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": 5}},
    ],
)  # fmt: skip
def test_malformed_strategic_patches(patch: Any) -> None:
    with pytest.raises(ApiError) as caught:
        strategic(pod(containers=[{"name": "a"}]), patch)
    assert caught.value.code == 400


def test_a_job_is_suspended_by_a_strategic_patch() -> None:
    live = {"spec": {"suspend": False, "template": {"spec": {"nodeSelector": {"a": "b"}}}}}
    patch = {"spec": {"suspend": True, "template": {"spec": {"nodeSelector": {"c": "d"}}}}}
    patched = Merger().patch(PatchType.STRATEGIC, live, patch, JOB)
    assert patched["spec"] == {
        "suspend": True, "template": {"spec": {"nodeSelector": {"a": "b", "c": "d"}}}
    }  # fmt: skip
