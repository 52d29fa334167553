"""A scenario: queue manifests, where work comes from, and for how long.

The file is YAML; the command line reads it and the files it names and hands over plain data. Each
entry of ``sources`` is a mapping with one key that names its kind (`sluice.simulator.sources`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sluice.api import times
from sluice.api.errors import ConfigError

JsonObject = Mapping[str, Any]

FIELDS = (
    "name", "about", "start", "length", "period", "measure", "balances", "by", "seed",
    "configuration", "manifests", "sources",
)  # fmt: skip
_DEFAULT_START = "2026-01-05T00:00:00Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One scenario.

    Attributes:
        start_ms: Epoch milliseconds of the beginning.
        length_ms: Virtual time to play.
        period_ms: Length of a row of the report.
        measure: Resource that the report is about.
        balances_in_ms: Balances are shown in units times this time.
        by_local_queue: The report is by LocalQueue (namespace/name), not by ClusterQueue.
        seed: For sources with chance.
        configuration: Fields of Kueue's configuration file that change decisions.
        manifests: Objects as JSON.
        sources: One mapping per source of work.
    """

    name: str
    about: str
    start_ms: int
    length_ms: int
    period_ms: int
    measure: str
    balances_in_ms: int
    by_local_queue: bool
    seed: int
    configuration: JsonObject
    manifests: tuple[JsonObject, ...]
    sources: tuple[tuple[str, JsonObject], ...]


def duration(fields: JsonObject, name: str, where: str, default: str | None = None) -> int:
    """Return a field that holds a duration, in milliseconds, greater than 0.

    Raises:
        ConfigError: It is missing or has another form.
    """
    value = fields.get(name, default)
    if value is None:
        raise ConfigError(f'{where}.{name}: required, a duration such as "60s" or "1h"')
    try:
        result = times.duration_ms(str(value))
    except ValueError as error:
        raise ConfigError(f"{where}.{name}: {error}") from error
    if result <= 0:
        raise ConfigError(f"{where}.{name}: {value!r} must be greater than 0")
    return result


def whole(fields: JsonObject, name: str, where: str, default: int, least: int = 0) -> int:
    """Return a field that holds an integer.

    Raises:
        ConfigError: It is something else, or less than ``least``.
    """
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{where}.{name}: {value!r} must be a whole number of at least {least}")
    return value


def known(fields: JsonObject, names: Sequence[str], where: str) -> None:
    """Refuse fields of other names.

    Raises:
        ConfigError: There is one; lists what is known.
    """
    for name in fields:
        if name not in names:
            raise ConfigError(f"{where}.{name}: unknown field; known are {', '.join(names)}")


def mapping(value: object, where: str) -> JsonObject:
    """Return a value that must be a mapping.

    Raises:
        ConfigError: It is not.
    """
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: must be a mapping, not {type(value).__name__}")
    return value


def listed(value: object, where: str) -> Sequence[Any]:
    """Return a value that must be a list.

    Raises:
        ConfigError: It is not.
    """
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{where}: must be a list, not {type(value).__name__}")
    return value


class Files(Protocol):
    """Reads the files that a scenario names; paths are as written in it."""

    def manifests(self, path: str) -> Sequence[JsonObject]:
        """Return the objects of a manifest file."""
        ...

    def table(self, path: str) -> object:
        """Return the content of a JSON file."""
        ...


def parse(raw: object, files: Files, seed: int | None = None) -> Scenario:
    """Return the scenario of a file's content.

    Args:
        raw: Parsed YAML.
        files: Reads what the scenario names.
        seed: In place of the scenario's.

    Raises:
        ConfigError: Names the field and what it should be.
    """
    fields = mapping(raw, "scenario")
    known(fields, FIELDS, "scenario")
    try:
        start_ms = times.to_ms(_time_text(fields.get("start", _DEFAULT_START)))
    except ValueError as error:
        raise ConfigError(f"scenario.start: {error}") from error
    period_ms = duration(fields, "period", "scenario", "60s")
    balances = fields.get("balances", "hour")
    if balances not in ("hour", "period"):
        raise ConfigError(f'scenario.balances: {balances!r} must be "hour" or "period"')
    by = fields.get("by", "clusterQueue")
    if by not in ("clusterQueue", "localQueue"):
        raise ConfigError(f'scenario.by: {by!r} must be "clusterQueue" or "localQueue"')
    chosen = whole(fields, "seed", "scenario", 0) if seed is None else seed
    return Scenario(
        name=str(fields.get("name", "scenario")),
        about=str(fields.get("about", "")),
        start_ms=start_ms,
        length_ms=duration(fields, "length", "scenario"),
        period_ms=period_ms,
        measure=str(fields.get("measure", "nvidia.com/gpu")),
        balances_in_ms=period_ms if balances == "period" else 3_600_000,
        by_local_queue=by == "localQueue",
        seed=chosen,
        configuration=mapping(fields.get("configuration", {}), "scenario.configuration"),
        manifests=_manifests(fields, files),
        sources=_sources(fields, files, chosen),
    )


def _time_text(value: object) -> str:
    # YAML reads a time without quotes as one.
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _manifests(fields: JsonObject, files: Files) -> tuple[JsonObject, ...]:
    objects: list[JsonObject] = []
    for at, entry in enumerate(listed(fields.get("manifests", ()), "scenario.manifests")):
        where = f"scenario.manifests[{at}]"
        manifest = mapping(entry, where)
        if "path" in manifest:
            known(manifest, ("path",), where)
            objects.extend(files.manifests(str(manifest["path"])))
        elif "kind" in manifest:
            objects.append(manifest)
        else:
            raise ConfigError(f'{where}: must be an object with a kind, or {{"path": FILE}}')
    return tuple(objects)


def _sources(fields: JsonObject, files: Files, seed: int) -> tuple[tuple[str, JsonObject], ...]:
    sources = []
    for at, entry in enumerate(listed(fields.get("sources", ()), "scenario.sources")):
        where = f"scenario.sources[{at}]"
        source = mapping(entry, where)
        if len(source) != 1:
            raise ConfigError(f"{where}: must have one key, the kind of the source")
        kind, settings = next(iter(source.items()))
        where = f"{where}.{kind}"
        settings = mapping(settings, where)
        if "table" in settings and kind == "demand":
            table = mapping(files.table(str(settings["table"])), f"{where}.table")
            settings = _with_table(settings, table, seed, where)
        elif "table" in settings:
            rows = listed(files.table(str(settings["table"])), f"{where}.table")
            settings = {**{k: v for k, v in settings.items() if k != "table"}, "rows": rows}
        sources.append((str(kind), settings))
    return tuple(sources)


def _with_table(settings: JsonObject, table: JsonObject, seed: int, where: str) -> JsonObject:
    """Return a source's settings with the amounts of the table's run of a seed.

    A table has ``accounts`` (names) and ``runs``, each with a ``seed`` and ``demand``: per period a
    list of amounts in the order of the accounts.
    """
    names = listed(table.get("accounts"), f"{where}.table.accounts")
    runs = [mapping(r, f"{where}.table.runs") for r in listed(table.get("runs"), "runs")]
    run = next((r for r in runs if r.get("seed") == seed), None)
    if run is None:
        seeds = ", ".join(str(r.get("seed")) for r in runs)
        raise ConfigError(f"{where}.table: has no run of seed {seed}; there are {seeds}")
    rows = listed(run.get("demand"), f"{where}.table.demand")
    amounts = {str(name): [row[at] for row in rows] for at, name in enumerate(names)}
    return {**{k: v for k, v in settings.items() if k != "table"}, "amounts": amounts}
