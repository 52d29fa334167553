"""Facts that the shell reports to the engine.

Every event carries ``at_ms``, the shell's clock when it learned the fact (epoch milliseconds; never
decreasing from event to event). Facts may be repeated and may arrive late: the engine orders those
of one object by uid and resourceVersion and ignores what is older than what it knows. Made by the
controllers, the simulator, replay and tests; read by `sluice.engine.engine`.
"""

from dataclasses import dataclass

from sluice.api.records import Kind, Record
from sluice.engine.commands import Command


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """An object exists and looks like this: at first sight, after a change, or again."""

    at_ms: int
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """An object no longer exists.

    Attributes:
        key: ``namespace/name``, or the name of a cluster-scoped object.
        resource_version: That of the deletion when known; a later fact that is older is ignored.
    """

    at_ms: int
    kind: Kind
    key: str
    resource_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandApplied:
    """A command was written; optional, but it lets the engine tell a stale echo from a new state.

    Attributes:
        resource_version: That of the object after the write.
    """

    at_ms: int
    command: Command
    resource_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFailed:
    """A command could not be written and will not be tried again by the shell.

    Attributes:
        message: Why, for `explain`.
    """

    at_ms: int
    command: Command
    message: str


Event = Observed | Gone | CommandApplied | CommandFailed
