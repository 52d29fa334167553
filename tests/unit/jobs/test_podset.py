"""Injection of an admission into pod templates, and taking it back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.api import names
from sluice.jobs import podset
from sluice.jobs.difference import merge_patch, same
from sluice.jobs.integration import PodSetInfo

FLAVORS: dict[str, dict[str, Any]] = {
    "gpu": {"spec": {"nodeLabels": {"type": "gpu"}, "tolerations": [{"key": "gpu"}]}},
    "cpu": {"spec": {"nodeLabels": {"pool": "c"}}},
    "plain": {},
    "placed": {"spec": {"topologyName": "t"}},
}


def workload(flavors: dict[str, str], **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "wl", "namespace": "ns"},
        "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 3, "template": {}}]},
        "status": {
            "admission": {
                "clusterQueue": "cq",
                "podSetAssignments": [{"name": "main", "flavors": flavors, "count": 2}],
            },
            **status,
        },
    }


def infos(wl: dict[str, Any]) -> PodSetInfo:
    (info,) = podset.infos_of(wl, FLAVORS.get, queue_labels=True, topology=True)
    return info


def test_infos_unite_the_flavors() -> None:
    info = infos(workload({"nvidia.com/gpu": "gpu", "cpu": "cpu", "memory": "cpu"}))
    assert info.node_selector == {"type": "gpu", "pool": "c"}
    assert info.tolerations == [{"key": "gpu"}]
    assert info.count == 2
    assert info.labels == {
        names.POD_SET_LABEL: "main",
        names.LOCAL_QUEUE_LABEL: "lq",
        names.CLUSTER_QUEUE_LABEL: "cq",
    }
    assert info.annotations == {names.WORKLOAD_ANNOTATION: "wl"}


@pytest.mark.parametrize(
    ("asked", "is_marked"),
    [
        (None, True),
        ({"podIndexLabel": "index"}, True),
        ({"required": "rack"}, False),
        ({"unconstrained": False}, False),
        ({"podSetSliceSize": 2}, False),
    ],
)
def test_pods_that_get_a_topology_unasked_are_marked(
    asked: dict[str, Any] | None, is_marked: bool
) -> None:
    wl = workload({"cpu": "placed"})
    wl["spec"]["podSets"][0]["topologyRequest"] = asked
    annotations = infos(wl).annotations
    assert (annotations.get(names.UNCONSTRAINED_TOPOLOGY) == "true") is is_marked


def test_cluster_queue_label_needs_a_dns_label() -> None:
    wl = workload({"cpu": "plain"})
    wl["status"]["admission"]["clusterQueue"] = "a.b"
    assert names.CLUSTER_QUEUE_LABEL not in infos(wl).labels


def test_infos_add_what_checks_update() -> None:
    update = {"name": "main", "labels": {"a": "b"}, "nodeSelector": {"type": "gpu"}}
    wl = workload({"gpu": "gpu"}, admissionChecks=[{"name": "ac", "podSetUpdates": [update]}])
    assert infos(wl).labels["a"] == "b"


def test_a_check_against_a_flavor_is_a_conflict() -> None:
    update = {"name": "main", "nodeSelector": {"type": "other"}}
    wl = workload({"gpu": "gpu"}, admissionChecks=[{"name": "ac", "podSetUpdates": [update]}])
    with pytest.raises(podset.PodSetConflict, match="nodeSelector"):
        infos(wl)


def test_a_missing_flavor_is_named() -> None:
    with pytest.raises(podset.FlavorMissing, match="'gone'"):
        infos(workload({"cpu": "gone"}))


maps = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), max_size=3)
items = st.lists(st.fixed_dictionaries({"key": st.sampled_from("pqr")}), max_size=3, unique_by=str)
templates = st.builds(
    lambda labels, annotations, selector, tolerations: {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {"nodeSelector": selector, "tolerations": tolerations, "containers": []},
    },
    maps, maps, maps, items,
)  # fmt: skip
added = st.builds(
    PodSetInfo,
    name=st.just("main"),
    count=st.just(1),
    labels=maps,
    annotations=maps,
    node_selector=maps,
    tolerations=items,
    scheduling_gates=items,
)


@given(templates, added)
def test_restore_takes_back_exactly_what_inject_added(
    template: dict[str, Any], info: PodSetInfo
) -> None:
    try:
        injected = podset.inject(template, info)
    except podset.PodSetConflict:
        return
    for key, value in info.node_selector.items():
        assert injected["spec"]["nodeSelector"][key] == value
    assert same(podset.restore(injected, template), template)


@given(templates, added)
def test_inject_twice_is_inject_once(template: dict[str, Any], info: PodSetInfo) -> None:
    try:
        once = podset.inject(template, info)
    except podset.PodSetConflict:
        return
    assert podset.inject(once, info) == once


def test_restore_keeps_labels_of_the_job_controller() -> None:
    template = {"metadata": {"labels": {"job-name": "j", "extra": "x"}}, "spec": {}}
    restored = podset.restore(template, {}, kept_labels=["job-name"])
    assert restored["metadata"] == {"labels": {"job-name": "j"}}


def test_bare_template_keeps_the_last_of_repeated_variables() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "value": "2"}]
    template = {"metadata": {"name": "n"}, "spec": {"containers": [{"name": "c", "env": env}]}}
    bare = podset.bare_template(template)
    assert bare["metadata"] == {}
    assert bare["spec"]["containers"][0]["env"] == [{"name": "A", "value": "2"}, {"name": "B"}]


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3),
    lambda inner: (
        st.dictionaries(st.sampled_from("abcd"), inner, max_size=3) | st.lists(inner, max_size=2)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """Apply a patch as RFC 7386 section 2 says."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply_merge_patch(result.get(key), value)
    return result


@given(objects, objects)
def test_merge_patch_leads_from_one_object_to_the_other(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    patch = merge_patch(before, after)
    assert same(apply_merge_patch(before, patch), after)
    assert (patch == {}) == same(before, after)


def test_labels_of_long_queues_and_remote_workloads() -> None:
    wl = workload({"cpu": "plain"})
    wl["spec"]["queueName"] = "q" * 64
    wl["metadata"]["labels"] = {names.MULTIKUEUE_ORIGIN_LABEL: "m"}
    labels = infos(wl).labels
    assert names.LOCAL_QUEUE_LABEL not in labels
    assert labels[names.MULTIKUEUE_WORKER_POD_LABEL] == "true"


def test_updates_of_other_pod_sets_are_not_taken() -> None:
    update = {"name": "other", "labels": {"a": "b"}}
    wl = workload({"gpu": "gpu"}, admissionChecks=[{"name": "ac", "podSetUpdates": [update]}])
    assert "a" not in infos(wl).labels


def test_switched_off_labels_and_annotations() -> None:
    wl = workload({"cpu": "plain"})
    (info,) = podset.infos_of(wl, FLAVORS.get, queue_labels=False, topology=False)
    assert info.labels == {names.POD_SET_LABEL: "main"}
    assert info.annotations == {}


def test_a_topology_assignment_gates_the_pods() -> None:
    wl = workload({"cpu": "plain"})
    wl["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"] = {"levels": ["h"]}
    assert infos(wl).scheduling_gates == [{"name": names.TOPOLOGY_GATE}]
