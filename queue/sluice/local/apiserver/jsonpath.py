"""The JSONPath of a CRD's printer columns and selectable fields.

Kubernetes allows a simple subset there: object keys, list indexes, `[*]`, and filters such as
`[?(@.type=="Ready")]`; a column shows the first match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Step = Callable[[Any], Iterator[Any]]

_TOKEN = re.compile(
    r"\.(?P<key>(?:[^.\[\]\\]|\\.)+)"
    r"|\[(?P<index>-?\d+)\]"
    r"|(?P<all>\[\*\]|\.\*)"
    r"|\[\?\(@\.(?P<field>(?:[^=!<>\s\\]|\\.)+)\s*(?P<sign>==|!=)\s*"
    r"(?:'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|(?P<bare>[^)\s]+))\)\]"
    r"|\['(?P<quoted>(?:[^'\\]|\\.)*)'\]"
)
_ESCAPE = re.compile(r"\\(.)")


def _key(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, Mapping) and name in value:
            yield value[name]

    return step


def _index(position: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= position < len(value):
            yield value[position]

    return step


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, Mapping):
        yield from value.values()


def _filter(path: list[str], wanted: str, *, equal: bool) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for entry in value if isinstance(value, list) else ():
            found: Any = entry
            for part in path:
                found = found.get(part) if isinstance(found, Mapping) else None
            text = str(found).lower() if isinstance(found, bool) else str(found)
            if found is not None and (text == wanted) is equal:
                yield entry

    return step


def compile_path(text: str) -> Callable[[Mapping[str, Any]], Any]:
    """Return a function that takes the first match of a path out of an object, or None.

    Args:
        text: e.g. `.status.conditions[?(@.type=='Admitted')].status`.

    Raises:
        ValueError: The path is outside the subset above.
    """
    source = text.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    steps: list[Step] = []
    position = 0
    while position < len(source):
        found = _TOKEN.match(source, position)
        if found is None:
            raise ValueError(f"JSONPath {text!r} is not understood from {source[position:]!r} on")
        steps.append(_step(found))
        position = found.end()

    def extract(obj: Mapping[str, Any]) -> Any:
        values: list[Any] = [obj]
        for step in steps:
            values = [inner for value in values for inner in step(value)]
        return values[0] if values else None

    return extract


def _step(found: re.Match[str]) -> Step:
    if found["key"] is not None:
        return _key(_ESCAPE.sub(r"\1", found["key"]))
    if found["quoted"] is not None:
        return _key(_ESCAPE.sub(r"\1", found["quoted"]))
    if found["index"] is not None:
        return _index(int(found["index"]))
    if found["all"] is not None:
        return _every
    wanted = found["single"] if found["single"] is not None else found["double"]
    if wanted is None:
        wanted = found["bare"]
    path = [_ESCAPE.sub(r"\1", part) for part in re.split(r"(?<!\\)\.", found["field"])]
    return _filter(path, wanted, equal=found["sign"] == "==")
