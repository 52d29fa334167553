"""docs/spec/api.md 2.3.5 and 2.4: how Jobs may change, and the texts."""

from typing import Any

import pytest
from tests.support.lookups import StaticLookups
from tests.support.objects import DROP, Json, changed

from sluice.jobs.admission.batch import BatchJobAdmission
from sluice.jobs.admission.context import Context, Options

KX = "kueue.x-k8s.io"
QUEUE = f"metadata.labels.[{KX}/queue-name]"
QUEUE_PATH = f"metadata.labels[{KX}/queue-name]"
PRIORITY = f"metadata.labels.[{KX}/priority-class]"
PRIORITY_PATH = f"metadata.labels[{KX}/priority-class]"
MAX_EXEC = f"metadata.labels.[{KX}/max-exec-time-seconds]"
PREBUILT = f"metadata.labels.[{KX}/prebuilt-workload-name]"
ELASTIC = f"metadata.annotations.[{KX}/elastic-job]"
MIN = f"metadata.annotations.[{KX}/job-min-parallelism]"
SYNC = f"metadata.annotations.[{KX}/job-completions-equal-parallelism]"
STOPPING = f"metadata.annotations.[{KX}/stopping]"
SUSPENDED: Json = {
    "metadata": {"name": "sample", "labels": {f"{KX}/queue-name": "main"}, "annotations": {}},
    "spec": {
        "suspend": True,
        "parallelism": 4,
        "completions": 4,
        "completionMode": "Indexed",
        "template": {"spec": {"containers": []}},
    },
}
RUNNING = changed(SUSPENDED, {"spec.suspend": False})
SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of"
IMMUTABLE = "field is immutable"


async def texts(
    old: Json, new: Json, lookups: StaticLookups | None = None, gates: dict[str, bool] | None = None
) -> list[str]:
    context = Context(
        namespace="team-a",
        options=Options(gates=gates or {}),
        lookups=lookups or StaticLookups(),
    )
    return [str(error) for error in await BatchJobAdmission().on_update(old, new, context)]


