"""A replacement that is written late must not move pods off a node that is healthy again."""

from typing import Any

import pytest

from sluice.api import names, wire
from sluice.api.names import ClusterQueueName, FlavorName, PodSetName, ResourceName, WorkloadKey
from sluice.api.records import Admission, PodSetAssignment, TopologyAssignment, TopologyDomain
from sluice.controllers.commands import Outcome, Stale, outcome_of
from sluice.engine.commands import AssignTopology

NOW_MS = 1_700_000_000_000


def admission(host: str) -> Admission:
    topology = TopologyAssignment(
        levels=(names.HOSTNAME_LABEL,), domains=(TopologyDomain(values=(host,), count=1),)
    )
    main = PodSetAssignment(
        name=PodSetName("main"),
        flavors=((ResourceName("cpu"), FlavorName("f")),),
        count=1,
        topology=topology,
    )
    return Admission(cluster_queue=ClusterQueueName("cq"), pod_sets=(main,))


def outcome(host: str, *, unhealthy: bool) -> Outcome:
    """Return what writing a replacement by host ``b`` does to a Workload on another host."""
    command = AssignTopology(
        workload=WorkloadKey("ns/wl"),
        uid="u",
        resource_version="5",
        cluster_queue=ClusterQueueName("cq"),
        admission=admission("b"),
        admitted=True,
        clear_unhealthy_nodes=True,
    )
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "message": ""}
        for kind in ("QuotaReserved", "Admitted")
    ]
    status: dict[str, Any] = {
        "conditions": conditions,
        "admission": wire.encode_admission(admission(host)),
    }
    if unhealthy:
        status["unhealthyNodes"] = [{"name": host}]
    raw = {
        "metadata": {"name": "wl", "namespace": "ns", "uid": "u", "generation": 1},
        "spec": {},
        "status": status,
    }
    return outcome_of(command, raw, generation=1, now_ms=NOW_MS, tracks_pods=False)


def test_in_time_it_moves_them() -> None:
    status = outcome("a", unhealthy=True).status
    assert status is not None
    assert "unhealthyNodes" not in status
    assert wire.admission(status["admission"]) == admission("b")


def test_late_it_is_stale() -> None:
    with pytest.raises(Stale, match="healthy again"):
        outcome("a", unhealthy=False)


def test_written_already_it_is_done() -> None:
    assert outcome("b", unhealthy=False).status is None
