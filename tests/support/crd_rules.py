"""CEL rules of the CRDs: a table of objects that each rule refuses, and of such as it takes.

The rows are in `crd_rules_queues` and `crd_rules_workload`. Run by the tests on the API server; a
unit test checks that no rule is without a row.
"""

import copy
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.crd_schemas import root_schema, walk
from tests.support.samples import VERSIONS

Object = dict[str, Any]
RuleKey = tuple[str, str, str, str]
"""(kind, version, path of the node, message)."""

BOTH = ("v1beta1", "v1beta2")
OLD = ("v1beta1",)
NEW = ("v1beta2",)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCase:
    """One rule, and changes to a base object that it refuses and takes.

    Changes are JSON merge patches: None removes, lists are replaced.

    Attributes:
        rule: Path of the node and message of the rule.
        kind: Kind of the object.
        base: The object before the change: its spec and status.
        refused: Changes that the rule refuses.
        taken: Changes that it takes.
        on: How the change is sent: a new object, a replaced one, or a replaced status.
        versions: The versions that have the rule.
    """

    kind: str
    rule: tuple[str, str]
    base: Object = field(default_factory=dict)
    refused: tuple[Object, ...]
    taken: tuple[Object, ...]
    on: Literal["create", "update", "status"] = "create"
    versions: tuple[str, ...] = BOTH

    def __str__(self) -> str:
        """Return a test id."""
        return f"{self.kind}{self.rule[0].rstrip('.')} {self.rule[1]}"


def all_rules() -> set[RuleKey]:
    """Return every CEL rule of every version of every kind."""
    return {
        (kind.kind, version.name, path, rule["message"])
        for kind, version in VERSIONS
        for path, node in walk(root_schema(kind.kind, version.name))
        for rule in node.get("x-kubernetes-validations", ())
    }


def merged(target: Any, patch: Any) -> Any:
    """Return a value with a JSON merge patch applied (RFC 7396)."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    out = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merged(out.get(key), value)
    return out


def base_object(case: RuleCase, version: str, name: str) -> Object:
    """Return the object before the change."""
    head = {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": case.kind,
        "metadata": {"name": name},
    }
    return {**head, **copy.deepcopy(case.base)}
