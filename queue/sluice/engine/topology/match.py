"""Which nodes a pod may use: taints, node selector, node affinity.

Only trees whose lowest level is the hostname filter nodes. Source: docs/spec/algorithm.md 6.5.
"""

from collections.abc import Iterable, Mapping

from sluice.api.records import NodeSelectorTerm, PreferredTerm, Taint, Toleration
from sluice.engine.topology.tree import Tree

BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")


def tolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> bool:
    """Tell whether every taint that keeps pods away is tolerated."""
    given = tuple(tolerations)
    return all(
        any(toleration.tolerates(taint) for toleration in given)
        for taint in taints
        if taint.effect in BLOCKING_EFFECTS
    )


def term_matches(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    """Tell whether a node satisfies a term; an empty term matches nothing, as in Kubernetes."""
    if not term.expressions and not term.fields:
        return False
    given = dict(labels)
    fields = {"metadata.name": name}
    return all(e.matches(given) for e in term.expressions) and all(
        f.matches(fields) for f in term.fields
    )


def node_matches(
    name: str,
    labels: Mapping[str, str],
    selector: Mapping[str, str],
    terms: tuple[NodeSelectorTerm, ...] | None,
) -> bool:
    """Tell whether a node satisfies a node selector and the required affinity, all keys counted."""
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    return terms is None or any(term_matches(term, name, labels) for term in terms)


def allowed_leaves(
    tree: Tree,
    tolerations: tuple[Toleration, ...],
    selector: Mapping[str, str],
    terms: tuple[NodeSelectorTerm, ...] | None,
) -> tuple[bool, ...] | None:
    """Return per leaf whether the pod may use it, None when all may be used."""
    if not tree.hostname_lowest:
        return None
    allowed = tuple(
        any(
            tolerated(node.taints, tolerations)
            and node_matches(node.name, node.labels, selector, terms)
            for node in nodes
        )
        for nodes in tree.nodes
    )
    return None if all(allowed) else allowed


def leaf_scores(tree: Tree, preferred: tuple[PreferredTerm, ...]) -> tuple[int, ...] | None:
    """Return per leaf the weights of the preferred terms its nodes match, None without any."""
    if not preferred or not tree.hostname_lowest:
        return None
    return tuple(
        max(
            sum(p.weight for p in preferred if term_matches(p.term, node.name, node.labels))
            for node in nodes
        )
        for nodes in tree.nodes
    )
