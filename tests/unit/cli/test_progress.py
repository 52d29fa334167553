"""What is shown while something starts: a line a step, or a spinner that leaves nothing behind."""

import io

import pytest
from rich.console import Console

from sluice.cli.progress import Progress


def test_plain_steps_are_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(is_plain=True) as progress:
        progress("starting")
        progress("installing", "1 of 2")
        progress("installing", "2 of 2")
        progress("stopping")
    assert capsys.readouterr().out == "starting ...\ninstalling ...\nstopping ...\n"


def terminal(width: int = 80) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, width=width, height=24, force_terminal=True), file


def test_a_spinner_tells_step_detail_and_seconds() -> None:
    console, file = terminal()
    with Progress(is_plain=False, console=console) as progress:
        progress("installing", "1 of 2")
        progress("installing", "2 of 2 [x]")
    shown = file.getvalue()
    assert "installing (1 of 2)" in shown
    assert "installing (2 of 2 [x])" in shown, "what is told is no markup"
    assert "0.0 s" in shown
    assert shown.endswith("\x1b[?25h\r\x1b[1A\x1b[2K"), "the cursor is back, the line is gone"


def test_a_spinner_can_be_stopped_and_comes_back() -> None:
    console, file = terminal()
    with Progress(is_plain=False, console=console) as progress:
        progress("starting")
        progress.stop()
        before = len(file.getvalue())
        progress("stopping")
        assert "stopping" in file.getvalue()[before:]
        progress.stop()
        progress.stop()


def test_a_narrow_terminal_keeps_to_one_line() -> None:
    console, file = terminal(width=30)
    with Progress(is_plain=False, console=console) as progress:
        progress("a very long step indeed that does not fit")
    assert "\x1b[2A" not in file.getvalue(), "it would have to go up two lines to take it away"
