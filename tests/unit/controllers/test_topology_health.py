"""Which hosts count as failed."""

from collections.abc import Mapping
from typing import Any

import pytest

from sluice.api import names, wire
from sluice.api.records import ResourceFlavor, Taint, Toleration
from sluice.controllers.topology_health import (
    NOT_READY_MS,
    Findings,
    examine,
    tolerations_by_host,
)
from sluice.controllers.topology_records import CachedNode, cached_node
from sluice.engine.options import Gates

HOSTS: Mapping[str, list[tuple[Toleration, ...]]] = {"n1": [()]}
NOW_MS = 1_000_000
OVER_TIME = Gates(tas_replace_on_pod_termination=False, tas_replace_not_ready_over_time=True)


def node(ready: str | None = "True", *taints: dict[str, str], changed_s: int = 0) -> CachedNode:
    condition = {
        "type": "Ready",
        "status": ready,
        "lastTransitionTime": f"1970-01-01T00:{changed_s // 60:02}:{changed_s % 60:02}Z",
    }
    return cached_node(
        {
            "metadata": {"name": "node-1", "labels": {names.HOSTNAME_LABEL: "n1"}},
            "spec": {"taints": list(taints)},
            "status": {"conditions": [] if ready is None else [condition]},
        }
    )


def found(
    present: CachedNode | None,
    *,
    occupied: bool = False,
    gates: Gates | None = None,
    hosts: Mapping[str, list[tuple[Toleration, ...]]] = HOSTS,
) -> Findings:
    return examine(
        hosts, lambda _: present, {"node-1"} if occupied else (), gates or Gates(), NOW_MS
    )


FAILED = Findings(failed=("n1",), ailing=frozenset({"n1"}))
AILING = Findings(ailing=frozenset({"n1"}))
BROKEN = {"key": "broken", "effect": "NoSchedule"}
GOING = {"key": "going", "effect": "NoExecute"}
AVOIDED = {"key": "avoided", "effect": "PreferNoSchedule"}


@pytest.mark.parametrize("occupied", [True, False])
def test_a_node_that_is_gone_or_never_reported_has_failed_at_once(occupied: bool) -> None:
    assert found(None, occupied=occupied) == FAILED
    assert found(node(None), occupied=occupied) == FAILED


def test_a_healthy_node_has_not() -> None:
    assert found(node(), occupied=False) == Findings()
    assert found(node("True", AVOIDED)) == Findings()


@pytest.mark.parametrize(
    "present", [node("False"), node("Unknown"), node("True", BROKEN), node("True", GOING)]
)
def test_a_node_that_keeps_pods_out_has_failed_once_none_lives_there(present: CachedNode) -> None:
    assert found(present, occupied=True) == AILING
    assert found(present, occupied=False) == FAILED


def test_tolerated_for_good_is_healthy_and_for_a_while_is_not() -> None:
    for_good = Toleration(key="broken", operator="Exists")
    for_a_while = Toleration(key="going", operator="Exists", effect="NoExecute", seconds=300)
    assert found(node("True", BROKEN), hosts={"n1": [(for_good,)]}) == Findings()
    assert found(node("True", GOING), hosts={"n1": [(for_a_while,)]}) == FAILED
    assert found(node("True", BROKEN), hosts={"n1": [(for_good,), ()]}) == FAILED


def test_without_their_gates_taints_and_ended_pods_say_nothing() -> None:
    assert found(node("True", BROKEN), gates=Gates(tas_replace_on_taints=False)) == Findings()
    assert found(node("False"), gates=Gates(tas_replace_on_pod_termination=False)) == AILING


def test_unready_for_too_long() -> None:
    since_s = (NOW_MS - NOT_READY_MS) // 1000
    assert found(node("False", changed_s=since_s), occupied=True, gates=OVER_TIME) == FAILED
    later = found(node("False", changed_s=since_s + 5), occupied=True, gates=OVER_TIME)
    assert later == Findings(ailing=frozenset({"n1"}), look_again_ms=NOW_MS + 5000)


def test_what_is_tolerated_comes_from_pods_flavors_and_checks() -> None:
    raw: dict[str, Any] = {
        "metadata": {"namespace": "ns", "name": "wl"},
        "spec": {
            "podSets": [
                {
                    "name": name,
                    "count": 1,
                    "template": {"spec": {"tolerations": [{"key": name, "operator": "Exists"}]}},
                }
                for name in ("a", "b")
            ]
        },
        "status": {
            "admission": {
                "clusterQueue": "cq",
                "podSetAssignments": [assigned("a", "n1"), assigned("b", "n1", "n2")],
            },
            "admissionChecks": [
                {
                    "name": "check",
                    "state": "Ready",
                    "podSetUpdates": [
                        {"name": "b", "tolerations": [{"key": "check", "operator": "Exists"}]}
                    ],
                }
            ],
        },
    }
    flavor = ResourceFlavor(
        name=names.FlavorName("f"), tolerations=(Toleration(key="flavor", operator="Exists"),)
    )
    by_host = tolerations_by_host(wire.workload(raw), {"f": flavor}.get)
    shown = {
        host: [[item.key for item in held] for held in pod_sets]
        for host, pod_sets in by_host.items()
    }
    of_b = ["b", "flavor", "check"]
    assert shown == {"n1": [["a", "flavor"], of_b], "n2": [of_b]}
    assert by_host["n1"][0][1].tolerates(Taint(key="flavor", effect="NoSchedule"))


def assigned(name: str, *hosts: str) -> dict[str, Any]:
    values = {"individual": {"roots": list(hosts)}}
    piece = {
        "domainCount": len(hosts),
        "valuesPerLevel": [values],
        "podCounts": {"universal": 1},
    }
    topology = {"levels": [names.HOSTNAME_LABEL], "slices": [piece]}
    return {"name": name, "flavors": {"cpu": "f"}, "count": 1, "topologyAssignment": topology}
