"""What the batch/v1 integration reads from a Job and writes to it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.api import names
from sluice.jobs.batch import BatchJob, index_set
from sluice.jobs.integration import Change, PodSetInfo
from sluice.jobs.podset import PodSetConflict

BATCH = BatchJob()


def job(**changes: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": "x", "job-name": "sample", "controller-uid": "u"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"zone": "a"}},
    }
    annotations = changes.pop("annotations", {})
    status = changes.pop("status", {})
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sample", "namespace": "ns", "uid": "u", "annotations": annotations},
        "spec": {"suspend": True, "parallelism": 3, "template": template, **changes},
        "status": status,
    }


INFO = PodSetInfo(
    name="main",
    count=2,
    labels={names.POD_SET_LABEL: "main"},
    node_selector={"gpu": "a100"},
    tolerations=[{"key": "gpu", "operator": "Exists"}],
)


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        pytest.param({}, 3, id="parallelism"),
        pytest.param({"parallelism": None}, 1, id="one by default"),
        pytest.param({"completions": 2}, 2, id="never more than completions"),
        pytest.param({"parallelism": 0}, 0, id="none"),
    ],
)
def test_count_of_the_pod_set(changes: dict[str, Any], count: int) -> None:
    (pod_set,) = BATCH.pod_sets(job(**changes))
    assert pod_set.count == count


def test_pod_set_leaves_out_the_labels_of_the_job_controller() -> None:
    (pod_set,) = BATCH.pod_sets(job(annotations={names.MIN_PARALLELISM: "2"}))
    assert pod_set.template["metadata"] == {"labels": {"app": "x"}}
    assert pod_set.count_min == 2
    assert pod_set.topology_request == {"podIndexLabel": "batch.kubernetes.io/job-completion-index"}


def test_start_injects_and_unsuspends_without_touching_the_given_job() -> None:
    given_job = job()
    change = BATCH.start(given_job, [INFO])
    spec = change.desired["spec"]
    assert spec["suspend"] is False
    assert spec["parallelism"] == 3, "the count changes only with partial admission"
    assert spec["template"]["spec"]["nodeSelector"] == {"zone": "a", "gpu": "a100"}
    assert spec["template"]["spec"]["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    assert spec["template"]["metadata"]["labels"][names.POD_SET_LABEL] == "main"
    assert given_job == job()


def test_start_with_partial_admission_keeps_completions_in_step() -> None:
    annotations = {names.MIN_PARALLELISM: "1", names.COMPLETIONS_EQUAL_PARALLELISM: "true"}
    spec = BATCH.start(job(annotations=annotations, completions=3), [INFO]).desired["spec"]
    assert (spec["parallelism"], spec["completions"]) == (2, 2)


def test_start_refuses_a_selector_that_says_something_else() -> None:
    info = PodSetInfo(name="main", count=1, node_selector={"zone": "b"})
    with pytest.raises(PodSetConflict, match="key 'zone' is 'a'"):
        BATCH.start(job(), [info])


def steps(start: dict[str, Any], pod_sets: Any) -> list[Change]:
    """Apply the writes of a stop one after the other, as the controller does."""
    current, changes = start, []
    while (change := BATCH.stop(current, pod_sets)) is not None:
        changes.append(change)
        current = change.desired
        assert len(changes) < 5, "a stop must come to an end"
    return changes


def test_stop_suspends_clears_the_start_time_and_restores() -> None:
    annotations = {names.MIN_PARALLELISM: "1"}
    original = [pod_set.to_json() for pod_set in BATCH.pod_sets(job(annotations=annotations))]
    running = BATCH.start(job(annotations=annotations), [INFO]).desired
    running["status"] = {"startTime": "2026-01-01T00:00:00Z", "active": 2}
    suspend, clear = steps(running, original)
    assert suspend.desired["spec"]["suspend"] is True
    assert not BATCH.is_suspended(suspend.desired), "half way is not suspended"
    assert clear.subresource == "status"
    assert clear.desired["status"] == {"active": 2}
    assert not BATCH.is_suspended(clear.desired), "its template waits for the pods to end"
    assert BATCH.is_active(clear.desired)
    (restore,) = steps({**clear.desired, "status": {"active": 0}}, original)
    assert restore.desired["spec"] == job(annotations=annotations)["spec"]
    assert BATCH.is_suspended(restore.desired)


def test_stop_does_not_wait_for_pods_when_the_template_is_the_jobs_own() -> None:
    running = job(suspend=False, status={"active": 2})
    original = [pod_set.to_json() for pod_set in BATCH.pod_sets(running)]
    *_, last = steps(running, original)
    assert BATCH.is_suspended(last.desired)


def test_stop_of_a_stopped_job_writes_nothing() -> None:
    original = [pod_set.to_json() for pod_set in BATCH.pod_sets(job())]
    assert BATCH.stop(job(), original) is None
    assert BATCH.stop(job(), None) is None


@pytest.mark.parametrize(
    ("changes", "reclaimable"),
    [
        pytest.param({"completions": 5, "status": {"succeeded": 2}}, {}, id="enough remain"),
        pytest.param({"completions": 5, "status": {"succeeded": 4}}, {"main": 2}, id="one remains"),
        pytest.param(
            {"completions": 5, "status": {"succeeded": 5}}, {"main": 3}, id="none remains"
        ),
        pytest.param({"status": {"succeeded": 1}}, {"main": 1}, id="completions as parallelism"),
        pytest.param({"parallelism": 1, "status": {"succeeded": 1}}, {}, id="one at a time"),
        pytest.param(
            {
                "completions": 4,
                "completionMode": "Indexed",
                "status": {"completedIndexes": "0-1", "failedIndexes": "1,3,9"},
            },
            {"main": 2},
            id="distinct indexes below completions",
        ),
    ],
)
def test_reclaimable_pods(changes: dict[str, Any], reclaimable: dict[str, int]) -> None:
    assert BATCH.reclaimable_pods(job(**changes)) == reclaimable


def test_pods_ready_counts_ready_succeeded_and_uncounted() -> None:
    status = {"ready": 1, "succeeded": 1, "uncountedTerminatedPods": {"succeeded": ["uid"]}}
    assert BATCH.pods_ready(job(status=status))
    assert not BATCH.pods_ready(job(status={"ready": 2}))


def test_finished_tells_success_and_message() -> None:
    def end(kind: str, status: str = "True") -> Any:
        conditions = [{"type": kind, "status": status, "message": "why"}]
        return BATCH.finished(job(status={"conditions": conditions}))

    assert (end("Complete").success, end("Complete").message) == (True, "why")
    assert end("Failed").success is False
    assert end("Failed", "False") is None
    assert end("Suspended") is None


@given(st.sets(st.integers(0, 40)), st.integers(0, 41))
def test_index_set_reads_any_compression(indexes: set[int], limit: int) -> None:
    text = ",".join(map(str, sorted(indexes)))
    assert index_set(text, limit) == {i for i in indexes if i < limit}


def test_managed_by_and_suspension() -> None:
    assert BATCH.managed_by(job(managedBy="example.com/x")) == "example.com/x"
    assert BATCH.managed_by(job()) == ""
    assert BATCH.is_suspended(job())
    assert not BATCH.is_suspended(job(suspend=False))
    half_stopped = job(annotations={names.STOPPING: "true"})
    assert not BATCH.is_suspended(half_stopped)
    assert BATCH.is_stopping(half_stopped)
    assert not BATCH.is_stopping(job())
    assert not BATCH.is_stopping(job(suspend=False, annotations={names.STOPPING: "true"}))
    assert not BATCH.is_active(job())


def test_stop_of_a_job_without_annotations_leaves_none() -> None:
    running = job(suspend=False)
    del running["metadata"]["annotations"]
    *_, last = steps(running, None)
    assert not last.desired["metadata"].get("annotations")
