"""Go regular expressions (`pattern`), matched as an API server does.

Go's syntax (RE2) is close to Python's, but flags may stand in the middle, `$` means the very end,
and classes are ASCII. Patterns are translated; what cannot be goes to CEL's `matches`, which is
RE2 itself. Called by `validation`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from sluice.local.schema.cel.environment import matches as re2_matches

_FLAGS = re.compile(r"\(\?([imsU]+)\)")
_UNTRANSLATABLE = ("[[:", r"\p", r"\P", r"\C", r"\Q", "(?P<", "(?U", r"\x{", r"\pN")


@lru_cache(maxsize=1024)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Return the test whether a text contains a match of a Go pattern."""
    translated = translate(pattern)
    if translated is not None:
        try:
            search = re.compile(translated, re.ASCII).search
        except re.error:
            pass
        else:
            return lambda text: search(text) is not None
    return lambda text: re2_matches(pattern, text)


def translate(pattern: str) -> str | None:
    """Return the pattern in Python's syntax, or None when it has no simple counterpart."""
    if any(piece in pattern for piece in _UNTRANSLATABLE):
        return None
    out: list[str] = []
    # One entry for each open group: how many flag groups were opened inside it.
    opened = [0]
    index, in_class = 0, False
    while index < len(pattern):
        char = pattern[index]
        flags = _FLAGS.match(pattern, index)
        if char == "\\" and index + 1 < len(pattern):
            escaped = pattern[index : index + 2]
            out.append(r"\Z" if escaped == r"\z" and not in_class else escaped)
            index += 2
            continue
        if in_class:
            # A `]` right after `[` or `[^` stands for itself, in both syntaxes.
            in_class = not (char == "]" and out[-1] not in ("[", "[^"))
            out.append(char)
        elif char == "[":
            in_class = True
            negated = pattern.startswith("[^", index)
            out.append("[^" if negated else "[")
            index += 1 if negated else 0
        elif flags is not None:
            # A flag group holds to the end of the enclosing group.
            out.append(f"(?{flags.group(1)}:")
            opened[-1] += 1
            index = flags.end()
            continue
        elif char == "(":
            opened.append(0)
            out.append(char)
        elif char == ")":
            out.append(")" * (opened.pop() + 1) if len(opened) > 1 else char)
        elif char == "$":
            out.append(r"\Z")
        else:
            out.append(char)
        index += 1
    return "".join(out) + ")" * opened[0]
