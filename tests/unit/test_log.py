"""Log lines: one JSON object each, and short whatever an API server answered."""

import io
import logging
from collections.abc import Iterator

import orjson
import pytest

from sluice import log as logs

LENGTH_MAX = 256
ANSWER = 'Job.batch "sweep" is invalid: spec.template: ' + "x" * 5000 + ": field is immutable"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Send what is logged to a buffer, and put the root logger back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    # Apart from the handlers that show failures, which must not be closed.
    root.handlers.clear()
    buffer = io.StringIO()
    logs.configure(level="info", stream=buffer)
    yield buffer
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_line_has_the_fields_bound_and_given(stream: io.StringIO) -> None:
    log = logs.get_logger("some.module").bind(workload="a/b")
    log.info("quota reserved", fields={"cluster_queue": "q"})
    log.debug("not shown")
    (line,) = map(orjson.loads, stream.getvalue().splitlines())
    line.pop("ts")
    assert line == {
        "level": "info",
        "logger": "some.module",
        "msg": "quota reserved",
        "workload": "a/b",
        "cluster_queue": "q",
    }


def test_a_long_error_keeps_its_beginning_and_end(stream: io.StringIO) -> None:
    logs.get_logger("m").warning("failed; trying again", fields={"error": ANSWER, "count": 1})
    error = orjson.loads(stream.getvalue())["error"]
    assert len(error) == LENGTH_MAX
    assert error.startswith('Job.batch "sweep" is invalid')
    assert error.endswith(": field is immutable")


@pytest.mark.parametrize("text", [False, True])
def test_a_traceback_does_not_repeat_an_answer(stream: io.StringIO, text: bool) -> None:
    logs.configure(level="info", stream=stream, text=text)
    try:
        raise ValueError(ANSWER)
    except ValueError:
        logs.get_logger("m").exception("part failed")
    shown = stream.getvalue()
    assert "Traceback" in shown
    assert "x" * LENGTH_MAX not in shown
    assert "field is immutable" in shown


@pytest.mark.parametrize("length", [0, LENGTH_MAX, LENGTH_MAX + 1])
def test_what_fits_is_left_as_it_is(length: int) -> None:
    text = "y" * length
    assert (logs.cut(text) == text) == (length <= LENGTH_MAX)
