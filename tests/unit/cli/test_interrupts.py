"""Signals end the work in order; only the third one leaves at once."""

import signal
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]

PROGRAM = """
import asyncio, sys
from sluice.cli.interrupts import run_interruptible

async def work():
    try:
        print("working", flush=True)
        await asyncio.sleep(60)
    finally:
        print("cleaning", flush=True)
        {cleaning}
        print("clean", flush=True)

try:
    run_interruptible(work())
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(130)
print("done", flush=True)
"""
QUICK = "await asyncio.sleep(0)"
LONG = "await asyncio.sleep(60)"


def run(cleaning: str, *signals: tuple[str, signal.Signals]) -> tuple[int, list[str]]:
    """Run the program, send each signal when a line has been seen; return code and lines."""
    command = [sys.executable, "-c", PROGRAM.format(cleaning=cleaning)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        lines = []
        for awaited, number in signals:
            while awaited not in (lines or [""])[-1]:
                lines.append(process.stdout.readline().decode().strip())
                assert lines[-1], lines
            process.send_signal(number)
        lines += [line.decode().strip() for line in process.stdout]
    return process.returncode, lines


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_cleans_up(number: signal.Signals) -> None:
    code, lines = run(QUICK, ("working", number))
    assert (code, lines) == (130, ["working", "cleaning", "clean", "interrupted"])


def test_a_second_signal_changes_nothing_but_says_so() -> None:
    cleaning = "await asyncio.sleep(1)"
    code, lines = run(cleaning, ("working", signal.SIGINT), ("cleaning", signal.SIGINT))
    assert code == 130
    assert lines[-2:] == ["clean", "interrupted"]
    assert "cleaning up, a moment" in lines[-3]


def test_a_third_signal_leaves_at_once() -> None:
    code, lines = run(
        LONG,
        ("working", signal.SIGINT),
        ("cleaning", signal.SIGINT),
        ("a moment", signal.SIGINT),
    )
    assert code == 130
    assert "clean" not in lines


def test_work_that_ends_by_itself_is_not_interrupted() -> None:
    program = PROGRAM.format(cleaning=QUICK).replace("asyncio.sleep(60)", "asyncio.sleep(0)")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stdout.split()[-1]) == (0, b"done")
