"""The search for an ancestor that is queued, so that its children are not queued again.

Pure. Called by defaulting, and by reconcilers with their own lookups.
Source: docs/spec/api.md 2.3.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sluice.api import names
from sluice.api.validate.node import Node, labels_of
from sluice.jobs.admission.context import Context, OwnerReference, Refused
from sluice.jobs.admission.kinds import PASS_THROUGH

_ANCESTORS_MAX: Final = 10


def controller(obj: Node) -> OwnerReference | None:
    """Return the controlling owner reference of an object, or None."""
    for reference in obj.map("metadata").items("ownerReferences"):
        if reference.boolean("controller"):
            return OwnerReference(
                api_version=reference.text("apiVersion"),
                kind=reference.text("kind"),
                name=reference.text("name"),
                uid=reference.text("uid"),
            )
    return None


def is_owner_managed(obj: Node, context: Context) -> bool:
    """Tell whether the controlling owner is of a kind that is queued itself."""
    reference = controller(obj)
    return reference is not None and reference.group_kind in context.options.managed_owners


async def managed_ancestor(obj: Node, context: Context) -> Mapping[str, Any] | None:
    """Return the topmost ancestor that is queued, or None.

    Raises:
        LookupFailed: An owner could not be read.
        Refused: An owner is missing, owners form a cycle, or there are more than ten.
    """
    known = context.options.known_owners
    found: Mapping[str, Any] | None = None
    seen: set[str] = set()
    here = obj
    while (reference := controller(here)) is not None and reference.group_kind in known:
        what = f"{reference.kind} {names.key(context.namespace, reference.name)}"
        if reference.uid in seen:
            raise Refused(f"the owner references form a cycle through {what}")
        if len(seen) >= _ANCESTORS_MAX:
            raise Refused(f"more than {_ANCESTORS_MAX} owners above the object, the last is {what}")
        seen.add(reference.uid)
        owner = await context.lookups.owner(context.namespace, reference)
        if owner is None:
            raise Refused(f"the owner {what} does not exist")
        here = Node(owner)
        if here.map("metadata").text("uid") != reference.uid:
            # Another object of that name: the reference is stale and says nothing any more.
            break
        if reference.group_kind not in PASS_THROUGH and (
            context.options.manages_unqueued or labels_of(here).get(names.QUEUE_LABEL)
        ):
            found = owner
    return found
