"""Table columns of the built-in kinds that are not about running pods.

Names, order and `-o wide` follow kubectl's usual output for these kinds. The value of an age
column is an RFC 3339 time here; the table turns it into an age.
"""

from __future__ import annotations

from typing import Any

from sluice.local.apiserver.ages import UNKNOWN
from sluice.local.apiserver.resources import Column, Extract, dig
from sluice.local.apiserver.seams import JsonView

NONE = "<none>"


def or_none(extract: Extract) -> Extract:
    """Return an extractor that shows `<none>` for what is missing or empty."""

    def shown(obj: JsonView) -> Any:
        value = extract(obj)
        return NONE if value in (None, "", [], {}) else value

    return shown


def count(*path: str) -> Extract:
    """Return an extractor that counts the entries at a path."""
    return lambda obj: len(dig(*path)(obj) or ())


def number(*path: str) -> Extract:
    """Return an extractor of an integer that is 0 when missing."""
    return lambda obj: dig(*path)(obj) or 0


def or_unknown(extract: Extract) -> Extract:
    """Return an extractor that shows `<unknown>` for what is missing or empty."""
    return lambda obj: extract(obj) or UNKNOWN


def join_map(*path: str) -> Extract:
    """Return an extractor that shows a string map as `a=b,c=d`."""

    def extract(obj: JsonView) -> str:
        values = dig(*path)(obj) or {}
        return ",".join(f"{key}={value}" for key, value in sorted(values.items())) or NONE

    return extract


NAME = Column(name="Name", extract=dig("metadata", "name"), format="name")
AGE = Column(name="Age", extract=dig("metadata", "creationTimestamp"), is_age=True)
CREATED_AT = Column(name="Created At", extract=dig("metadata", "creationTimestamp"), type="date")


def _secret_data(obj: JsonView) -> int:
    return len(obj.get("data") or ())


def _config_data(obj: JsonView) -> int:
    return len(obj.get("data") or ()) + len(obj.get("binaryData") or ())


def _external_ip(obj: JsonView) -> str:
    spec = obj.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", NONE))
    if spec.get("type") == "LoadBalancer":
        return ",".join(spec.get("externalIPs") or ()) or "<pending>"
    return ",".join(spec.get("externalIPs") or ()) or NONE


def _ports(obj: JsonView) -> str:
    shown = []
    for port in (obj.get("spec") or {}).get("ports") or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}")
    return ",".join(shown) or NONE


def _node_status(obj: JsonView) -> str:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    shown = [
        "Ready" if condition.get("status") == "True" else "NotReady"
        for condition in conditions
        if condition.get("type") == "Ready"
    ] or ["Unknown"]
    if (obj.get("spec") or {}).get("unschedulable"):
        shown.append("SchedulingDisabled")
    return ",".join(shown)


def _roles(obj: JsonView) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = obj["metadata"].get("labels") or {}
    return ",".join(sorted(key[len(prefix) :] for key in labels if key.startswith(prefix))) or NONE


def _address(kind: str) -> Extract:
    def extract(obj: JsonView) -> str:
        addresses = (obj.get("status") or {}).get("addresses") or ()
        return next((a["address"] for a in addresses if a.get("type") == kind), NONE)

    return extract


def _pdb_bound(field: str) -> Extract:
    def extract(obj: JsonView) -> str:
        value = (obj.get("spec") or {}).get(field)
        return "N/A" if value is None else str(value)

    return extract


def _role_ref(obj: JsonView) -> str:
    reference = obj.get("roleRef") or {}
    return f"{reference.get('kind', '')}/{reference.get('name', '')}"


def _subjects(kind: str) -> Extract:
    def extract(obj: JsonView) -> str:
        names = []
        for subject in obj.get("subjects") or ():
            if subject.get("kind") == kind:
                namespace = subject.get("namespace")
                names.append(f"{namespace}/{subject['name']}" if namespace else subject["name"])
        return ", ".join(names)

    return extract


def _quota(field: str) -> Extract:
    def extract(obj: JsonView) -> str:
        status = obj.get("status") or {}
        hard = status.get("hard") or (obj.get("spec") or {}).get("hard") or {}
        used = status.get("used") or {}
        wanted = {k: v for k, v in hard.items() if k.startswith("limits") == (field == "limits")}
        return ", ".join(f"{k}: {used.get(k, 0)}/{v}" for k, v in sorted(wanted.items()))

    return extract


def _event_object(obj: JsonView) -> str:
    involved = obj.get("involvedObject") or obj.get("regarding") or {}
    kind = str(involved.get("kind", "")).lower()
    return f"{kind}/{involved.get('name', '')}" if kind else str(involved.get("name", ""))


def _event_source(obj: JsonView) -> str:
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = source.get("component") or obj.get("reportingComponent")
    component = component or obj.get("reportingController") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else str(component)


