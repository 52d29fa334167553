"""From a request's path and method to the handler, and the rules about which verbs exist."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import orjson

from sluice.local.apiserver import deleting, discovery, reading, subresources, writing
from sluice.local.apiserver.backend import Backend
from sluice.local.apiserver.calls import Answer, Call, Target, is_true, parse_accept, parse_path
from sluice.local.apiserver.credentials import Credentials
from sluice.local.apiserver.descriptions import describe
from sluice.local.apiserver.openapi import V2_TYPE, Documents, version_two
from sluice.local.apiserver.resources import Resource, Version
from sluice.local.apiserver.seams import UserInfo
from sluice.local.apiserver.status import method_not_allowed, no_such_resource
from sluice.local.apiserver.watching import Watch, check_watchable

_JSON = "application/json"
HEALTH_PATHS = ("/healthz", "/readyz", "/livez")


class Router:
    """Chooses handlers; knows no HTTP library.

    Args:
        backend: The server's state.
        credentials: For token requests and reviews.
    """

    def __init__(self, backend: Backend, credentials: Credentials) -> None:
        self._backend = backend
        self._credentials = credentials
        self._documents = Documents(backend.registry, describe)

    async def general(self, path: str, accept: str, address: str) -> tuple[bytes, str] | None:
        """Return body and content type of a path that is about no resource, or None.

        Raises:
            ApiError: 404 for a group, version or document that isn't there.
        """
        registry = self._backend.registry
        if path in HEALTH_PATHS or path.startswith(tuple(p + "/" for p in HEALTH_PATHS)):
            return b"ok", "text/plain"
        parts = path.strip("/").split("/")
        body: object
        if path == "/version":
            body = discovery.version_info()
        elif parts[0] == "openapi":
            return await self._openapi(path, accept)
        elif parts in (["api"], ["apis"]):
            if "as=APIGroupDiscoveryList" in accept and "v=v2;" in accept.replace("v=v2,", "v=v2;"):
                body = discovery.aggregated(registry, is_core=parts == ["api"])
                return orjson.dumps(body), discovery.AGGREGATED_TYPE
            is_core = parts == ["api"]
            body = discovery.core_versions(address) if is_core else discovery.groups(registry)
        elif parts[0] == "apis" and len(parts) == 2:
            body = discovery.group(registry, parts[1])
        elif parts[0] == "apis" and len(parts) == 3:
            body = discovery.resources(registry, parts[1], parts[2])
        elif parts[0] == "api" and len(parts) == 2:
            body = discovery.resources(registry, "", parts[1])
        elif path == "/":
            body = {"paths": ["/api", "/apis", *HEALTH_PATHS, "/openapi/v3", "/version"]}
        else:
            return None
        return orjson.dumps(body), _JSON

    async def _openapi(self, path: str, accept: str) -> tuple[bytes, str]:
        if path == "/openapi/v2":
            is_protobuf = "protobuf" in accept
            kind = V2_TYPE if is_protobuf else _JSON
            return version_two(is_protobuf=is_protobuf), kind
        if path == "/openapi/v3":
            return orjson.dumps(self._documents.index()), _JSON
        root = path.removeprefix("/openapi/v3/")
        if root == path or not root:
            raise no_such_resource()
        # The first document of a group takes a while: descriptions are imported.
        return await asyncio.to_thread(self._documents.document, root), _JSON

    def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
        user: UserInfo,
    ) -> Call:
        """Return the call that a request makes.

        Raises:
            ApiError: 404 for a path that leads nowhere, 405 for a verb that isn't there, 406.
        """
        target = parse_path(path)
        found = (
            self._backend.registry.find(target.group, target.version, target.plural)
            if target is not None
            else None
        )
        if target is None or found is None:
            raise no_such_resource()
        resource, version = found
        _check_scope(method, target, resource, version)
        warnings = [version.deprecation_warning] if version.deprecation_warning else []
        return Call(
            method=method,
            resource=resource,
            version=version,
            namespace=target.namespace,
            name=target.name,
            subresource=target.subresource,
            query=query,
            shape=parse_accept(headers.get("Accept", "")),
            content_type=headers.get("Content-Type", "").split(";")[0].strip(),
            body=body,
            user=user,
            user_agent=headers.get("User-Agent", ""),
            warnings=warnings,
        )

    async def handle(self, call: Call) -> Answer | Watch:
        """Carry out a call."""
        if call.subresource and call.subresource != "status":
            method, handler = subresources.SUBRESOURCES[call.resource.plural, call.subresource]
            if call.method != method:
                raise method_not_allowed(
                    "the server does not allow this method on the requested resource"
                )
            return await handler(self._backend, self._credentials, call)
        if call.resource.is_virtual:
            return await subresources.review(self._backend, self._credentials, call)
        if call.method in _OPTIONS:
            call.check_options(_OPTIONS[call.method])
        match call.method:
            case "GET":
                return await self._read(call)
            case "POST":
                return await writing.create(self._backend, call)
            case "PUT":
                return await writing.update(self._backend, call)
            case "PATCH":
                return await writing.patch(self._backend, call)
            case _:
                if call.name:
                    return await deleting.delete(self._backend, call)
                return await deleting.delete_collection(self._backend, call)

    async def _read(self, call: Call) -> Answer | Watch:
        if is_true(call.query.get("watch")):
            check_watchable(call)
            return Watch(self._backend, call)
        if call.name:
            return await reading.get_object(self._backend, call)
        return await reading.list_objects(self._backend, call)


_OF_CONTAINERS = ("attach", "exec", "log", "portforward", "proxy")


def _why_not(resource: Resource, subresource: str) -> str:
    """Return why a well-known subresource is missing."""
    if (resource.group, resource.plural) == ("", "pods") and subresource in _OF_CONTAINERS:
        return f"no pods/{subresource} here, the Pods of this control plane run nothing"
    return ""


_OPTIONS = {
    "POST": "CreateOptions",
    "PUT": "UpdateOptions",
    "PATCH": "PatchOptions",
    "DELETE": "DeleteOptions",
}
_METHODS_OF_COLLECTION = ("GET", "POST", "DELETE")
_METHODS_OF_OBJECT = ("GET", "PUT", "PATCH", "DELETE")
_METHODS_OF_STATUS = ("GET", "PUT", "PATCH")


def _check_scope(method: str, target: Target, resource: Resource, version: Version) -> None:
    """Check that a path has the parts that its resource and method need."""
    if bool(target.namespace) and not resource.namespaced:
        raise no_such_resource()
    across = resource.namespaced and not target.namespace
    if across and target.name:
        raise no_such_resource()
    if target.subresource:
        known = target.subresource in resource.subresources
        if not known and not (target.subresource == "status" and version.has_status):
            raise no_such_resource(_why_not(resource, target.subresource))
        if known:
            return
        allowed: tuple[str, ...] = _METHODS_OF_STATUS
    elif target.name:
        allowed = _METHODS_OF_OBJECT
    elif across:
        allowed = ("GET",)
    else:
        allowed = _METHODS_OF_COLLECTION
    if resource.is_virtual:
        allowed = ("POST",)
    if method not in allowed:
        raise method_not_allowed("the server does not allow this method on the requested resource")
