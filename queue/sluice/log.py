"""Structured logging: constant messages, variable fields, one JSON object a line.

Built on the standard library's logging so that libraries' records come out the same way. Pure
layers do not log. Usage::

    log = get_logger("sluice.controllers.jobs")
    log.bind(workload=key).info("quota reserved", fields={"cluster_queue": name})
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson

_TEXT_LENGTH_MAX = 256
_TAIL_LENGTH = 96


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON line: ts, level, logger, msg and the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without a newline."""
        entry: dict[str, Any] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        entry.update(getattr(record, "fields", {}))
        if record.exc_info:
            entry["exception"] = _traceback(self, record)
        return orjson.dumps(entry, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


class TextFormatter(logging.Formatter):
    """Formats a record for a person at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Return ``LEVEL logger: message key=value ...``."""
        fields = " ".join(f"{k}={v}" for k, v in getattr(record, "fields", {}).items())
        text = f"{record.levelname:7} {record.name}: {record.getMessage()} {fields}".rstrip()
        return f"{text}\n{_traceback(self, record)}" if record.exc_info else text


class Logger:
    """A logger with fields bound to it; immutable, so it can be shared."""

    __slots__ = ("_fields", "_logger")

    def __init__(self, logger: logging.Logger, fields: Mapping[str, object]) -> None:
        self._logger = logger
        self._fields = dict(fields)

    def bind(self, **fields: object) -> Logger:
        """Return a logger that adds these fields to every line."""
        return Logger(self._logger, {**self._fields, **fields})

    def _emit(
        self, level: int, message: str, fields: Mapping[str, object] | None, error: bool
    ) -> None:
        if self._logger.isEnabledFor(level):
            merged = {
                key: _short(value) for key, value in {**self._fields, **(fields or {})}.items()
            }
            self._logger.log(level, message, extra={"fields": merged}, exc_info=error)

    def debug(self, message: str, *, fields: Mapping[str, object] | None = None) -> None:
        """Log why something did not happen."""
        self._emit(logging.DEBUG, message, fields, False)

    def info(self, message: str, *, fields: Mapping[str, object] | None = None) -> None:
        """Log a change that a user sees."""
        self._emit(logging.INFO, message, fields, False)

    def warning(self, message: str, *, fields: Mapping[str, object] | None = None) -> None:
        """Log something that is tried again."""
        self._emit(logging.WARNING, message, fields, False)

    def error(self, message: str, *, fields: Mapping[str, object] | None = None) -> None:
        """Log something that a person must look at."""
        self._emit(logging.ERROR, message, fields, False)

    def exception(self, message: str, *, fields: Mapping[str, object] | None = None) -> None:
        """Log an error with the traceback of the exception being handled."""
        self._emit(logging.ERROR, message, fields, True)


def get_logger(name: str) -> Logger:
    """Return the logger of a module."""
    return Logger(logging.getLogger(name), {})


def configure(*, level: str = "info", text: bool = False, stream: TextIO | None = None) -> None:
    """Send every record of the process to one stream (standard error by default).

    Args:
        level: debug, info, warning or error.
        text: Lines for people instead of JSON.
        stream: Where to write.
    """
    handler = logging.StreamHandler(stream or _Stderr())
    handler.setFormatter(TextFormatter() if text else JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


class _Stderr:
    """Standard error as it is at each write: a live picture redirects it while it is shown."""

    def write(self, text: str) -> None:
        sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def cut(text: str) -> str:
    """Return a text short enough for a log line: beginning and end of a long one.

    Errors of an API server may hold a whole object; what is wrong with it is said at their end.
    """
    if len(text) <= _TEXT_LENGTH_MAX:
        return text
    return f"{text[: _TEXT_LENGTH_MAX - _TAIL_LENGTH - 5]} ... {text[-_TAIL_LENGTH:]}"


def _short(value: object) -> object:
    return cut(value) if isinstance(value, str) else value


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """Return the traceback of a record with its lines, exceptions' messages too, cut."""
    assert record.exc_info
    return "\n".join(map(cut, formatter.formatException(record.exc_info).splitlines()))