def _event_seen(which: str) -> Extract:
    def extract(obj: JsonView) -> Any:
        series = obj.get("series") or {}
        if which == "last" and series.get("lastObservedTime"):
            return series["lastObservedTime"]
        old = "lastTimestamp" if which == "last" else "firstTimestamp"
        deprecated = "deprecated" + old[0].upper() + old[1:]
        return obj.get(old) or obj.get(deprecated) or obj.get("eventTime")

    return extract


def _event_count(obj: JsonView) -> int:
    series = obj.get("series") or {}
    return int(series.get("count") or obj.get("count") or obj.get("deprecatedCount") or 1)


EVENT_COLUMNS = (
    Column(name="Last Seen", extract=_event_seen("last"), is_age=True),
    Column(name="Type", extract=dig("type")),
    Column(name="Reason", extract=dig("reason")),
    Column(name="Object", extract=_event_object),
    Column(name="Subobject", extract=dig("involvedObject", "fieldPath"), priority=1),
    Column(name="Source", extract=_event_source, priority=1),
    Column(
        name="Message", extract=lambda obj: (obj.get("message") or obj.get("note") or "").strip()
    ),
    Column(name="First Seen", extract=_event_seen("first"), is_age=True, priority=1),
    Column(name="Count", extract=_event_count, priority=1),
    Column(name="Name", extract=dig("metadata", "name"), format="name", priority=1),
)

_WEBHOOKS = (NAME, Column(name="Webhooks", extract=count("webhooks"), type="integer"), AGE)

_BINDING = (
    NAME,
    Column(name="Role", extract=_role_ref),
    AGE,
    Column(name="Users", extract=_subjects("User"), priority=1),
    Column(name="Groups", extract=_subjects("Group"), priority=1),
    Column(name="ServiceAccounts", extract=_subjects("ServiceAccount"), priority=1),
)

COLUMNS: dict[str, tuple[Column, ...]] = {
    "Namespace": (NAME, Column(name="Status", extract=dig("status", "phase")), AGE),
    "Secret": (
        NAME,
        Column(name="Type", extract=dig("type")),
        Column(name="Data", extract=_secret_data),
        AGE,
    ),
    "ConfigMap": (NAME, Column(name="Data", extract=_config_data), AGE),
    "ServiceAccount": (NAME, AGE),
    "Service": (
        NAME,
        Column(name="Type", extract=dig("spec", "type")),
        Column(name="Cluster-IP", extract=or_none(dig("spec", "clusterIP"))),
        Column(name="External-IP", extract=_external_ip),
        Column(name="Port(s)", extract=_ports),
        AGE,
        Column(name="Selector", extract=join_map("spec", "selector"), priority=1),
    ),
    "Node": (
        NAME,
        Column(name="Status", extract=_node_status),
        Column(name="Roles", extract=_roles),
        AGE,
        Column(name="Version", extract=dig("status", "nodeInfo", "kubeletVersion")),
        Column(name="Internal-IP", extract=_address("InternalIP"), priority=1),
        Column(name="External-IP", extract=_address("ExternalIP"), priority=1),
        Column(
            name="OS-Image", extract=or_unknown(dig("status", "nodeInfo", "osImage")), priority=1
        ),
        Column(
            name="Kernel-Version",
            extract=or_unknown(dig("status", "nodeInfo", "kernelVersion")),
            priority=1,
        ),
        Column(
            name="Container-Runtime",
            extract=or_unknown(dig("status", "nodeInfo", "containerRuntimeVersion")),
            priority=1,
        ),
    ),
    "Lease": (NAME, Column(name="Holder", extract=dig("spec", "holderIdentity")), AGE),
    "PriorityClass": (
        NAME,
        Column(name="Value", extract=dig("value"), type="integer"),
        Column(
            name="Global-Default",
            extract=lambda obj: bool(obj.get("globalDefault")),
            type="boolean",
        ),
        AGE,
        Column(name="PreemptionPolicy", extract=dig("preemptionPolicy")),
    ),
    "RuntimeClass": (NAME, Column(name="Handler", extract=dig("handler")), AGE),
    "PodDisruptionBudget": (
        NAME,
        Column(name="Min Available", extract=_pdb_bound("minAvailable")),
        Column(name="Max Unavailable", extract=_pdb_bound("maxUnavailable")),
        Column(
            name="Allowed Disruptions",
            extract=number("status", "disruptionsAllowed"),
            type="integer",
        ),
        AGE,
    ),
    "ResourceQuota": (
        NAME,
        Column(name="Request", extract=_quota("requests")),
        Column(name="Limit", extract=_quota("limits")),
        AGE,
    ),
    "NetworkPolicy": (
        NAME,
        Column(
            name="Pod-Selector",
            extract=join_map("spec", "podSelector", "matchLabels"),
        ),
        AGE,
    ),
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "Role": (NAME, CREATED_AT),
    "ClusterRole": (NAME, CREATED_AT),
    "LimitRange": (NAME, CREATED_AT),
    "CustomResourceDefinition": (NAME, CREATED_AT),
    "Event": EVENT_COLUMNS,
}
