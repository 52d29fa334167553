"""Admission by webhooks: who is asked, in which order, and what their answers do to a request.

Implements `seams.Admission`. Mutating webhooks are asked one after the other, by name of their
configuration; those with `reinvocationPolicy: IfNeeded` once more when a later one changed the
object. Validating webhooks are asked together.
"""

from __future__ import annotations

import asyncio
from typing import Final

from sluice.local.admission import review
from sluice.local.admission.calls import CallFailed, ServiceResolver, WebhookCaller
from sluice.local.admission.hooks import Hook, is_namespace_object, parse_hooks
from sluice.local.apiserver.seams import AdmissionRequest, Cluster, Gvk, Gvr, Json, JsonView
from sluice.local.apiserver.status import ApiError, Reason, bad_request, forbidden, not_found
from sluice.local.merge.documents import PatchMalformed, PatchRefused, apply_json_patch
from sluice.local.schema.cel.environment import CelError
from sluice.local.schema.correlation import same
from sluice.local.schema.matching import environment
from sluice.log import get_logger

_MUTATING: Final = "mutatingwebhookconfigurations"
_VALIDATING: Final = "validatingwebhookconfigurations"

log = get_logger(__name__)


class WebhookAdmission:
    """Calls the webhooks that the stored configurations name.

    Args:
        cluster: The server's storage.
        resolve: Finds Services that configurations refer to.
    """

    def __init__(self, cluster: Cluster, resolve: ServiceResolver) -> None:
        self._cluster = cluster
        self._caller = WebhookCaller(resolve)
        self._parsed: dict[str, tuple[int, int, tuple[Hook, ...]]] = {}

    async def close(self) -> None:
        """Close connections."""
        await self._caller.close()

    async def mutate(self, request: AdmissionRequest) -> Json | None:
        """Return the object after all mutating webhooks; see `seams.Admission`."""
        return await _Round(self._cluster, self._caller, request).mutate(self._hooks(_MUTATING))

    async def validate(self, request: AdmissionRequest) -> None:
        """Ask all validating webhooks; see `seams.Admission`."""
        hooks = self._hooks(_VALIDATING)
        if not hooks:
            return
        asked = _Round(self._cluster, self._caller, request)
        outcomes = await asyncio.gather(
            *(asked.validate(hook) for hook in hooks), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    def _hooks(self, plural: str) -> tuple[Hook, ...]:
        version, configurations = self._cluster.webhook_configurations(plural)
        known = self._parsed.get(plural)
        # A deletion need not raise the newest version among those left: count them too.
        if known is None or known[:2] != (version, len(configurations)):
            hooks = parse_hooks(configurations)
            known = self._parsed[plural] = (version, len(configurations), hooks)
        return known[2]


class _Round:
    """The webhooks' part in one request."""

    def __init__(self, cluster: Cluster, caller: WebhookCaller, request: AdmissionRequest) -> None:
        self._cluster = cluster
        self._caller = caller
        self._request = request
        self._obj = request.obj

    async def mutate(self, hooks: tuple[Hook, ...]) -> Json | None:
        """Ask the webhooks in order, then once more those whose work others have changed."""
        invoked: set[tuple[str, str]] = set()
        again: set[tuple[str, str]] = set()
        for is_second in (False, True):
            if is_second and not again:
                break
            for hook in hooks:
                if is_second and hook.key not in again:
                    continue
                has_asked, has_changed = await self._mutate_by(hook)
                if has_changed:
                    again |= invoked
                    invoked.clear()
                if has_asked and hook.is_reinvoked:
                    invoked.add(hook.key)
        return self._obj

    async def _mutate_by(self, hook: Hook) -> tuple[bool, bool]:
        """Ask one webhook; return whether it was asked and whether it changed the object."""
        prepared = await self._prepare(hook)
        if prepared is None:
            return False, False
        content, kind = prepared
        answer = await self._ask(hook, content, is_mutating=True)
        if answer is None or not answer.patch:
            return True, False
        if content["object"] is None:
            raise _internal(
                f'admission webhook "{hook.name}" attempted to modify the object, which is not '
                "supported for this operation"
            )
        try:
            patched = apply_json_patch(content["object"], answer.patch)
        except (PatchMalformed, PatchRefused) as error:
            raise _internal(str(error)) from error
        if same(patched, content["object"]):
            return True, False
        if kind != self._request.kind:
            patched = await self._converted(patched, self._request.kind)
        self._obj = patched
        return True, True

    async def validate(self, hook: Hook) -> None:
        """Ask one validating webhook."""
        prepared = await self._prepare(hook)
        if prepared is not None:
            await self._ask(hook, prepared[0], is_mutating=False)

    async def _prepare(self, hook: Hook) -> tuple[Json, Gvk] | None:
        """Return the review and the kind it is in, None when the webhook need not be asked."""
        request = self._request
        target = hook.target(request)
        if target is None or not hook.selects_object(self._seen()):
            return None
        namespace = self._namespace(hook)
        if not hook.selects_namespace(request, namespace):
            return None
        resource, kind = target
        obj = await self._in_version(self._obj, kind)
        old_obj = await self._in_version(request.old_obj, kind)
        content = review.request_json(request, resource, kind, obj, old_obj)
        if hook.conditions and not self._meets_conditions(hook, content, resource):
            return None
        return content, kind

    def _seen(self) -> AdmissionRequest:
        """Return the request with the object as earlier webhooks have left it."""
        if self._obj is self._request.obj:
            return self._request
        request = self._request
        return AdmissionRequest(
            operation=request.operation, kind=request.kind, resource=request.resource,
            subresource=request.subresource, namespace=request.namespace, name=request.name,
            obj=self._obj, old_obj=request.old_obj, options=request.options,
            dry_run=request.dry_run, user=request.user,
        )  # fmt: skip

    def _namespace(self, hook: Hook) -> JsonView | None:
        request = self._request
        if not hook.namespace_selector or not request.namespace or is_namespace_object(request):
            return None
        namespace = self._cluster.namespace(request.namespace)
        if namespace is None:
            raise not_found("", "namespaces", request.namespace)
        return namespace

    async def _in_version(self, obj: JsonView | None, kind: Gvk) -> Json | None:
        if obj is None:
            return None
        if kind == self._request.kind:
            return dict(obj)
        return await self._converted(dict(obj), kind)

    async def _converted(self, obj: Json, kind: Gvk) -> Json:
        if self._request.convert is None:
            raise _internal(f"unable to convert to {kind.api_version}: unknown kind")
        return await self._request.convert(obj, kind.api_version)

    def _meets_conditions(self, hook: Hook, content: Json, resource: Gvr) -> bool:
        activation = environment().activation(
            {
                "object": content["object"],
                "oldObject": content["oldObject"],
                "request": {k: v for k, v in content.items() if k not in ("object", "oldObject")},
            }
        )
        problems: list[str] = []
        for _, program in hook.conditions:
            try:
                outcome = program.evaluate(activation)
            except CelError as error:
                problems.append(f"expression '{program.source}' resulted in error: {error}")
                continue
            if outcome is False:
                return False
            if outcome is not True:
                problems.append(f"expression '{program.source}' did not return a bool")
        if not problems:
            return True
        if hook.is_fail_closed:
            why = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            raise forbidden(resource.group, resource.resource, self._request.name, why)
        return False

    async def _ask(self, hook: Hook, content: Json, *, is_mutating: bool) -> review.Verdict | None:
        """Return the webhook's verdict; None when it failed and may be ignored.

        Raises:
            ApiError: It denied the request, or failed and must not be ignored.
        """
        if self._request.dry_run and hook.has_side_effects:
            raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
        try:
            answer = await self._call(hook, content, is_mutating=is_mutating)
        except CallFailed as error:
            if hook.is_fail_closed:
                raise _internal(f'failed calling webhook "{hook.name}": {error}') from error
            log.warning(
                "webhook failed and is ignored",
                fields={"webhook": hook.name, "error": str(error)},
            )
            return None
        self._request.warnings.extend(answer.warnings)
        if not answer.is_allowed:
            raise review.denial(hook.name, answer.result)
        return answer

    async def _call(self, hook: Hook, content: Json, *, is_mutating: bool) -> review.Verdict:
        if "v1" not in hook.review_versions:
            raise CallFailed("webhook does not accept known AdmissionReview versions (v1)")
        body = review.encode(content)
        try:
            reply = await self._caller.post(hook.client_config, body, hook.timeout_s)
        except CallFailed as error:
            raise CallFailed(f"failed to call webhook: {error}") from error
        return review.verdict(reply, content["uid"], is_mutating=is_mutating)


def _internal(why: str) -> ApiError:
    return ApiError(
        Reason.INTERNAL_ERROR,
        f"Internal error occurred: {why}",
        details={"causes": [{"message": why}]},
    )
