"""Follows WorkloadPriorityClasses: a changed value reaches every Workload that names the class.

Admitted Workloads too (docs/spec/api.md 1.8). Finished ones are left alone: nobody asks them again.
"""

from __future__ import annotations

import asyncio
from typing import Final

from sluice.controllers.caches import BY_PRIORITY_CLASS, Caches, Json
from sluice.controllers.notes import WORKLOAD_CONTROLLER, Notes
from sluice.controllers.reconcile import DONE, Reconciler, Result
from sluice.controllers.write import Writer
from sluice.engine.lifecycle_facts import Note
from sluice.kube.informer import Handlers

_BATCH_SIZE: Final = 16


class PriorityClassController:
    """Reconciles WorkloadPriorityClasses by name."""

    def __init__(self, caches: Caches, writer: Writer, notes: Notes, *, workers: int) -> None:
        self._caches = caches
        self._writer = writer
        self._notes = notes
        self.reconciler = Reconciler(
            "workload-priority-class",
            self._reconcile,
            workers=workers,
            all_keys=caches.workload_classes.store.all_keys,
        )

    def attach(self) -> None:
        """Look at a class when it appears or changes."""
        add = self.reconciler.add
        self._caches.workload_classes.add_handlers(
            Handlers(added=lambda key, _: add(key), updated=lambda key, _, __: add(key))
        )

    async def _reconcile(self, name: str) -> Result:
        known = self._caches.workload_classes.store.get(name)
        if known is None:
            return DONE
        outdated = [
            key
            for key in self._caches.workloads.store.keys_by(BY_PRIORITY_CLASS, name)
            if self._is_outdated(key, known.value)
        ]
        for start in range(0, len(outdated), _BATCH_SIZE):
            async with asyncio.TaskGroup() as group:
                for key in outdated[start : start + _BATCH_SIZE]:
                    group.create_task(self._update(key, known.value), name=f"priority-{key}")
        return DONE

    def _is_outdated(self, key: str, value: int) -> bool:
        cached = self._caches.workloads.store.get(key)
        return cached is not None and not cached.is_finished and cached.record.priority != value

    async def _update(self, key: str, value: int) -> None:
        raw: Json | None = self._caches.workloads.store.raw(key)
        if raw is None:
            return
        desired = {**raw, "spec": {**raw["spec"], "priority": value}}
        raw = await self._writer.update(self._caches.workloads, raw, desired)
        note = Note(reason="UpdatedWorkload", message=f"Updated priority to {value}")
        self._notes.record(raw, WORKLOAD_CONTROLLER, note)
