"""The table of paths: Kueue's, one for each kind and direction, and those of our own kinds.

Every path that Kueue serves is there whether or not its kind is enabled, because webhook
configurations that call it refuse the object when nothing answers. Source: docs/spec/api.md 2.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sluice.api import defaults, names
from sluice.api.validate import (
    cluster_queue,
    cohort,
    credit_policy,
    resource_flavor,
    workload,
)
from sluice.jobs.admission.context import Lookups, Options
from sluice.jobs.admission.kinds import ALL_KINDS
from sluice.jobs.admission.registry import select
from sluice_webhook.handlers import (
    Default,
    Handler,
    JobDefaults,
    JobValidation,
    KueueDefaults,
    KueueValidation,
    OnCreate,
    OnUpdate,
    allow,
)
from sluice_webhook.review import ReviewedKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One path: what it reviews and who decides."""

    path: str
    kind: ReviewedKind
    handler: Handler


@dataclass(frozen=True, slots=True, kw_only=True)
class _KueueKind:
    """The rules of one kind of group ``kueue.x-k8s.io``."""

    kind: str
    default: Default | None
    on_create: OnCreate
    on_update: OnUpdate


_KUEUE_KINDS: Final = (
    _KueueKind(
        kind="ClusterQueue",
        default=defaults.cluster_queue,
        on_create=cluster_queue.on_create,
        on_update=cluster_queue.on_update,
    ),
    _KueueKind(kind="Cohort", default=None, on_create=cohort.on_create, on_update=cohort.on_update),
    _KueueKind(
        kind="ResourceFlavor",
        default=defaults.resource_flavor,
        on_create=resource_flavor.on_create,
        on_update=resource_flavor.on_update,
    ),
    _KueueKind(
        kind="Workload",
        default=defaults.workload,
        on_create=workload.on_create,
        on_update=workload.on_update,
    ),
)


def path_of(direction: str, kind: ReviewedKind) -> str:
    """Return the path of a kind.

    Args:
        direction: ``mutate`` or ``validate``.
        kind: The reviewed kind; the empty core group leaves two dashes.
    """
    group = kind.group.replace(".", "-")
    return f"/{direction}-{group}-{kind.version}-{kind.kind.lower()}"


def routes(options: Options, lookups: Lookups) -> list[Route]:
    """Return every route.

    Args:
        options: Settings; they say which job kinds are enabled.
        lookups: What the rules of jobs look up.
    """
    result: list[Route] = []
    for rules in _KUEUE_KINDS:
        kind = ReviewedKind(group=names.GROUP, version=names.V1BETA2, kind=rules.kind)
        if rules.default is not None:
            mutate = KueueDefaults(default=rules.default, gates=options.gates)
            result.append(Route(path=path_of("mutate", kind), kind=kind, handler=mutate))
        validate = KueueValidation(
            on_create=rules.on_create, on_update=rules.on_update, gates=options.gates
        )
        result.append(Route(path=path_of("validate", kind), kind=kind, handler=validate))
    own = ReviewedKind(group=names.OWN_GROUP, version=credit_policy.VERSION, kind="CreditPolicy")
    validate = KueueValidation(
        on_create=credit_policy.on_create, on_update=credit_policy.on_update, gates=options.gates
    )
    result.append(Route(path=path_of("validate", own), kind=own, handler=validate))
    enabled = select(options.frameworks)
    for job_kind in ALL_KINDS:
        kind = ReviewedKind(group=job_kind.group, version=job_kind.version, kind=job_kind.kind)
        handlers: tuple[Handler, Handler] = (allow, allow)
        if admission := enabled.get(job_kind.framework):
            handlers = (
                JobDefaults(admission=admission, options=options, lookups=lookups),
                JobValidation(admission=admission, options=options, lookups=lookups),
            )
        for direction, handler in zip(("mutate", "validate"), handlers, strict=True):
            result.append(Route(path=path_of(direction, kind), kind=kind, handler=handler))
    return result
