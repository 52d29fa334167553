"""``sluice demo`` as a person runs it: start, watch, end or interrupt, nothing left."""

import asyncio
import os
import pty
import signal
import sys
import termios
from pathlib import Path

import pytest
from tests.support.commands import environment, left, line_with, rest_of, sluice

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PLAIN_WIDTH = 120
BOTH = [
    pytest.param((), id="embedded"),
    pytest.param(("--real",), id="real", marks=pytest.mark.real),
]


@pytest.mark.parametrize("flags", BOTH)
async def test_the_demo_ends_by_itself_with_a_summary(tmp_path: Path, flags: tuple[str]) -> None:
    async with sluice(tmp_path, "demo", "--plain", *flags) as process:
        output = await rest_of(process)
    assert process.returncode == 0, output
    summary = " ".join(output.partition("What happened:")[2].split())
    assert "gave its borrowed GPUs back" in summary
    assert "products/too-big (20 GPUs) waits, and says why: ExceedsMaxQuota" in summary
    assert 'admission webhook "vjob.kb.io" denied the request' in summary
    assert "(20) > maximum capacity (16)" in summary, "a reason is shown in full once"
    assert max(map(len, output.splitlines())) <= PLAIN_WIDTH
    for unwanted in ("Traceback", "WARNING", "ERROR"):
        assert unwanted not in output
    assert left(tmp_path) == set()


@pytest.mark.parametrize(
    ("moment", "flags"),
    [
        ("control plane", ()),
        ("installing", ()),
        ("finetune", ()),
        pytest.param("etcd", ("--real",), marks=pytest.mark.real),
        pytest.param("running", ("--real",), marks=pytest.mark.real),
    ],
)
async def test_the_demo_cleans_up_when_interrupted(
    tmp_path: Path, moment: str, flags: tuple[str]
) -> None:
    async with sluice(tmp_path, "demo", *flags) as process:
        await line_with(process, moment)
        process.send_signal(signal.SIGINT)
        output = await rest_of(process)
    assert process.returncode == 130, output
    for unwanted in ("Traceback", "WARNING", "ERROR"):
        assert unwanted not in output
    assert output.endswith("interrupted; everything is stopped and removed\n")
    assert left(tmp_path) == set()


async def test_at_a_terminal_the_demo_shows_progress_and_gives_the_cursor_back(
    tmp_path: Path,
) -> None:
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sluice.cli.main", "demo",
        stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        env=environment(tmp_path, TERM="xterm-256color"),
    )  # fmt: skip
    os.close(slave)
    reading = asyncio.create_task(asyncio.to_thread(read_until, master, "pretrain"))
    shown = await reading
    process.send_signal(signal.SIGINT)
    shown += await asyncio.to_thread(read_until, master, "interrupted")
    await process.wait()
    os.close(master)
    assert process.returncode == 130
    assert "installing CRDs and webhooks" in shown
    assert "QUEUE" in shown
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l"), "the cursor is back"
    assert left(tmp_path) == set()


def read_until(master: int, text: str) -> str:
    """Read a terminal until a text has come; the test's own timeout ends a wait in vain."""
    shown = ""
    while text not in shown:
        shown += os.read(master, 65536).decode(errors="replace")
    return shown
