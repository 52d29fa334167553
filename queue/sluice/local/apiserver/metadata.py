"""Rules of ObjectMeta: names, labels, annotations, finalizers, owner references.

Messages follow Kubernetes' field errors, so that kubectl shows what people know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sluice.kube.backoff import DICE
from sluice.local.apiserver.resources import Resource
from sluice.local.apiserver.seams import Json, JsonView
from sluice.local.apiserver.status import Cause

NAME_BYTES_MAX = 253
LABEL_BYTES_MAX = 63
ANNOTATIONS_BYTES_MAX = 256 * 1024
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SERVICE_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def random_suffix() -> str:
    """Return the five characters that complete a generateName."""
    return "".join(DICE.choices(_SUFFIX_ALPHABET, k=_SUFFIX_LENGTH))


def _invalid(path: str, value: Any, why: str) -> Cause:
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return Cause(reason="FieldValueInvalid", message=f"Invalid value: {shown}: {why}", field=path)


def check_name(resource: Resource, name: str, path: str = "metadata.name") -> Iterator[Cause]:
    """Yield what is wrong with an object's name."""
    if not name:
        yield Cause(
            reason="FieldValueRequired",
            message="Required value: name or generateName is required",
            field=path,
        )
        return
    if resource.group == "rbac.authorization.k8s.io":
        if "/" in name or "%" in name or name in (".", ".."):
            yield _invalid(path, name, "may not contain '/' or '%'")
        return
    pattern, text, limit = _SUBDOMAIN, _SUBDOMAIN_TEXT, NAME_BYTES_MAX
    if not resource.group and resource.kind == "Namespace":
        pattern, text, limit = _LABEL, _LABEL_TEXT, LABEL_BYTES_MAX
    elif not resource.group and resource.kind == "Service":
        pattern, text, limit = _SERVICE, _SERVICE_TEXT, LABEL_BYTES_MAX
    if len(name.encode()) > limit:
        yield _invalid(path, name, f"must be no more than {limit} bytes")
    if not pattern.fullmatch(name):
        yield _invalid(path, name, text)


def check_qualified(name: str, path: str) -> Iterator[Cause]:
    """Yield what is wrong with a label or annotation key."""
    prefix, slash, word = name.rpartition("/")
    if slash and not (prefix and len(prefix) <= NAME_BYTES_MAX and _SUBDOMAIN.fullmatch(prefix)):
        yield _invalid(path, name, f"prefix part {_SUBDOMAIN_TEXT}")
    if not word:
        yield _invalid(path, name, "name part must be non-empty")
    elif len(word.encode()) > LABEL_BYTES_MAX:
        yield _invalid(path, name, f"name part must be no more than {LABEL_BYTES_MAX} bytes")
    if not _QUALIFIED.fullmatch(word):
        yield _invalid(path, name, _QUALIFIED_TEXT)


def check_labels(labels: JsonView, path: str) -> Iterator[Cause]:
    """Yield what is wrong with a label map."""
    for key, value in labels.items():
        yield from check_qualified(key, path)
        if len(value.encode()) > LABEL_BYTES_MAX:
            yield _invalid(path, value, f"must be no more than {LABEL_BYTES_MAX} bytes")
        if not _LABEL_VALUE.fullmatch(value):
            yield _invalid(path, value, _VALUE_TEXT)


def _check_owners(owners: list[Json]) -> Iterator[Cause]:
    controllers = 0
    for i, owner in enumerate(owners):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield _invalid(
                    f"metadata.ownerReferences[{i}].{field}", "", f"{field} must not be empty"
                )
        controllers += bool(owner.get("controller"))
    if controllers > 1:
        yield _invalid(
            "metadata.ownerReferences",
            f"{controllers} controllers",
            "Only one reference can have Controller set to true",
        )


def check_object_meta(resource: Resource, metadata: Json) -> list[Cause]:
    """Return what is wrong with the metadata of an object that is about to be stored."""
    causes = list(check_name(resource, metadata.get("name", "")))
    causes += check_labels(metadata.get("labels") or {}, "metadata.labels")
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        causes += check_qualified(key.lower(), "metadata.annotations")
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > ANNOTATIONS_BYTES_MAX:
        causes.append(
            Cause(
                reason="FieldValueTooLong",
                message=f"Too long: may not be more than {ANNOTATIONS_BYTES_MAX} bytes",
                field="metadata.annotations",
            )
        )
    causes += _check_owners(metadata.get("ownerReferences") or [])
    for i, finalizer in enumerate(metadata.get("finalizers") or ()):
        causes += check_qualified(finalizer, f"metadata.finalizers[{i}]")
    return causes


_SYSTEM_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def keep_system_fields(new: Json, old: JsonView) -> list[Cause]:
    """Carry over what the system owns from the stored metadata; return what was changed.

    A client may leave these fields out, but must not give others.
    """
    causes = []
    for field in _SYSTEM_FIELDS:
        if field in new and new[field] != old.get(field):
            causes.append(_invalid(f"metadata.{field}", new[field], "field is immutable"))
        if field in old:
            new[field] = old[field]
        else:
            new.pop(field, None)
    if old.get("deletionTimestamp"):
        added = [f for f in new.get("finalizers") or () if f not in (old.get("finalizers") or ())]
        if added:
            causes.append(
                Cause(
                    reason="FieldValueForbidden",
                    message="Forbidden: no new finalizers can be added if the object is being "
                    f"deleted, found new finalizers {added}",
                    field="metadata.finalizers",
                )
            )
    return causes
