"""Defaults that job kinds share: queue, priority class, suspension and managedBy, in this order.

Pure. Called by the modules of job kinds. Source: docs/spec/api.md 2.3.1 and 2.3.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from sluice.api import names
from sluice.api.edits import Edits
from sluice.api.validate.gates import Gate
from sluice.api.validate.node import Node, labels_of
from sluice.jobs.admission.ancestors import is_owner_managed, managed_ancestor
from sluice.jobs.admission.context import Context


async def default_queue(edits: Edits, context: Context) -> None:
    """Put a job without a queue into the LocalQueue ``default`` of its namespace, if there is one.

    Raises:
        LookupFailed: The LocalQueue or the namespace could not be read.
    """
    job = Node(edits.obj)
    if labels_of(job).get(names.QUEUE_LABEL) or is_owner_managed(job, context):
        return
    queue = names.DEFAULT_LOCAL_QUEUE
    if not await context.lookups.local_queue_exists(context.namespace, queue):
        return
    if await context.is_managed_namespace():
        edits.set(("metadata", "labels", names.QUEUE_LABEL), queue)


async def default_priority_class(edits: Edits, context: Context) -> None:
    """Give a job the WorkloadPriorityClass ``default``, if there is one; unqueued jobs too.

    Raises:
        LookupFailed: The class could not be read.
    """
    if not context.options.gate(Gate.WORKLOAD_PRIORITY_CLASS_DEFAULTING):
        return
    job = Node(edits.obj)
    if labels_of(job).get(names.PRIORITY_CLASS_LABEL) or is_owner_managed(job, context):
        return
    name = names.DEFAULT_PRIORITY_CLASS
    if await context.lookups.priority_class_exists(name):
        edits.set(("metadata", "labels", names.PRIORITY_CLASS_LABEL), name)


async def should_suspend(job: Node, context: Context) -> bool:
    """Tell whether a job has to wait for admission.

    Raises:
        LookupFailed: An owner or the namespace could not be read.
        Refused: The owners of the job make no sense.
    """
    is_deleted = job.map("metadata").has("deletionTimestamp")
    if is_deleted and context.options.gate(Gate.SKIP_ANCESTORS_OF_DELETED):
        return False
    if await managed_ancestor(job, context) is not None:
        return False
    if labels_of(job).get(names.QUEUE_LABEL):
        # The namespace is not asked here; the reconciler does (docs/spec/api.md 2.3.2).
        return True
    return context.options.manages_unqueued and await context.is_managed_namespace()


async def default_managed_by(
    edits: Edits, context: Context, *, path: Sequence[str], own_manager: str
) -> None:
    """Hand a job to MultiKueue when its ClusterQueue dispatches to other clusters.

    Args:
        edits: The job.
        context: Where it stands.
        path: Path of the kind's managedBy field.
        own_manager: The value that names the kind's own controller.

    Raises:
        LookupFailed: The queue or its checks could not be read.
    """
    if not context.options.gate(Gate.MULTIKUEUE):
        return
    job = Node(edits.obj)
    manager = job.map(*path[:-1]).text(path[-1])
    queue = labels_of(job).get(names.QUEUE_LABEL)
    if not queue or manager not in ("", own_manager):
        return
    controllers = await context.lookups.check_controllers(context.namespace, queue)
    if names.MULTIKUEUE_CONTROLLER in controllers:
        edits.set(path, names.MULTIKUEUE_CONTROLLER)