@pytest.mark.parametrize(
    ("old", "changes", "expected"),
    [
        pytest.param(SUSPENDED, {}, [], id="nothing"),
        pytest.param(SUSPENDED, {QUEUE: "other"}, [], id="queue while suspended"),
        pytest.param(
            RUNNING,
            {QUEUE: "other"},
            [f'{QUEUE_PATH}: Invalid value: "other": {IMMUTABLE}'],
            id="queue while running",
        ),
        pytest.param(
            RUNNING, {QUEUE: "other", "spec.suspend": True}, [], id="queue while suspending"
        ),
        pytest.param(
            SUSPENDED,
            {QUEUE: "other", "spec.suspend": False},
            [f'{QUEUE_PATH}: Invalid value: "other": {IMMUTABLE}'],
            id="queue while unsuspending",
        ),
        pytest.param(
            SUSPENDED,
            {QUEUE: "other", STOPPING: "true"},
            [f'{QUEUE_PATH}: Invalid value: "other": {IMMUTABLE}'],
            id="queue while stopping",
        ),
        pytest.param(
            RUNNING,
            {QUEUE: DROP},
            [f'{QUEUE_PATH}: Invalid value: "": {IMMUTABLE}'],
            id="queue removed while running",
        ),
        pytest.param(SUSPENDED, {MAX_EXEC: "5"}, [], id="max exec while suspended"),
        pytest.param(
            SUSPENDED,
            {MAX_EXEC: "5", "spec.suspend": False},
            [f'metadata.labels[{KX}/max-exec-time-seconds]: Invalid value: "5": {IMMUTABLE}'],
            id="max exec while unsuspending",
        ),
        pytest.param(SUSPENDED, {PREBUILT: "wl"}, [], id="prebuilt while suspended"),
        pytest.param(
            RUNNING,
            {PREBUILT: "wl"},
            [f'metadata.labels[{KX}/prebuilt-workload-name]: Invalid value: "wl": {IMMUTABLE}'],
            id="prebuilt while running",
        ),
        pytest.param(
            changed(RUNNING, {PREBUILT: "wl"}),
            {PREBUILT: DROP},
            [f'metadata.labels[{KX}/prebuilt-workload-name]: Invalid value: "": {IMMUTABLE}'],
            id="prebuilt removed while running",
        ),
        pytest.param(
            changed(RUNNING, {ELASTIC: "true"}), {PREBUILT: "wl"}, [], id="prebuilt of an elastic"
        ),
        pytest.param(SUSPENDED, {PRIORITY: "high"}, [], id="priority added while suspended"),
        pytest.param(
            RUNNING,
            {PRIORITY: "high"},
            [
                f'{PRIORITY_PATH}: Invalid value: "high": '
                "must not be added while the job is not suspended"
            ],
            id="priority added while running",
        ),
        pytest.param(
            changed(RUNNING, {PRIORITY: "high"}), {PRIORITY: "low"}, [], id="priority changed"
        ),
        pytest.param(
            changed(SUSPENDED, {PRIORITY: "high"}),
            {PRIORITY: DROP},
            [f'{PRIORITY_PATH}: Invalid value: "": must not be removed'],
            id="priority removed",
        ),
        pytest.param(
            SUSPENDED,
            {ELASTIC: "true"},
            [f'metadata.annotations[{KX}/elastic-job]: Invalid value: "true": {IMMUTABLE}'],
            id="elastic on",
        ),
        pytest.param(SUSPENDED, {ELASTIC: "false"}, [], id="elastic still off"),
        pytest.param(
            SUSPENDED,
            {f"metadata.annotations.[{KX}/admission-gated-by]": "a.io/b"},
            [
                f"metadata.annotations[{KX}/admission-gated-by]: Forbidden: "
                "cannot add admission gate after creation"
            ],
            id="gate added",
        ),
        pytest.param(
            SUSPENDED,
            {MIN: "9"},
            [
                f"metadata.annotations[{KX}/job-min-parallelism]: Invalid value: 9: "
                "should be between 0 and 3"
            ],
            id="min parallelism changed",
        ),
        pytest.param(
            changed(SUSPENDED, {MIN: "9"}), {}, [], id="min parallelism wrong but unchanged"
        ),
        pytest.param(
            changed(RUNNING, {MIN: "2"}),
            {"spec.parallelism": 3},
            [
                f"spec.parallelism: Forbidden: may not change while a job with "
                f"{KX}/job-min-parallelism is not suspended"
            ],
            id="parallelism of a partly admitted job",
        ),
        pytest.param(
            changed(SUSPENDED, {MIN: "2"}),
            {"spec.parallelism": 3, "spec.suspend": False},
            [],
            id="parallelism on partial admission",
        ),
        pytest.param(RUNNING, {"spec.parallelism": 3}, [], id="parallelism"),
        pytest.param(
            RUNNING,
            {SYNC: "true"},
            [
                f"metadata.annotations[{KX}/job-completions-equal-parallelism]: Forbidden: "
                "may not change while the job is not suspended"
            ],
            id="sync while running",
        ),
        pytest.param(SUSPENDED, {SYNC: "true", "spec.suspend": False}, [], id="sync unsuspending"),
    ],
)
async def test_update(old: Json, changes: dict[str, Any], expected: list[str]) -> None:
    assert await texts(old, changed(old, changes)) == expected


async def test_a_queue_is_not_emptied_where_there_is_a_default_queue() -> None:
    emptied = changed(SUSPENDED, {QUEUE: DROP})
    assert await texts(SUSPENDED, emptied) == []
    lookups = StaticLookups(local_queues={"team-a/default"})
    assert await texts(SUSPENDED, emptied, lookups) == [
        f'{QUEUE_PATH}: Invalid value: "": '
        "queue-name must not be empty in namespace with default queue"
    ]


async def test_rules_of_creation_hold_on_update_too() -> None:
    (text,) = await texts(SUSPENDED, changed(SUSPENDED, {QUEUE: "No"}))
    assert text.startswith(f'{QUEUE_PATH}: Invalid value: "No": {SUBDOMAIN}')
    (text,) = await texts(
        SUSPENDED,
        changed(
            SUSPENDED, {f"spec.template.metadata.annotations.[{KX}/podset-required-topology]": "-"}
        ),
    )
    assert text.startswith(
        f'spec.template.metadata.annotations[{KX}/podset-required-topology]: Invalid value: "-": '
    )
