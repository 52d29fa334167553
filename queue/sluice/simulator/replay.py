"""Replays recorded scheduling decisions through the real engine and compares.

A file is a JSON list (plain or gzipped) of ``{"scenario": …, "expected": […]}``: objects, steps of
submitted and finished Workloads, and what Kueue's scheduler decided at each step. Level 1 compares
admissions and preemptions, level 2 also which Workloads are pending and which are parked. Used by
``sluice replay`` and by the golden tests.
"""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sluice.api import times, wire
from sluice.api.conditions import ConditionType, EvictionReason
from sluice.api.errors import ConfigError, InvalidObject
from sluice.api.names import ClusterQueueName, WorkloadKey
from sluice.api.records import Condition, Kind, LocalQueue, Record, Workload
from sluice.engine.commands import Evict, ReserveQuota
from sluice.engine.engine import Engine
from sluice.engine.events import CommandApplied, Gone, Observed
from sluice.engine.options import (
    AdmissionFairSharing,
    EngineOptions,
    FairSharing,
    FairStrategy,
)

STEP_MS = 1000
_KINDS = {
    "topologies": "Topology",
    "nodes": "Node",
    "resourceFlavors": "ResourceFlavor",
    "namespaces": "Namespace",
    "cohorts": "Cohort",
    "clusterQueues": "ClusterQueue",
    "localQueues": "LocalQueue",
}

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first step at which the decisions differ.

    Attributes:
        step: Index of the step.
        level: 1 when admissions or preemptions differ, 2 when only the pending lists do.
        expected: What was recorded.
        decided: What the engine decided, in the same form.
        why: One line per Workload concerned, from the engine's `explain`.
    """

    step: int
    level: int
    expected: JsonObject
    decided: JsonObject
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one scenario: the first divergence at each level, None where all matched."""

    name: str
    level_1: Divergence | None
    level_2: Divergence | None


def load(path: Path) -> list[JsonObject]:
    """Return the scenarios of a file, plain or gzipped.

    Raises:
        ConfigError: The file cannot be read or is not such a list.
    """
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        scenarios = json.loads(data)
    except (OSError, ValueError, EOFError) as error:
        raise ConfigError(f"{path}: cannot read this as recorded scenarios: {error}") from error
    if not isinstance(scenarios, list) or not all(
        isinstance(s, dict) and "scenario" in s and "expected" in s for s in scenarios
    ):
        raise ConfigError(f'{path}: must be a JSON list of {{"scenario": …, "expected": […]}}')
    return scenarios


def options_of(scenario: JsonObject) -> EngineOptions:
    """Return the engine options that a scenario was recorded with."""
    fair = scenario.get("fairSharing")
    afs = scenario.get("admissionFairSharing")
    return EngineOptions(
        fair_sharing=None
        if fair is None
        else FairSharing(
            strategies=tuple(FairStrategy(s) for s in fair.get("preemptionStrategies") or ())
        ),
        admission_fair_sharing=None
        if afs is None
        else AdmissionFairSharing(
            half_life_ms=times.duration_ms(afs.get("usageHalfLifeTime") or "0"),
            sampling_interval_ms=times.duration_ms(afs.get("usageSamplingInterval") or "5m"),
            resource_weights=tuple(sorted((afs.get("resourceWeights") or {}).items())),
            is_frozen=True,
        ),
        wake_up_batch_ms=0,
    )


