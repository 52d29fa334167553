"""Kubernetes' syntax of names, label keys and label values, with the texts its API server uses.

The texts are part of what users see and scripts match, so they are those of Kubernetes 1.36
(apimachinery's validation). Pure. Called by the rules in ``sluice.api.validate`` and
``sluice.jobs.admission``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from sluice.api.errors import FieldError, forbidden, invalid, required, too_long
from sluice.api.validate.node import Node

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_NAME_PART: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_NAME_PART})?"
_HTTP_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_SUBDOMAIN_BYTES_MAX: Final = 253
_NAME_BYTES_MAX: Final = 63
_ANNOTATIONS_BYTES_MAX: Final = 256 * 1024

IMMUTABLE: Final = "field is immutable"
NEGATIVE: Final = "must be greater than or equal to 0"

_CHARACTERS: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)


def _shape(text: str, pattern: str, *examples: str) -> str:
    """Return a text with examples and pattern, in the (odd) spacing that Kubernetes gives them."""
    if not examples:
        return f"{text} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern}')"


_SUBDOMAIN_TEXT: Final = _shape(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    "'-' or '.', and must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_NAME_TEXT: Final = _shape(_CHARACTERS, _NAME_PART, "MyName", "my.name", "123-abc")
_VALUE_TEXT: Final = _shape(
    "a valid label must be an empty string or consist of alphanumeric characters, "
    "'-', '_' or '.', and must start and end with an alphanumeric character",
    _VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_name_part = re.compile(_NAME_PART).fullmatch
_is_value = re.compile(_VALUE).fullmatch
_is_http_path = re.compile(_HTTP_PATH).fullmatch


def _too_long(text: str, bytes_max: int) -> tuple[str, ...]:
    # Kubernetes counts bytes of UTF-8, not characters.
    return (f"must be no more than {bytes_max} bytes",) if len(text.encode()) > bytes_max else ()


@lru_cache(maxsize=4096)
def dns_subdomain(text: str) -> tuple[str, ...]:
    """Return what keeps a text from being a lower-case DNS subdomain (RFC 1123)."""
    found = _too_long(text, _SUBDOMAIN_BYTES_MAX)
    return found if _is_subdomain(text) else (*found, _SUBDOMAIN_TEXT)


@lru_cache(maxsize=4096)
def qualified_name(text: str) -> tuple[str, ...]:
    """Return what keeps a text from being a label key: ``[prefix/]name``."""
    prefix, separator, name = text.rpartition("/")
    if "/" in prefix:
        return (
            f"a valid label key {_NAME_TEXT} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')",
        )
    found: list[str] = []
    if separator and not prefix:
        found.append("prefix part must be non-empty")
    elif prefix:
        found += [f"prefix part {problem}" for problem in dns_subdomain(prefix)]
    if not name:
        found.append("name part must be non-empty")
    found += [f"name part {problem}" for problem in _too_long(name, _NAME_BYTES_MAX)]
    if not _is_name_part(name):
        found.append(f"name part {_NAME_TEXT}")
    return tuple(found)


@lru_cache(maxsize=4096)
def label_value(text: str) -> tuple[str, ...]:
    """Return what keeps a text from being a label value."""
    found = _too_long(text, _NAME_BYTES_MAX)
    return found if _is_value(text) else (*found, _VALUE_TEXT)


def check(
    path: str, text: str, rule: Callable[[str], tuple[str, ...]], *, shown: str | None = None
) -> list[FieldError]:
    """Return an Invalid error for each thing that a syntax rule has against a text.

    Args:
        path: Where the text stands.
        text: What is checked.
        rule: `dns_subdomain`, `qualified_name` or `label_value`.
        shown: What the error shows instead of the text.
    """
    return [invalid(path, text if shown is None else shown, problem) for problem in rule(text)]


def label_map(path: str, labels: Mapping[str, str]) -> list[FieldError]:
    """Return the errors of a map of labels, all at the path of the map as Kubernetes has them."""
    errors: list[FieldError] = []
    for name in sorted(labels):
        errors += check(path, name, qualified_name)
        errors += check(path, labels[name], label_value)
    return errors


def annotation_map(path: str, annotations: Mapping[str, str]) -> list[FieldError]:
    """Return the errors of a map of annotations: keys in any case, 256 KiB together."""
    errors: list[FieldError] = []
    for name in sorted(annotations):
        errors += check(path, name.lower(), qualified_name, shown=name)
    size_bytes = sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items())
    if size_bytes > _ANNOTATIONS_BYTES_MAX:
        errors.append(too_long(path, _ANNOTATIONS_BYTES_MAX))
    return errors


def domain_prefixed_path(path: str, text: str) -> list[FieldError]:
    """Return the errors of a ``domain/path`` such as Job's ``spec.managedBy``."""
    if not text:
        return [required(path)]
    host, separator, rest = text.partition("/")
    if not (host and separator and rest):
        return [invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = check(path, host, dns_subdomain)
    if not _is_http_path(rest):
        errors.append(invalid(path, rest, _shape("Invalid path", _HTTP_PATH)))
    return errors


def label_selector(selector: Node) -> list[FieldError]:
    """Return the errors of a metav1.LabelSelector."""
    errors = label_map(selector.at("matchLabels"), selector.strings("matchLabels"))
    for requirement in selector.items("matchExpressions"):
        operator, values = requirement.text("operator"), requirement.texts("values")
        if operator in ("In", "NotIn"):
            if not values:
                errors.append(
                    required(
                        requirement.at("values"),
                        "must be specified when `operator` is 'In' or 'NotIn'",
                    )
                )
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                errors.append(
                    forbidden(
                        requirement.at("values"),
                        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                    )
                )
        else:
            errors.append(
                invalid(requirement.at("operator"), operator, "not a valid selector operator")
            )
        errors += check(requirement.at("key"), requirement.text("key"), qualified_name)
        for i, value in enumerate(values):
            errors += check(f"{requirement.at('values')}[{i}]", value, label_value)
    return errors
