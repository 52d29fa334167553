"""Convert one object between kueue.x-k8s.io/v1beta1 and v1beta2, as raw JSON.

The API server calls this through the conversion webhook for every object that is read or written in
the version that is not stored, lists of large Workloads included; so it works on plain dicts,
copies only what it changes, and shares the rest with the input, which is never changed. Rules:
docs/spec/api.md 1.11. A field that the target version does not have is dropped.
Called by the webhook, by the embedded API server and by `sluice.cli`.
"""

from collections.abc import Callable
from typing import Any, Final

from sluice.api.conversion import queues, workload
from sluice.api.errors import InvalidObject, invalid, not_supported
from sluice.api.names import GROUP, V1BETA1, V1BETA2

Object = dict[str, Any]
Converter = Callable[[Object], Object]

_OLD: Final = f"{GROUP}/{V1BETA1}"
_NEW: Final = f"{GROUP}/{V1BETA2}"
_VERSIONS: Final = (_OLD, _NEW)

_UPGRADES: Final[dict[str, Converter]] = {
    "ClusterQueue": queues.upgrade_cluster_queue,
    "Cohort": queues.upgrade_cohort,
    "LocalQueue": queues.upgrade_local_queue,
    "MultiKueueCluster": queues.upgrade_multikueue_cluster,
    "Workload": workload.upgrade,
}
_DOWNGRADES: Final[dict[str, Converter]] = {
    "ClusterQueue": queues.downgrade_cluster_queue,
    "Cohort": queues.downgrade_cohort,
    "LocalQueue": queues.downgrade_local_queue,
    "MultiKueueCluster": queues.downgrade_multikueue_cluster,
    "Workload": workload.downgrade,
}
CONVERTED_KINDS: Final = frozenset(_UPGRADES)
"""The kinds whose CRD names the conversion webhook."""


def convert(obj: Object, to_version: str) -> Object:
    """Return an object in another version; the same object when it is in that version already.

    Args:
        obj: A whole object with apiVersion and kind. It is not changed, and the result may share
            parts with it.
        to_version: The wanted apiVersion, such as `kueue.x-k8s.io/v1beta2`.

    Raises:
        InvalidObject: The version or kind is unknown, or a part has the wrong shape; says where.
    """
    if to_version not in _VERSIONS:
        raise InvalidObject([not_supported("desiredAPIVersion", to_version, _VERSIONS)])
    found = obj.get("apiVersion")
    if found not in _VERSIONS:
        raise InvalidObject([not_supported("apiVersion", found, _VERSIONS)])
    converters = _UPGRADES if to_version == _NEW else _DOWNGRADES
    kind = obj.get("kind")
    converter = converters.get(kind) if isinstance(kind, str) else None
    if converter is None:
        raise InvalidObject([not_supported("kind", kind, sorted(CONVERTED_KINDS))])
    if found == to_version:
        return obj
    _check_shape(obj)
    try:
        converted = converter(obj)
    except (AttributeError, KeyError, TypeError) as error:
        # The API server validates before it stores, so this is an object from somewhere else.
        detail = f"does not have the shape of a {kind}: {error}"
        raise InvalidObject([invalid("metadata.name", _name(obj), detail)]) from error
    return {**converted, "apiVersion": to_version}


def _check_shape(obj: Object) -> None:
    for field in ("spec", "status"):
        value = obj.get(field)
        if value is not None and not isinstance(value, dict):
            raise InvalidObject([invalid(field, value, "must be an object")])


def _name(obj: Object) -> object:
    metadata = obj.get("metadata")
    return metadata.get("name") if isinstance(metadata, dict) else None