class Replay:
    """Runs one scenario; the clock moves on by a second after each step's cycle."""

    def __init__(self, scenario: JsonObject) -> None:
        self.now_ms = times.to_ms(scenario["now"])
        self.engine = Engine(options_of(scenario))
        self._queues = sorted(q["metadata"]["name"] for q in scenario.get("clusterQueues") or ())
        self._version = 0
        self._records: dict[WorkloadKey, Workload] = {}
        usage = scenario.get("localQueueUsage") or {}
        for field, kind in _KINDS.items():
            for raw in scenario.get(field) or ():
                record = wire.decode_as(kind, raw)
                if isinstance(record, LocalQueue) and record.key in usage:
                    consumed = tuple(sorted(usage[record.key].items()))
                    record = replace(record, consumed=consumed, consumed_updated_ms=self.now_ms)
                self._observe(record)
        for raw in scenario.get("workloads") or ():
            self._submit(raw)

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)

    def _observe(self, record: Record) -> None:
        self.engine.observe(Observed(at_ms=self.now_ms, record=record))

    def _submit(self, raw: JsonObject) -> None:
        record = replace(wire.workload(raw), resource_version=self._next_version())
        self._records[record.key] = record
        self._observe(record)

    def step(self, step: JsonObject) -> dict[str, Any]:
        """Run one step and return what was decided, in the form of an expected entry."""
        for key in step.get("finish") or ():
            self._finish(WorkloadKey(key))
        for raw in step.get("submit") or ():
            self._submit(raw)
        commands = self.engine.cycle(self.now_ms)
        admitted = [self._reserve(c) for c in commands if isinstance(c, ReserveQuota)]
        self.now_ms += STEP_MS
        evicted = [c for c in commands if isinstance(c, Evict)]
        for command in evicted:
            self._release(command)
        pending, inadmissible = self._lists()
        return {
            "admitted": sorted(admitted, key=lambda a: str(a["workload"])),
            "preempted": sorted(
                ({"workload": c.workload, "reason": str(c.preempted_reason)} for c in evicted),
                key=lambda p: p["workload"],
            ),
            "pending": pending,
            "inadmissible": inadmissible,
        }

    def _finish(self, key: WorkloadKey) -> None:
        record = self._records.get(key)
        if record is not None and record.is_true(ConditionType.QUOTA_RESERVED):
            del self._records[key]
            self.engine.observe(Gone(at_ms=self.now_ms, kind=Kind.WORKLOAD, key=key))

    def _change(
        self, record: Workload, conditions: Mapping[str, Condition], **fields: Any
    ) -> Workload:
        changed = replace(
            record,
            resource_version=self._next_version(),
            conditions={**record.conditions, **{str(k): c for k, c in conditions.items()}},
            **fields,
        )
        self._records[record.key] = changed
        return changed

    def _reserve(self, command: ReserveQuota) -> dict[str, Any]:
        """Write a reservation; no echo of it follows, as no controller ran at the recording."""
        held = Condition(status="True", reason="QuotaReserved", at_ms=self.now_ms)
        conditions: dict[str, Condition] = {ConditionType.QUOTA_RESERVED: held}
        if command.admitted:
            conditions[ConditionType.ADMITTED] = held
        record = self._records[command.workload]
        for kind in (ConditionType.EVICTED, ConditionType.PREEMPTED):
            if record.is_true(kind):
                conditions[kind] = Condition(
                    status="False", reason="QuotaReserved", at_ms=self.now_ms
                )
        written = self._change(record, conditions, admission=command.admission)
        self.engine.observe(
            CommandApplied(
                at_ms=self.now_ms, command=command, resource_version=written.resource_version
            )
        )
        return {"workload": command.workload, **wire.encode_admission(command.admission)}

    def _release(self, command: Evict) -> None:
        at_ms = self.now_ms
        conditions: dict[str, Condition] = {
            ConditionType.EVICTED: Condition(
                status="True", reason=EvictionReason.PREEMPTED, at_ms=at_ms
            ),
            ConditionType.PREEMPTED: Condition(
                status="True", reason=str(command.preempted_reason), at_ms=at_ms
            ),
            ConditionType.QUOTA_RESERVED: Condition(
                status="False", reason="PendingEvaluation", at_ms=at_ms
            ),
            ConditionType.ADMITTED: Condition(status="False", reason="NoReservation", at_ms=at_ms),
            ConditionType.REQUEUED: Condition(
                status="True", reason=EvictionReason.PREEMPTED, at_ms=at_ms
            ),
        }
        self._observe(self._change(self._records[command.workload], conditions, admission=None))

    def _lists(self) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        pending: dict[str, list[str]] = {}
        inadmissible: dict[str, list[str]] = {}
        for name in self._queues:
            entries = self.engine.pending(ClusterQueueName(name))
            for entry in sorted(entries, key=lambda e: e.workload):
                into = inadmissible if entry.inadmissible else pending
                into.setdefault(name, []).append(entry.workload)
        return pending, inadmissible


def check(recorded: JsonObject) -> Outcome:
    """Replay one recorded scenario and return where it diverges.

    Raises:
        ConfigError: The scenario lacks a field or has one of a wrong form.
    """
    try:
        return _check(recorded)
    except (KeyError, TypeError, ValueError, AttributeError, InvalidObject) as error:
        name = (recorded.get("scenario") or {}).get("name")
        raise ConfigError(f"scenario {name}: cannot be replayed: {error!r}") from error


def _check(recorded: JsonObject) -> Outcome:
    scenario = recorded["scenario"]
    replay = Replay(scenario)
    level_2: Divergence | None = None
    for at, (step, expected) in enumerate(
        zip(scenario["steps"], recorded["expected"], strict=True)
    ):
        decided = replay.step(step)
        if not _matches(expected, decided, ("admitted", "preempted")):
            divergence = _divergence(replay.engine, at, 1, expected, decided)
            return Outcome(name=scenario["name"], level_1=divergence, level_2=level_2 or divergence)
        if level_2 is None and not _matches(expected, decided, ("pending", "inadmissible")):
            level_2 = _divergence(replay.engine, at, 2, expected, decided)
    return Outcome(name=scenario["name"], level_1=None, level_2=level_2)


def _matches(expected: JsonObject, decided: JsonObject, fields: Sequence[str]) -> bool:
    return all(_normal(expected.get(field)) == _normal(decided[field]) for field in fields)


def _normal(value: Any) -> Any:
    """Return a list of admissions or preemptions by Workload, other values as they are."""
    if isinstance(value, list):
        return {entry["workload"]: entry for entry in value}
    return {queue: sorted(keys) for queue, keys in (value or {}).items() if keys}


def _divergence(
    engine: Engine, step: int, level: int, expected: JsonObject, decided: JsonObject
) -> Divergence:
    fields = ("admitted", "preempted") if level == 1 else ("pending", "inadmissible")
    keys: set[str] = set()
    for field in fields:
        before, after = _normal(expected.get(field)), _normal(decided[field])
        if level == 1:
            keys |= {k for k in {*before, *after} if before.get(k) != after.get(k)}
        else:
            for queue in {*before, *after}:
                keys |= set(before.get(queue, ())) ^ set(after.get(queue, ()))
    return Divergence(
        step=step,
        level=level,
        expected={field: expected.get(field) for field in fields},
        decided={field: decided[field] for field in fields},
        why=tuple(_why(engine, keys)),
    )


def _why(engine: Engine, keys: set[str]) -> Iterator[str]:
    for key in sorted(keys):
        answer = engine.explain(WorkloadKey(key))
        if answer is None:
            yield f"{key}: unknown"
            continue
        yield f"{key}: {answer.place}: {answer.reason}: {answer.message}"
        for line in answer.details:
            yield f"  {line}"
