"""Which nodes a pod may use: taints, node selector, node affinity.

Only trees whose lowest level is the hostname filter nodes. Source: docs/spec/algorithm.md 6.5.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.api.records import NodeSelectorTerm, PreferredTerm, Toleration
from sluice.engine.eligibility import untolerated
from sluice.engine.topology.tree import Tree, TreeNode

SELECTOR = "nodeSelector"
AFFINITY = "affinity"
DOMAIN = "topologyDomain"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFilter:
    """What a pod asks of its node; ``leaves``: those of the domain it must stay in, None for all.

    Attributes:
        tolerations: Of the pod, its checks' updates and the flavor.
        selector: Node selector of the pod and the updates.
        terms: Required affinity, None without.
    """

    tolerations: tuple[Toleration, ...] = ()
    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[NodeSelectorTerm, ...] | None = None
    leaves: range | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usable:
    """Which leaves a pod may use.

    Attributes:
        allowed: Per leaf; None when all may be used.
        excluded: Leaves it may not use, by reason as in messages.
    """

    allowed: tuple[bool, ...] | None
    excluded: Mapping[str, int]


def term_matches(term: NodeSelectorTerm, node: TreeNode) -> bool:
    """Tell whether a node satisfies a term; an empty term matches nothing, as in Kubernetes."""
    if not term.expressions and not term.fields:
        return False
    labels = dict(node.labels)
    for expression in term.expressions:
        if not expression.matches(labels):
            return False
    fields = {"metadata.name": node.name}
    return all(field.matches(fields) for field in term.fields)


def refusal(node: TreeNode, wanted: NodeFilter) -> str:
    """Return why a node won't do, in the words of messages; empty when it will."""
    if node.taints:
        taint = untolerated(node.taints, wanted.tolerations)
        if taint is not None:
            return f'taint "{taint}"'
    for key, value in wanted.selector:
        if node.labels.get(key) != value:
            return SELECTOR
    if wanted.terms is not None and not any(term_matches(t, node) for t in wanted.terms):
        return AFFINITY
    return ""


def usable_leaves(tree: Tree, wanted: NodeFilter) -> Usable:
    """Return the leaves that a pod may use, and why it may not use the others."""
    if not tree.hostname_lowest:
        return Usable(allowed=_within(tree, wanted.leaves), excluded={})
    allowed: list[bool] = []
    excluded: dict[str, int] = {}
    leaves = wanted.leaves
    is_plain = not wanted.selector and wanted.terms is None
    for leaf, nodes in enumerate(tree.nodes):
        if not nodes:
            allowed.append(False)
            continue
        reason = DOMAIN if leaves is not None and leaf not in leaves else ""
        if not reason:
            for node in nodes:
                reason = "" if is_plain and not node.taints else refusal(node, wanted)
                if not reason:
                    break
        allowed.append(not reason)
        if reason:
            excluded[reason] = excluded.get(reason, 0) + 1
    return Usable(allowed=tuple(allowed) if excluded else None, excluded=excluded)


def _within(tree: Tree, leaves: range | None) -> tuple[bool, ...] | None:
    return None if leaves is None else tuple(leaf in leaves for leaf in range(len(tree.nodes)))


def leaf_scores(tree: Tree, preferred: tuple[PreferredTerm, ...]) -> tuple[int, ...] | None:
    """Return per leaf the weights of the preferred terms its nodes match, None without any."""
    if not preferred or not tree.hostname_lowest:
        return None
    return tuple(
        max((_score(node, preferred) for node in nodes), default=0) for nodes in tree.nodes
    )


def _score(node: TreeNode, preferred: tuple[PreferredTerm, ...]) -> int:
    return sum(p.weight for p in preferred if term_matches(p.term, node))
