"""The demo's picture fits the terminal it is drawn for; its lines fit where there is none."""

import io
from typing import Any

import pytest
from rich.console import Console

from sluice.cli import demo_board
from sluice.cli.demo_board import Board
from sluice.cli.demo_jobs import JOBS, MISTAKE
from sluice.cli.demo_stage import Happening, Row, View, state_of

WHY = "ExceedsMaxQuota: couldn't assign flavors to pod set main: " + "too much of it, " * 20


def row(name: str, state: str, why: str = "", gpus: int = 4) -> Row:
    return Row(job=name, team="research", gpus=gpus, state=state, why=why)


def queue(name: str, used: int) -> dict[str, Any]:
    resources = [{"name": "nvidia.com/gpu", "total": str(used)}, {"name": "cpu", "total": "7"}]
    status = {"flavorsReservation": [{"name": "a100", "resources": resources}]}
    return {"metadata": {"name": name}, "status": {**status, "pendingWorkloads": 3}}


def view() -> View:
    rows = [row(job.name, "waiting", WHY) for job in (*JOBS, MISTAKE)]
    return View(
        elapsed_s=12.3,
        queues=[queue("research", 12), queue("products", 2)],
        rows=rows,
        happened=[Happening(at_s=float(i), row=one) for i, one in enumerate(rows * 3)],
    )


def drawn(width: int, height: int, *, encoding: str = "utf-8", is_done: bool = False) -> list[str]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict")
    console = Console(file=file, width=width, height=height, force_terminal=False)
    console.print(Board(console).picture(view(), is_done=is_done))
    file.flush()
    file.seek(0)
    return file.read().splitlines()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (140, 40), (100, 20), (60, 24), (300, 60)])
def test_the_picture_fits(width: int, height: int) -> None:
    lines = drawn(width, height)
    assert len(lines) < height
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for job in (*JOBS, MISTAKE):
        assert job.name in text
    assert "12.3 s" in text


def test_each_job_takes_one_line_whatever_its_reason() -> None:
    lines = drawn(80, 24)
    (first,) = [i for i, line in enumerate(lines) if line.startswith("pretrain")]
    names = [line.split()[0] for line in lines[first : first + len(JOBS) + 1]]
    assert names == [job.name for job in (*JOBS, MISTAKE)]


def test_where_there_is_room_the_latest_changes_are_shown() -> None:
    assert any(line.strip().startswith("20.0 s") for line in drawn(80, 24))
    assert not any(line.strip().startswith("20.0 s") for line in drawn(80, 18))
    assert not any(line.strip().startswith("20.0 s") for line in drawn(80, 24, is_done=True))


def test_bars_tell_own_borrowed_and_idle() -> None:
    text = "\n".join(drawn(80, 24))
    assert "████████▓▓▓▓" in text
    assert "██░░░░░░" in text


def test_a_terminal_without_blocks_gets_ascii() -> None:
    text = "\n".join(drawn(80, 24, encoding="ascii"))
    assert "########++++" in text


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_plain_line_is_cut(width: int) -> None:
    line = demo_board.line(Happening(at_s=3.25, row=row("sweep", "waiting", WHY)), width)
    assert len(line) <= width
    assert line.startswith("  3.2 s  research/sweep: waiting  (")
    assert line.endswith("...)")


def test_a_plain_line_that_fits_is_whole() -> None:
    happening = Happening(at_s=10.0, row=row("sweep", "running", "4 pods"))
    assert demo_board.line(happening, 120) == " 10.0 s  research/sweep: running  (4 pods)"
    quiet = Happening(at_s=10.0, row=row("sweep", "finished"))
    assert demo_board.line(quiet, 120) == " 10.0 s  research/sweep: finished"


def job(*, queue: str = "gpus", suspend: bool = True, **status: Any) -> dict[str, Any]:
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    return {"metadata": {"labels": labels}, "spec": {"suspend": suspend}, "status": status}


def workload(*held: tuple[str, str, str]) -> dict[str, Any]:
    conditions = [
        {"type": kind, "status": status, "reason": "Why", "message": message}
        for kind, status, message in held
    ]
    return {"status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("of_job", "of_workload", "expected"),
    [
        (job(), None, ("submitted", "")),
        (job(), workload(), ("submitted", "")),
        (job(queue=""), None, ("submitted", "")),
        (job(queue="", suspend=False, active=1), None,
         ("running", "no queue: as if Sluice did not exist")),
        (job(), workload(("QuotaReserved", "False", "no room")), ("waiting", "Why: no room")),
        (job(), workload(("Admitted", "True", "")), ("admitted", "pods are starting")),
        (job(active=3), workload(("Admitted", "True", "")), ("running", "3 pods")),
        (job(succeeded=3), workload(("Admitted", "True", "")), ("running", "pods have ended")),
        (job(active=3), workload(("Admitted", "False", ""), ("Evicted", "True", "for another")),
         ("evicted", "for another")),
        (job(conditions=[{"type": "Complete", "status": "True"}]), None, ("finished", "")),
        (job(conditions=[{"type": "Failed", "status": "True", "message": "m"}]), None,
         ("failed", "m")),
        (job(conditions=None), {"status": None}, ("submitted", "")),
    ],
)  # fmt: skip
def test_states(
    of_job: dict[str, Any], of_workload: dict[str, Any] | None, expected: tuple[str, str]
) -> None:
    assert state_of(of_job, of_workload) == expected
