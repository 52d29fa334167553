"""Subresources beyond status, and the kinds that are only questions (reviews).

Every access question is answered with yes: roles are not enforced here (docs/embedded.md).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import orjson

from sluice.local.apiserver.ages import format_time
from sluice.local.apiserver.backend import Backend
from sluice.local.apiserver.bodies import decode_object
from sluice.local.apiserver.calls import Answer, Call
from sluice.local.apiserver.credentials import TOKEN_S_MAX, Credentials
from sluice.local.apiserver.deleting import DeleteOptions, delete_object
from sluice.local.apiserver.preparing import is_to_be_removed
from sluice.local.apiserver.seams import Gvk, Json, UserInfo
from sluice.local.apiserver.status import (
    ApiError,
    Cause,
    Reason,
    bad_request,
    conflict,
    invalid,
    not_found,
)
from sluice.local.apiserver.store import Stored

TOKEN_S_DEFAULT = 3600
TOKEN_S_MIN = 600
_ALLOWED = {"allowed": True, "reason": "the embedded API server does not enforce roles"}

Handler = Callable[[Backend, Credentials, Call], Awaitable[Answer]]


def _state(backend: Backend, call: Call) -> Stored:
    state = backend.find(call.resource, call.namespace, call.name)
    if state is None:
        raise not_found(call.resource.group, call.resource.plural, call.name)
    return state


def _success(code: int = 201) -> Answer:
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code}
    return Answer(body=orjson.dumps(body), code=code)


def _body(call: Call, kind: Gvk) -> Json:
    obj = decode_object(call, kind)
    spec = obj.get("spec")
    if spec is not None and not isinstance(spec, dict):
        raise bad_request("spec: must be an object")
    return obj


async def bind(backend: Backend, credentials: Credentials, call: Call) -> Answer:
    """Handle POST pods/NAME/binding: give a pod its node."""
    binding = _body(call, call.resource.subresources["binding"])
    target = binding.get("target")
    node = target.get("name") if isinstance(target, dict) else None
    if not isinstance(node, str) or not node:
        raise bad_request("target.name: Required value: name of the node to bind the pod to")
    pod = _state(backend, call).load()
    if pod["metadata"].get("deletionTimestamp"):
        raise conflict("", "pods/binding", call.name, f"pod {call.name} is being deleted")
    if pod["spec"].get("nodeName"):
        raise conflict(
            "",
            "pods/binding",
            call.name,
            f'pod {call.name} is already assigned to node "{pod["spec"]["nodeName"]}"',
        )
    if pod["spec"].get("schedulingGates"):
        raise conflict(
            "", "pods/binding", call.name, f"pod {call.name} has non-empty .spec.schedulingGates"
        )
    if not call.is_dry_run:
        pod["spec"]["nodeName"] = node
        conditions = pod.setdefault("status", {}).setdefault("conditions", [])
        conditions[:] = [c for c in conditions if c.get("type") != "PodScheduled"]
        conditions.append(
            {
                "type": "PodScheduled",
                "status": "True",
                "lastTransitionTime": backend.now(),
            }
        )
        backend.put(call.resource, pod)
    return _success()


async def evict(backend: Backend, credentials: Credentials, call: Call) -> Answer:
    """Handle POST pods/NAME/eviction: delete the pod; disruption budgets are not looked at."""
    eviction = _body(call, call.resource.subresources["eviction"])
    options = eviction.get("deleteOptions") or {}
    grace_s = options.get("gracePeriodSeconds")
    await delete_object(backend, call, DeleteOptions(grace_period_s=grace_s))
    return _success()


async def issue_token(backend: Backend, credentials: Credentials, call: Call) -> Answer:
    """Handle POST serviceaccounts/NAME/token."""
    request = _body(call, call.resource.subresources["token"])
    state = _state(backend, call)
    spec = request.setdefault("spec", {})
    life_s = spec.get("expirationSeconds", TOKEN_S_DEFAULT)
    if not isinstance(life_s, int) or not TOKEN_S_MIN <= life_s <= 2**32:
        cause = Cause(
            reason="FieldValueInvalid",
            message=f"Invalid value: {life_s}: may not specify a duration less than 10 minutes",
            field="spec.expirationSeconds",
        )
        raise invalid("authentication.k8s.io", "TokenRequest", "", [cause])
    namespace, name = state.key
    user = UserInfo(
        username=f"system:serviceaccount:{namespace}:{name}",
        groups=(
            "system:authenticated",
            "system:serviceaccounts",
            f"system:serviceaccounts:{namespace}",
        ),
        uid=state.uid,
    )
    token, end_s = credentials.issue_token(user, min(life_s, TOKEN_S_MAX))
    spec["expirationSeconds"] = min(life_s, TOKEN_S_MAX)
    request["metadata"] |= {"name": name, "namespace": namespace}
    request["status"] = {"token": token, "expirationTimestamp": format_time(end_s)}
    return Answer(body=orjson.dumps(request), code=201)


async def finalize(backend: Backend, credentials: Credentials, call: Call) -> Answer:
    """Handle PUT namespaces/NAME/finalize: set the finalizers of its spec."""
    sent = _body(call, call.resource.gvk("v1"))
    state = _state(backend, call)
    wanted = sent["metadata"].get("resourceVersion", "")
    if wanted and wanted != str(state.revision):
        raise conflict("", "namespaces", call.name, "the object has been modified")
    namespace = state.load()
    finalizers = (sent.get("spec") or {}).get("finalizers") or []
    namespace["spec"] = {"finalizers": finalizers} if finalizers else {}
    if is_to_be_removed(namespace):
        stored = backend.remove(call.resource, state.key, namespace)
    else:
        stored = backend.put(call.resource, namespace)
    return Answer(body=stored.raw)


SUBRESOURCES: dict[tuple[str, str], tuple[str, Handler]] = {
    ("pods", "binding"): ("POST", bind),
    ("pods", "eviction"): ("POST", evict),
    ("serviceaccounts", "token"): ("POST", issue_token),
    ("namespaces", "finalize"): ("PUT", finalize),
}


async def review(backend: Backend, credentials: Credentials, call: Call) -> Answer:
    """Handle POST of a review: answer the question it asks."""
    obj = _body(call, call.resource.gvk(call.version.name))
    kind = call.resource.kind
    if kind == "TokenReview":
        user = credentials.user_of_token(str((obj.get("spec") or {}).get("token", "")))
        known: Json = {"authenticated": user is not None}
        if user is not None:
            known["user"] = user.to_json()
        else:
            known["error"] = "unknown or expired token"
        obj["status"] = known
    elif kind == "SelfSubjectReview":
        obj["status"] = {"userInfo": call.user.to_json()}
    elif kind == "SelfSubjectRulesReview":
        every = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        obj["status"] = {"resourceRules": [every], "nonResourceRules": [], "incomplete": False}
    elif kind.endswith("SubjectAccessReview"):
        obj["status"] = dict(_ALLOWED)
    else:
        raise ApiError(Reason.METHOD_NOT_ALLOWED, f"{kind} is no review")
    return Answer(body=orjson.dumps(obj), code=201)
