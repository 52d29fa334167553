"""What the server does by itself: CRDs become resources, ending namespaces are emptied.

A real cluster does this in controllers of the API server and the controller-manager. Here it is
one task that is woken by writes; each pass looks at the whole state, so a lost wake-up or a failed
pass loses nothing.
"""

from __future__ import annotations

import asyncio
import uuid

import orjson

from sluice.local.apiserver import crds
from sluice.local.apiserver.ages import parse_time
from sluice.local.apiserver.backend import SYSTEM_USER, Backend
from sluice.local.apiserver.calls import Call, Shape
from sluice.local.apiserver.deleting import DeleteOptions, delete_object
from sluice.local.apiserver.preparing import is_to_be_removed
from sluice.local.apiserver.remains import merge_conditions, remaining_conditions
from sluice.local.apiserver.resources import Resource
from sluice.local.apiserver.seams import Json
from sluice.local.apiserver.status import ApiError
from sluice.local.apiserver.store import Key, Stored
from sluice.log import get_logger

EVENT_LIFE_S = 3600.0
"""Events are forgotten after an hour, as a real API server does by default."""

SWEEP_S = 30.0
"""Seconds between passes that nothing asked for."""

RETRY_S = 0.5
"""Seconds until a deletion that failed (a webhook refused it) is tried again."""


