"""Label selectors (metav1.LabelSelector): which labels they take. Pure; anyone may call it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class _Requirement:
    """One expression of a selector."""

    key: str
    operator: str
    values: frozenset[str]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels meet it; NotIn is met without the label, as Kubernetes has it."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
            case _:
                return False


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A compiled selector. Without requirements it takes everything; `NOTHING` takes nothing."""

    requirements: tuple[_Requirement, ...]
    takes_none: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether a set of labels meets every requirement."""
        return not self.takes_none and all(r.matches(labels) for r in self.requirements)


EVERYTHING = LabelSelector(())
NOTHING = LabelSelector((), takes_none=True)


def compile_selector(raw: Mapping[str, Any] | None) -> LabelSelector:
    """Return the compiled form of a selector's JSON; None takes nothing, ``{}`` everything.

    An unknown operator takes nothing: validation has refused it before it comes here.
    """
    if raw is None:
        return NOTHING
    equal = [
        _Requirement(key=key, operator="In", values=frozenset({value}))
        for key, value in sorted((raw.get("matchLabels") or {}).items())
    ]
    expressions = [
        _Requirement(
            key=expression.get("key", ""),
            operator=expression.get("operator", ""),
            values=frozenset(expression.get("values") or ()),
        )
        for expression in raw.get("matchExpressions") or ()
    ]
    return LabelSelector((*equal, *expressions))
