"""Webhooks of the stored configurations, and which requests they are meant for.

Parsed once for each change of a configuration. Called by `dispatcher`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sluice.local.admission.selectors import selects
from sluice.local.apiserver.seams import AdmissionRequest, Gvk, Gvr, JsonView
from sluice.local.schema.cel.environment import Program
from sluice.local.schema.matching import compile_condition

_EXEMPT_GROUP: Final = "admissionregistration.k8s.io"
"""Webhook configurations are never sent to webhooks: nobody could repair a broken one."""
_TIMEOUT_S: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Operations and resources that a webhook wants to see."""

    operations: tuple[str, ...]
    groups: tuple[str, ...]
    versions: tuple[str, ...]
    resources: tuple[str, ...]
    scope: str

    def matches(self, request: AdmissionRequest, resource: Gvr) -> bool:
        """Tell whether the rule covers a request, seen as one to an equivalent resource."""
        return (
            _listed(self.operations, request.operation.value)
            and _listed(self.groups, resource.group)
            and _listed(self.versions, resource.version)
            and self._has_resource(resource.resource, request.subresource)
            and self._has_scope(request)
        )

    def _has_resource(self, plural: str, subresource: str) -> bool:
        for pattern in self.resources:
            name, _, sub = pattern.partition("/")
            if name in ("*", plural) and sub in ("*", subresource):
                return True
        return False

    def _has_scope(self, request: AdmissionRequest) -> bool:
        is_namespaced = bool(request.namespace) and not is_namespace_object(request)
        match self.scope:
            case "Namespaced":
                return is_namespaced
            case "Cluster":
                return not is_namespaced
            case _:
                return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One webhook of one configuration.

    Attributes:
        key: Configuration and webhook name; unique.
        conditions: Names and programs of the match conditions.
    """

    key: tuple[str, str]
    name: str
    client_config: JsonView
    rules: tuple[Rule, ...]
    is_fail_closed: bool
    is_equivalent: bool
    is_reinvoked: bool
    has_side_effects: bool
    timeout_s: int
    review_versions: tuple[str, ...]
    namespace_selector: JsonView
    object_selector: JsonView
    conditions: tuple[tuple[str, Program], ...]

    def target(self, request: AdmissionRequest) -> tuple[Gvr, Gvk] | None:
        """Return the resource and kind as which the webhook wants the request, None if not at all.

        The request's own version comes first, then (`matchPolicy: Equivalent`) the others.
        """
        if request.resource.group == _EXEMPT_GROUP:
            return None
        if any(rule.matches(request, request.resource) for rule in self.rules):
            return request.resource, request.kind
        if self.is_equivalent:
            for rule in self.rules:
                for resource, kind in request.equivalents:
                    if resource != request.resource and rule.matches(request, resource):
                        return resource, kind
        return None

    def selects_object(self, request: AdmissionRequest) -> bool:
        """Tell whether the object selector matches the new or the old object."""
        if not self.object_selector:
            return True
        return any(
            obj is not None and selects(self.object_selector, _labels(obj))
            for obj in (request.obj, request.old_obj)
        )

    def selects_namespace(self, request: AdmissionRequest, namespace: JsonView | None) -> bool:
        """Tell whether the namespace selector matches; cluster-scoped objects always do.

        Args:
            request: The request.
            namespace: Its Namespace, None when there is none.
        """
        if not self.namespace_selector:
            return True
        if is_namespace_object(request):
            obj = request.obj if request.obj is not None else request.old_obj
            return selects(self.namespace_selector, _labels(obj or {}))
        if not request.namespace:
            return True
        return selects(self.namespace_selector, _labels(namespace or {}))


def is_namespace_object(request: AdmissionRequest) -> bool:
    """Tell whether a request is about a Namespace itself."""
    resource = request.resource
    return not resource.group and resource.resource == "namespaces" and not request.subresource


def _labels(obj: JsonView) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def _listed(wanted: tuple[str, ...], value: str) -> bool:
    return "*" in wanted or value in wanted


def parse_hooks(configurations: Sequence[JsonView]) -> tuple[Hook, ...]:
    """Return the webhooks of configurations in the order in which they are called."""
    by_name = sorted(configurations, key=lambda configuration: configuration["metadata"]["name"])
    return tuple(hook for configuration in by_name for hook in _hooks(configuration))


def _hooks(configuration: JsonView) -> Iterator[Hook]:
    owner = configuration["metadata"]["name"]
    for webhook in configuration.get("webhooks") or ():
        yield Hook(
            key=(owner, webhook["name"]),
            name=webhook["name"],
            client_config=webhook.get("clientConfig") or {},
            rules=tuple(_rule(rule) for rule in webhook.get("rules") or ()),
            is_fail_closed=webhook.get("failurePolicy", "Fail") == "Fail",
            is_equivalent=webhook.get("matchPolicy", "Equivalent") == "Equivalent",
            is_reinvoked=webhook.get("reinvocationPolicy") == "IfNeeded",
            has_side_effects=webhook.get("sideEffects") not in ("None", "NoneOnDryRun"),
            timeout_s=int(webhook.get("timeoutSeconds") or _TIMEOUT_S),
            review_versions=tuple(webhook.get("admissionReviewVersions") or ()),
            namespace_selector=webhook.get("namespaceSelector") or {},
            object_selector=webhook.get("objectSelector") or {},
            conditions=tuple(
                (condition["name"], compile_condition(condition["expression"]))
                for condition in webhook.get("matchConditions") or ()
            ),
        )


def _rule(rule: Mapping[str, Any]) -> Rule:
    return Rule(
        operations=tuple(rule.get("operations") or ()),
        groups=tuple(rule.get("apiGroups") or ()),
        versions=tuple(rule.get("apiVersions") or ()),
        resources=tuple(rule.get("resources") or ()),
        scope=rule.get("scope") or "*",
    )
