"""Jobs from creation to their end, as the stand-ins run them on the embedded API server."""

from typing import Any

import pytest
from tests.support.waiting import has_condition, wait_for, wait_until_deleted
from tests.unit.local.standins.conftest import NAMESPACE, OPTIONS, Cluster, standing_in, template

from sluice.kube.client import PatchType
from sluice.kube.resources import BATCH_JOBS, EVENTS, PODS
from sluice.local.standins import KubeletOptions, StandInOptions

pytestmark = pytest.mark.slow
DONE = has_condition("Complete")


def active(count: int) -> Any:
    return lambda item: item.get("status", {}).get("active", 0) == count


async def patch(cluster: Cluster, body: dict[str, Any]) -> None:
    await cluster.client.patch(BATCH_JOBS, NAMESPACE, "j", body, patch_type=PatchType.MERGE)


async def test_a_job_runs_to_its_end(cluster: Cluster) -> None:
    await cluster.create_job()
    status = (await cluster.job(DONE))["status"]
    assert [(c["type"], c["reason"]) for c in status["conditions"]] == [
        ("SuccessCriteriaMet", "CompletionsReached"),
        ("Complete", "CompletionsReached"),
    ]
    assert status["completionTime"] >= status["startTime"]
    rest = {k: v for k, v in status.items() if not k.endswith("Time") and k != "conditions"}
    assert rest == {"succeeded": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
    pod = (await cluster.pods())[0]
    assert pod["status"]["phase"] == "Succeeded"
    assert pod["metadata"]["name"].startswith("j-")
    assert pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "j"


async def test_parallelism_bounds_what_runs_together(cluster: Cluster) -> None:
    await cluster.create_job(parallelism=2, completions=5)
    done = await cluster.job(DONE)
    assert done["status"]["succeeded"] == 5
    assert len(await cluster.pods()) == 5


async def test_a_suspended_job_waits(cluster: Cluster) -> None:
    await cluster.create_job(suspend=True, template=template(run=None))
    waiting = await cluster.job(has_condition("Suspended", reason="JobSuspended"))
    assert "startTime" not in waiting["status"]
    assert await cluster.pods() == []
    await patch(cluster, {"spec": {"suspend": False}})
    running = await cluster.job(active(1))
    assert has_condition("Suspended", "False", "JobResumed")(running)
    assert running["status"]["startTime"]


async def test_a_job_that_is_stopped_and_goes_on_starts_anew_and_ends(cluster: Cluster) -> None:
    await cluster.create_job(template=template(run="0.5s"))
    await cluster.job(active(1))
    await patch(cluster, {"spec": {"suspend": True}})
    rested = await cluster.job(has_condition("Suspended"))
    assert "startTime" not in rested["status"], "its deadline is not running"
    await patch(cluster, {"spec": {"suspend": False}})
    done = await cluster.job(DONE)
    assert has_condition("Suspended", "False", "JobResumed")(done)
    assert done["status"]["startTime"]


async def test_pods_that_do_not_say_how_long_they_run_may_get_a_default(bare: Cluster) -> None:
    async with standing_in(bare.client, StandInOptions(kubelets=KubeletOptions(run_s=0.05))):
        await bare.create_job(template=template(run=None))
        await bare.job(DONE)
        container = {"name": "c", "image": "i"}
        # To be restarted when it ends, so it is meant to go on.
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
        await bare.client.create(PODS, NAMESPACE, {**pod, "spec": {"containers": [container]}})
        await bare.pod(lambda item: item["status"]["phase"] == "Running")
        await bare.create_job("later", template=template(run=None))
        await bare.job(DONE, "later")
        phases = {item["metadata"]["name"]: item["status"]["phase"] for item in await bare.pods()}
        assert phases["p"] == "Running"


async def test_suspending_deletes_pods_without_counting_them_as_failed(cluster: Cluster) -> None:
    await cluster.create_job(parallelism=3, template=template(run=None))
    await cluster.job(lambda item: item.get("status", {}).get("ready") == 3)
    await patch(cluster, {"spec": {"suspend": True}})
    rested = await cluster.job(
        lambda item: has_condition("Suspended")(item)
        and active(0)(item) and not item["status"].get("terminating")
    )  # fmt: skip
    assert "failed" not in rested["status"]
    await cluster.no_pods()


async def test_the_template_of_a_rested_job_can_be_steered(cluster: Cluster) -> None:
    await cluster.create_job(template=template(run=None))
    await cluster.job(active(1))
    await patch(cluster, {"spec": {"suspend": True}})
    await cluster.job(lambda item: has_condition("Suspended")(item) and active(0)(item))
    selector = {"kubernetes.io/hostname": "node-1"}
    steered = {"template": {"spec": {"nodeSelector": selector}}}
    await patch(cluster, {"spec": {**steered, "suspend": False}})
    pod = await cluster.pod(lambda item: item["spec"].get("nodeSelector") == selector
                            and item["status"]["phase"] == "Running")  # fmt: skip
    assert pod["spec"]["nodeName"] == "node-1"


async def test_failed_pods_are_replaced_up_to_the_limit(cluster: Cluster) -> None:
    await cluster.create_job(backoffLimit=1, template=template(outcome="Failed"))
    status = (await cluster.job(has_condition("Failed")))["status"]
    assert status["failed"] == 2
    assert [(c["type"], c["reason"]) for c in status["conditions"]] == [
        ("FailureTarget", "BackoffLimitExceeded"),
        ("Failed", "BackoffLimitExceeded"),
    ]


async def test_a_job_past_its_deadline_fails(cluster: Cluster) -> None:
    await cluster.create_job(activeDeadlineSeconds=1, template=template(run=None))
    failed = await cluster.job(has_condition("Failed", reason="DeadlineExceeded"))
    assert "active" not in failed["status"]


async def test_indexed_pods_know_their_index(cluster: Cluster) -> None:
    await cluster.create_job(parallelism=2, completions=4, completionMode="Indexed")
    done = await cluster.job(DONE)
    assert (done["status"]["succeeded"], done["status"]["completedIndexes"]) == (4, "0-3")
    pods = await cluster.pods()
    label = "batch.kubernetes.io/job-completion-index"
    assert sorted(pod["metadata"]["labels"][label] for pod in pods) == ["0", "1", "2", "3"]
    first = next(pod for pod in pods if pod["metadata"]["annotations"][label] == "0")
    assert first["metadata"]["name"].startswith("j-0-")
    assert first["spec"]["hostname"] == "j-0"
    assert first["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"


async def test_a_work_queue_ends_when_all_its_pods_have(cluster: Cluster) -> None:
    await cluster.create_job(parallelism=2, completions=None)
    done = await cluster.job(DONE)
    assert done["status"]["succeeded"] == 2


async def test_lower_parallelism_deletes_pods(cluster: Cluster) -> None:
    await cluster.create_job(parallelism=3, completions=3, template=template(run=None))
    await cluster.job(active(3))
    await patch(cluster, {"spec": {"parallelism": 1}})
    shrunk = await cluster.job(
        lambda item: active(1)(item) and not item["status"].get("terminating")
    )
    assert "failed" not in shrunk["status"]


async def test_a_pod_deleted_by_somebody_else_is_replaced(cluster: Cluster) -> None:
    await cluster.create_job(template=template(run=None))
    await cluster.job(active(1))
    first = (await cluster.pods())[0]["metadata"]["name"]
    await cluster.client.delete(PODS, NAMESPACE, first)
    await cluster.pod(lambda item: item["metadata"]["name"] != first)
    await cluster.job(lambda item: active(1)(item) and item["status"].get("failed") == 1)


async def test_a_finished_job_is_deleted_after_its_time(cluster: Cluster) -> None:
    await cluster.create_job(ttlSecondsAfterFinished=0)
    await wait_until_deleted(cluster.client, BATCH_JOBS, NAMESPACE, "j", deadline_s=15)
    await cluster.no_pods()


async def test_deleting_a_job_deletes_its_pods(cluster: Cluster) -> None:
    await cluster.create_job(parallelism=2, template=template(run=None))
    await cluster.job(active(2))
    await cluster.client.delete(BATCH_JOBS, NAMESPACE, "j", propagation="Background")
    await cluster.no_pods()


async def test_a_job_of_another_controller_is_left_alone(cluster: Cluster) -> None:
    await cluster.create_job("other", managedBy="example.com/mine")
    await cluster.create_job("j")
    await cluster.job(DONE)
    other = await cluster.client.get(BATCH_JOBS, NAMESPACE, "other")
    assert not other.get("status")
    owners = {pod["metadata"]["labels"]["job-name"] for pod in await cluster.pods()}
    assert owners == {"j"}


async def test_a_restart_goes_on_where_it_was(bare: Cluster) -> None:
    async with standing_in(bare.client):
        await bare.create_job(parallelism=2, completions=3, template=template(run="0.3s"))
        await bare.job(lambda item: item.get("status", {}).get("ready") == 2)
    async with standing_in(bare.client, OPTIONS):
        done = await bare.job(DONE)
    assert done["status"]["succeeded"] == 3
    assert len(await bare.pods()) == 3


async def test_events_tell_what_happened(cluster: Cluster) -> None:
    await cluster.create_job()
    for reason in ("SuccessfulCreate", "Completed"):
        event = await wait_for(
            cluster.client,
            EVENTS,
            NAMESPACE,
            lambda item, wanted=reason: item["reason"] == wanted,
            deadline_s=15,
        )
        assert event["regarding"]["name"] == "j"
