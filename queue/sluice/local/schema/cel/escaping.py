"""Names of properties as CEL identifiers: `namespace` becomes `__namespace__`, `a-b` `a__dash__b`.

Kubernetes' escaping (API reference of `x-kubernetes-validations`): keywords are wrapped, and
`__`, `.`, `-`, `/` are spelled out. Only properties of a schema are escaped, never keys of maps.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from sluice.local.schema.structural import Node

_KEYWORDS: Final = frozenset(
    {
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for",
        "function", "if", "import", "let", "loop", "package", "namespace", "return", "var",
        "void", "while",
    }
)  # fmt: skip
_SPELLED: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_PIECE = re.compile(r"__|[-./]")


@lru_cache(maxsize=4096)
def escape_name(name: str) -> str:
    """Return the CEL identifier of a property; names that need no escape stay as they are."""
    if name in _KEYWORDS:
        return f"__{name}__"
    return _PIECE.sub(lambda match: _SPELLED[match.group(0)], name)


def needs_escape(node: Node) -> bool:
    """Tell whether a property at or below the node is spelled otherwise in CEL."""
    if any(escape_name(name) != name for name in node.properties):
        return True
    below = [*node.properties.values(), node.additional, node.items]
    return any(child is not None and child.has_escapes for child in below)


def to_cel(value: Any, node: Node) -> Any:
    """Return the value with its properties under their CEL names; shares what does not change."""
    if not node.has_escapes:
        return value
    if isinstance(value, dict):
        out = {}
        for name, item in value.items():
            child = node.properties.get(name)
            if child is not None:
                out[escape_name(name)] = to_cel(item, child)
            else:
                out[name] = to_cel(item, node.additional) if node.additional else item
        return out
    if isinstance(value, list) and node.items is not None:
        return [to_cel(item, node.items) for item in value]
    return value