class Lifecycle:
    """The server's own work on its objects.

    Args:
        backend: The state to work on.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._wake = asyncio.Event()
        self._specs: dict[str, bytes] = {}
        self._ending_namespaces: set[str] = set()
        self._ending_crds: dict[str, tuple[str, str]] = {}
        self._swept_s = backend.clock.monotonic_s()
        self._log = get_logger("sluice.local.apiserver")
        backend.listen(self._written)

    def _written(self, resource: Resource, state: Stored, is_gone: bool) -> None:
        if resource.collection == (crds.GROUP, crds.PLURAL):
            self._follow_crd(state, is_gone)
            self._wake.set()
        elif resource.collection == ("", "namespaces"):
            self._follow_namespace(state, is_gone)
            self._wake.set()
        elif is_gone and (
            state.key.namespace in self._ending_namespaces
            or resource.collection in self._ending_crds.values()
        ):
            self._wake.set()

    def _follow_namespace(self, state: Stored, is_gone: bool) -> None:
        name = state.key.name
        if is_gone:
            self._ending_namespaces.discard(name)
        elif state.load()["metadata"].get("deletionTimestamp"):
            self._ending_namespaces.add(name)
        else:
            self._add_default_account(name)

    def _follow_crd(self, state: Stored, is_gone: bool) -> None:
        crd = state.load()
        name = state.key.name
        spec = crd["spec"]
        if not is_gone and crds.CLEANUP_FINALIZER in (crd["metadata"].get("finalizers") or ()):
            self._ending_crds[name] = (spec["group"], spec["names"]["plural"])
        else:
            self._ending_crds.pop(name, None)
        if is_gone or not crds.is_established(crd):
            self._specs.pop(name, None)
            held = self._backend.registry.resource(spec["group"], spec["names"]["plural"])
            if held is not None and held.crd_name == name:
                self._backend.registry.uninstall(held.group, held.plural)
                self._backend.collection(held).wake()
            return
        ends = bool(crd["metadata"].get("deletionTimestamp"))
        seen = orjson.dumps([spec, ends])
        if self._specs.get(name) != seen:
            self._specs[name] = seen
            registry = self._backend.registry
            registry.install(crds.resource_of(crd, registry.compiler))

    def _add_default_account(self, namespace: str) -> None:
        """Give a namespace the ServiceAccount that its pods run as."""
        resource = self._backend.registry.resource("", "serviceaccounts")
        found = self._backend.namespace(namespace)
        if resource is None or found is None or found["metadata"].get("deletionTimestamp"):
            return
        if self._backend.find(resource, namespace, "default") is None:
            self._backend.put(
                resource, system_object(self._backend, resource, "default", namespace)
            )

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            self._wake.clear()
            is_done = await self._pass()
            try:
                async with asyncio.timeout(SWEEP_S if is_done else RETRY_S):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _pass(self) -> bool:
        is_done = True
        namespaces = self._backend.registry.resource("", "namespaces")
        definitions = self._backend.registry.resource(crds.GROUP, crds.PLURAL)
        if namespaces is None or definitions is None:
            raise RuntimeError("the built-in kinds lack Namespace or CustomResourceDefinition")
        for name in sorted(self._ending_namespaces):
            is_done &= await self._empty_namespace(namespaces, name)
        for name in sorted(self._ending_crds):
            is_done &= await self._empty_crd(definitions, name)
        if self._backend.clock.monotonic_s() - self._swept_s > SWEEP_S:
            self._swept_s = self._backend.clock.monotonic_s()
            self._forget_events()
        return is_done

    async def _empty_namespace(self, namespaces: Resource, name: str) -> bool:
        """Delete what is in an ending namespace; let it go when nothing is left."""
        failures: list[str] = []
        left: dict[str, list[Json]] = {}
        for resource in self._backend.registry:
            if resource.namespaced and not resource.is_virtual and resource.codec is None:
                for state in list(self._backend.collection(resource).select(name)):
                    failures += await self._delete(resource, state)
                held = [s.load() for s in self._backend.collection(resource).select(name)]
                if held:
                    left[f"{resource.plural}.{resource.group}"] = held
        if left:
            self._say_what_remains(namespaces, name, left, failures)
            return not failures
        state_now = self._backend.find(namespaces, "", name)
        if state_now is None:
            return True
        current = state_now.load()
        finalizers = (current.get("spec") or {}).get("finalizers") or []
        if "kubernetes" in finalizers:
            kept = [f for f in finalizers if f != "kubernetes"]
            current["spec"] = {"finalizers": kept} if kept else {}
            self._settle(namespaces, state_now.key, current)
        return True

    def _say_what_remains(
        self, namespaces: Resource, name: str, left: dict[str, list[Json]], failures: list[str]
    ) -> None:
        state = self._backend.find(namespaces, "", name)
        if state is None:
            return
        current = state.load()
        status = current.setdefault("status", {})
        old = status.get("conditions") or []
        wanted = remaining_conditions(left, failures)
        status["conditions"] = merge_conditions(old, wanted, self._backend.now())
        if status["conditions"] != old:
            self._backend.put(namespaces, current)

    async def _empty_crd(self, definitions: Resource, name: str) -> bool:
        """Delete the objects of an ending CRD; let it go when none is left."""
        resource = self._backend.registry.resource(*self._ending_crds[name])
        failures: list[str] = []
        if resource is not None and resource.crd_name == name:
            for state in list(self._backend.collection(resource).objects.values()):
                failures += await self._delete(resource, state)
            if self._backend.collection(resource).objects:
                return not failures
        state_now = self._backend.find(definitions, "", name)
        if state_now is not None:
            current = state_now.load()
            current["metadata"]["finalizers"] = [
                f for f in current["metadata"]["finalizers"] if f != crds.CLEANUP_FINALIZER
            ]
            self._settle(definitions, state_now.key, current)
        return True

    def _settle(self, resource: Resource, key: Key, obj: Json) -> None:
        if is_to_be_removed(obj):
            self._backend.remove(resource, key, obj)
        else:
            self._backend.put(resource, obj)

    async def _delete(self, resource: Resource, state: Stored) -> list[str]:
        """Delete one object as any client would; return why it has to be tried again."""
        if state.load()["metadata"].get("deletionTimestamp"):
            return []
        call = Call(
            method="DELETE",
            resource=resource,
            version=resource.versions[resource.storage_version],
            namespace=state.key.namespace,
            name=state.key.name,
            subresource="",
            query={},
            shape=Shape.WHOLE,
            content_type="",
            body=b"",
            user=SYSTEM_USER,
            user_agent="sluice-embedded",
        )
        try:
            await delete_object(self._backend, call, DeleteOptions(policy="Background"))
        except ApiError as error:
            if error.code != 404:
                self._log.warning(
                    "deletion of a namespace's or CRD's object failed; it is tried again",
                    fields={"object": f"{resource.plural} {state.key}", "error": error.message},
                )
                return [error.message]
        return []

    def _forget_events(self) -> None:
        events = self._backend.registry.resource("", "events")
        if events is None:
            return
        horizon_s = self._backend.now_s - EVENT_LIFE_S
        for state in list(self._backend.collection(events).objects.values()):
            made_s = parse_time(state.load()["metadata"]["creationTimestamp"])
            if made_s is not None and made_s < horizon_s:
                self._backend.remove(events, state.key)


def system_object(backend: Backend, resource: Resource, name: str, namespace: str = "") -> Json:
    """Return a new object of a built-in kind that the server makes itself."""
    metadata: Json = {"name": name, "uid": str(uuid.uuid4()), "creationTimestamp": backend.now()}
    if namespace:
        metadata["namespace"] = namespace
    if resource.behaviour.has_generation:
        metadata["generation"] = 1
    return {
        "apiVersion": resource.api_version(resource.storage_version),
        "kind": resource.kind,
        "metadata": metadata,
    }
