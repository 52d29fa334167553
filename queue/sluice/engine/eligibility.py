"""Whether a pod may run on a flavor's nodes: taints, node selector, node affinity.

Only labels the flavor itself has are looked at: a flavor says nothing about the others. Source:
docs/spec/algorithm.md 3.3.4 c. Used when the flavor search of a pod shape is planned.
"""

from collections.abc import Iterable

from sluice.api.records import NodeSelectorTerm, PodTemplate, ResourceFlavor, Taint, Toleration

_BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")


def untolerated(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> Taint | None:
    """Return the first taint that keeps pods away and is not tolerated."""
    for taint in taints:
        if taint.effect in _BLOCKING_EFFECTS:
            for toleration in tolerations:
                if toleration.tolerates(taint):
                    break
            else:
                return taint
    return None


def refusal(template: PodTemplate, flavor: ResourceFlavor) -> str | None:
    """Return why pods of a template can't use a flavor, None when they can."""
    tolerations = (*template.tolerations, *flavor.tolerations)
    taint = untolerated(flavor.node_taints, tolerations)
    if taint is not None:
        return f"untolerated taint {taint} in flavor {flavor.name}"
    labels = dict(flavor.node_labels)
    if not _selector_matches(template, labels) or not _affinity_matches(template, labels):
        return f"flavor {flavor.name} doesn't match node affinity"
    return None


def _selector_matches(template: PodTemplate, labels: dict[str, str]) -> bool:
    return all(labels.get(key, value) == value for key, value in template.node_selector)


def _affinity_matches(template: PodTemplate, labels: dict[str, str]) -> bool:
    """Tell whether a required affinity term holds; a term left empty makes all of it void."""
    if template.affinity_terms is None:
        return True
    terms = []
    for term in template.affinity_terms:
        expressions = tuple(e for e in term.expressions if e.key in labels)
        if not expressions:
            return True
        terms.append(NodeSelectorTerm(expressions=expressions))
    return any(all(e.matches(labels) for e in term.expressions) for term in terms)
