"""The topology request of a pod set, from the annotations of its pod template.

Pure. Called by integrations. Source: docs/spec/api.md 2.3.7; what annotations are refused is 2.3.6
and belongs to the webhook: what cannot be read here is left out.
"""

from __future__ import annotations

import json
from typing import Final

from sluice.api import names
from sluice.jobs.integration import Json

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def parse_bool(text: str) -> bool | None:
    """Return the truth value of a Go boolean literal, or None when it is none."""
    if text in _TRUE:
        return True
    return False if text in _FALSE else None


def topology_request(
    template: Json,
    *,
    pod_index_label: str = "",
    sub_group_index_label: str = "",
    sub_group_count: int | None = None,
) -> Json | None:
    """Return the ``topologyRequest`` of a pod set, or None when nothing asks for one.

    Args:
        template: PodTemplateSpec with the annotations.
        pod_index_label: Label that numbers the pods, empty for none.
        sub_group_index_label: Label that numbers groups of pods, empty for none.
        sub_group_count: Number of such groups, or None.
    """
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    request: Json = {}
    if required := annotations.get(names.REQUIRED_TOPOLOGY):
        request["required"] = required
    elif preferred := annotations.get(names.PREFERRED_TOPOLOGY):
        request["preferred"] = preferred
    else:
        unconstrained = parse_bool(annotations.get(names.UNCONSTRAINED_TOPOLOGY, ""))
        if unconstrained is not None:
            request["unconstrained"] = unconstrained
    slices = _slices(annotations)
    indexed = bool(pod_index_label or sub_group_index_label) or sub_group_count is not None
    if not request and not slices and not indexed:
        return None
    group = annotations.get(names.POD_SET_GROUP)
    if group and ("required" in request or "preferred" in request):
        request["podSetGroupName"] = group
    request.update(slices)
    if pod_index_label:
        request["podIndexLabel"] = pod_index_label
    if sub_group_index_label:
        request["subGroupIndexLabel"] = sub_group_index_label
    if sub_group_count is not None:
        request["subGroupCount"] = sub_group_count
    return request


def _slices(annotations: Json) -> Json:
    topology = annotations.get(names.SLICE_REQUIRED_TOPOLOGY)
    size = annotations.get(names.SLICE_SIZE, "")
    if topology and size.isdecimal():
        return {"podSetSliceRequiredTopology": topology, "podSetSliceSize": int(size)}
    if text := annotations.get(names.SLICE_CONSTRAINTS):
        try:
            constraints = json.loads(text)
        except ValueError:
            return {}
        # The JSON key really starts in lower case (docs/spec/api.md 1.4).
        return {"podsetSliceRequiredTopologyConstraints": constraints}
    return {}
