"""Label and field selectors of list, watch and deletecollection requests.

The grammar is Kubernetes': `a=b,c!=d,e in (x,y),f notin (z),g,!h,n>3` for labels, `a=b,c!=d` for
fields. Selectors are parsed once a request and then tested against the values the store keeps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sluice.local.apiserver.status import bad_request


class Operator(StrEnum):
    """What a requirement asks of a value."""

    EXISTS = "exists"
    ABSENT = "!"
    IN = "in"
    NOT_IN = "notin"
    GREATER = ">"
    LESS = "<"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One term of a selector; all terms must hold."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def holds(self, values: Mapping[str, str]) -> bool:
        """Tell whether a label set meets the requirement."""
        value = values.get(self.key)
        match self.operator:
            case Operator.EXISTS:
                return value is not None
            case Operator.ABSENT:
                return value is None
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.GREATER | Operator.LESS:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        bound = int(next(iter(self.values)))
        try:
            number = int(value or "")
        except ValueError:
            return False
        return number > bound if self.operator is Operator.GREATER else number < bound


Selector = tuple[Requirement, ...]

_KEY = r"(?:[a-zA-Z0-9](?:[-a-zA-Z0-9.]*[a-zA-Z0-9])?/)?[a-zA-Z0-9](?:[-a-zA-Z0-9_.]*[a-zA-Z0-9])?"
_TERM = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<absent_key>{_KEY})"
    rf"|(?P<key>{_KEY})\s*"
    rf"(?:(?P<set>in|notin)\s*\((?P<values>[^()]*)\)"
    rf"|(?P<operator>==|=|!=|>|<)\s*(?P<value>[-a-zA-Z0-9_.]*))?)\s*(?:,|$)"
)
_FIELD_TERM = re.compile(r"((?:[^,\\]|\\.)*)(?:,|$)")
_ESCAPE = re.compile(r"\\(.)")


def parse_labels(text: str) -> Selector:
    """Parse a labelSelector.

    Raises:
        ApiError: 400 that quotes the selector.
    """
    if not text.strip():
        return ()
    terms: list[Requirement] = []
    position = 0
    while position < len(text):
        found = _TERM.match(text, position)
        if found is None or found.end() == position:
            raise bad_request(
                f"unable to parse requirement: found {text[position:]!r} in label selector "
                f"{text!r}; write e.g. a=b,c!=d,e in (x,y),!f"
            )
        terms.append(_requirement(found))
        position = found.end()
    return tuple(terms)


def _requirement(found: re.Match[str]) -> Requirement:
    if found["absent"]:
        return Requirement(key=found["absent_key"], operator=Operator.ABSENT)
    key = found["key"]
    if found["set"]:
        values = frozenset(value.strip() for value in found["values"].split(","))
        return Requirement(key=key, operator=Operator(found["set"]), values=values)
    match found["operator"]:
        case None:
            return Requirement(key=key, operator=Operator.EXISTS)
        case "=" | "==":
            return Requirement(key=key, operator=Operator.IN, values=frozenset((found["value"],)))
        case "!=":
            return Requirement(
                key=key, operator=Operator.NOT_IN, values=frozenset((found["value"],))
            )
        case sign:
            if not re.fullmatch(r"-?\d+", found["value"]):
                raise bad_request(f"for {sign!r} the value must be an integer: {found[0]!r}")
            return Requirement(
                key=key, operator=Operator(sign), values=frozenset((found["value"],))
            )


def parse_fields(text: str) -> Selector:
    """Parse a fieldSelector; a term's value may escape `,`, `=` and the backslash.

    Raises:
        ApiError: 400 that quotes the selector.
    """
    terms: list[Requirement] = []
    for found in _FIELD_TERM.finditer(text):
        term = found[1].strip()
        if not term:
            continue
        parts = re.match(r"([^=!]+)(==|!=|=)(.*)$", term)
        if parts is None:
            raise bad_request(f"invalid selector: {text!r}; can't understand {term!r}")
        operator = Operator.NOT_IN if parts[2] == "!=" else Operator.IN
        value = _ESCAPE.sub(r"\1", parts[3])
        terms.append(
            Requirement(key=parts[1].strip(), operator=operator, values=frozenset((value,)))
        )
    return tuple(terms)


def matches(selector: Selector, values: Mapping[str, str]) -> bool:
    """Tell whether all requirements hold."""
    return all(requirement.holds(values) for requirement in selector)
