"""String formats that API servers check, and those they let pass. Called by `validation`.

Only well-known formats are enforced; an unknown format is documentation, as in Kubernetes.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import ipaddress
import re
import urllib.parse
import uuid
from collections.abc import Callable
from typing import Final

_DATE_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:?\d{2})"
)
_HOSTNAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,253}[A-Za-z0-9])?\.?")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_MAC = re.compile(r"[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}")
_GO_DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+)")
_WORD_DURATION = re.compile(
    r"\s*\d+\s*(?:nanos?(?:econds?)?|micros?(?:econds?)?|millis?(?:econds?)?|s(?:ec(?:ond)?s?)?"
    r"|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?|w(?:eeks?)?)\s*"
)


def _is_date_time(text: str) -> bool:
    if not _DATE_TIME.fullmatch(text):
        return False
    try:
        datetime.datetime.fromisoformat(text[:19])
    except ValueError:
        return False
    return True


def _accepts(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def accepted(text: str) -> bool:
        try:
            parse(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return accepted


def _is_uri(text: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme or text.startswith("/"))


CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "date-time": _is_date_time,
    "datetime": _is_date_time,
    "date": _accepts(datetime.date.fromisoformat),
    "duration": lambda text: bool(_GO_DURATION.fullmatch(text) or _WORD_DURATION.fullmatch(text)),
    "byte": _accepts(lambda text: base64.b64decode(text, validate=True)),
    "ipv4": _accepts(ipaddress.IPv4Address),
    "ipv6": _accepts(ipaddress.IPv6Address),
    "cidr": _accepts(lambda text: ipaddress.ip_interface(text) if "/" in text else int("no mask")),
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "uuid": _accepts(uuid.UUID),
    "hostname": lambda text: _HOSTNAME.fullmatch(text) is not None,
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "uri": _is_uri,
}
INTEGER_BOUNDS: Final = {"int32": 2**31, "int64": 2**63}
"""Exclusive upper bound, and the negative of the inclusive lower one."""
