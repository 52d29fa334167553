"""Trees of cohorts, inactive queues, unlimited quota (docs/spec/algorithm.md 0.2, 1.7, 1.8)."""

import pytest
from tests.support.builders import check, cohort, cq, flavor, ps, wl
from tests.support.harness import Harness, queues

from sluice.api.names import ClusterQueueName, CohortName, LocalQueueKey
from sluice.api.records import ClusterQueue, Kind
from sluice.engine.options import EngineOptions, FairSharing
from sluice.engine.status import ObjectRef

UNLIMITED = "9223372036854775807"


def active(harness: Harness, name: str) -> tuple[bool, str, str]:
    status = harness.engine.cluster_queue_status(ClusterQueueName(name))
    assert status is not None
    return status.is_active, status.reason, status.message


def test_1_7_an_inactive_queue_keeps_lending_and_occupying() -> None:
    harness = Harness(*queues(cq("a", "R", cpu="4"), cq("b", "R", cpu="4", reclaim="Any")))
    harness.observe(wl("a1", "a", cpu="6"))
    harness.cycle()
    harness.observe(cq("a", "R", cpu="4", stop="Hold"), wl("b1", "b", cpu="2"))
    harness.cycle()
    assert harness.admitted().keys() == {"b1"}

    harness.observe(wl("b2", "b", cpu="2"))
    harness.cycle()
    assert harness.evicted() == {}


@pytest.mark.parametrize(
    ("record", "reason", "text"),
    [
        (cq("q", cpu="1", stop="Hold"), "Stopped", "is stopped"),
        (
            cq("q", flavors={"gone": {"cpu": "1"}}),
            "FlavorNotFound",
            "references missing ResourceFlavor(s): gone",
        ),
        (
            cq("q", cpu="1", checks={"nope": []}),
            "AdmissionCheckNotFound",
            "references missing AdmissionCheck(s): nope",
        ),
        (
            cq("q", cpu="1", checks={"off": []}),
            "AdmissionCheckInactive",
            "references inactive AdmissionCheck(s): off",
        ),
        (
            cq("q", cpu="1", checks={"m1": [], "m2": []}),
            "MultipleMultiKueueAdmissionChecks",
            "Cannot use multiple MultiKueue AdmissionChecks",
        ),
        (
            cq("q", cpu="1", checks={"m1": ["default"]}),
            "MultiKueueAdmissionCheckAppliedPerFlavor",
            "Cannot specify MultiKueue AdmissionCheck per flavor",
        ),
        (
            cq("q", cpu="1", checks={"m1": [], "p": []}),
            "MultiKueueWithProvisioningRequest",
            "Cannot use both",
        ),
        (
            cq("q", flavors={"with-topology": {"cpu": "1"}}),
            "TopologyNotFound",
            'there is no Topology "t" for TAS flavor "with-topology"',
        ),
    ],
)
def test_1_7_why_a_queue_takes_no_part(record: ClusterQueue, reason: str, text: str) -> None:
    multikueue, provisioning = "kueue.x-k8s.io/multikueue", "kueue.x-k8s.io/provisioning-request"
    harness = Harness(
        check("off", active=False),
        check("m1", multikueue),
        check("m2", multikueue),
        check("p", provisioning),
        flavor("with-topology", labels={"a": "b"}, topology="t"),
        *queues(record),
    )
    harness.observe(wl("w", "q", cpu="1"))
    harness.cycle()

    assert harness.holding() == set()
    is_active, found, message = active(harness, "q")
    assert (is_active, found) == (False, reason)
    assert text in message
    local = harness.engine.local_queue_status(LocalQueueKey("ns/q"))
    assert local is not None
    assert local.reason == "ClusterQueueIsInactive"


def test_1_7_a_queue_whose_flavor_appears_becomes_active() -> None:
    harness = Harness(*queues(cq("q", flavors={"later": {"cpu": "1"}})))
    harness.observe(wl("w", "q", cpu="1"))
    harness.cycle()
    harness.observe(flavor("later"))
    harness.run()

    assert harness.holding() == {"w"}


def test_1_8_a_named_cohort_exists_without_an_object() -> None:
    harness = Harness(*queues(cq("a", "R", cpu="4"), cq("b", "R", cpu="0")))
    harness.observe(wl("w", "b", cpu="4"))
    harness.cycle()
    assert harness.holding() == {"w"}

    assert harness.engine.cohort_status(CohortName("R")) is not None
    harness.gone(Kind.CLUSTER_QUEUE, "a")
    harness.gone(Kind.CLUSTER_QUEUE, "b")
    assert harness.engine.cohort_status(CohortName("R")) is None


def test_1_8_a_deleted_cohort_loses_quota_and_parent_but_keeps_members() -> None:
    harness = Harness(
        *queues(
            cohort("top", cpu="4"),
            cohort("R", "top", cpu="4"),
            cq("a", "R", cpu="0"),
            cq("b", "R", cpu="2"),
        )
    )
    harness.observe(wl("w", "a", cpu="8"))
    harness.gone(Kind.COHORT, "R")
    harness.cycle()
    assert harness.told()["w"][0] == "ExceedsMaxQuota"

    harness.observe(wl("small", "a", cpu="2"))
    harness.run()
    assert harness.holding() == {"small"}


def test_1_8_a_cycle_of_cohorts_stops_its_members_until_it_is_broken() -> None:
    harness = Harness(*queues(cohort("x", "y"), cohort("y", "x"), cq("q", "x", cpu="4")))
    harness.observe(wl("w", "q", cpu="1"))
    harness.cycle()
    assert harness.holding() == set()
    assert not active(harness, "q")[0]

    harness.observe(cohort("y"))
    harness.run()
    assert harness.holding() == {"w"}


def test_1_8_moving_a_queue_to_another_cohort_takes_its_usage_along() -> None:
    harness = Harness(*queues(cq("a", "R", cpu="4"), cq("b", "R", cpu="4"), cq("c", "S", cpu="4")))
    harness.observe(wl("w", "a", cpu="8"))
    harness.cycle()
    harness.observe(cq("a", "S", cpu="4"), wl("b1", "b", cpu="4"), wl("c1", "c", cpu="1"))
    harness.cycle()

    assert harness.admitted().keys() == {"b1"}


def test_0_2_unlimited_quota_is_lent_without_end() -> None:
    harness = Harness(*queues(cq("a", "R", cpu=UNLIMITED), cq("b", "R", cpu="0")))
    harness.observe(wl("w", "b", ps(count=1000, cpu="1000000")))
    harness.cycle()

    assert harness.holding() == {"w"}


def test_0_2_what_unlimited_quota_keeps_back_is_lost_in_the_difference() -> None:
    harness = Harness(*queues(cq("a", "R", cpu=(UNLIMITED, None, "3")), cq("b", "R", cpu="0")))
    harness.observe(wl("w", "b", cpu="99"))
    harness.cycle()

    # G = U - 3 = U and Q - G = U - U = 0 (0.2): the limit of 3 lends nothing at all.
    assert harness.told()["w"][0] == "ExceedsMaxQuota"


def test_over_admission_after_a_quota_cut_blocks_until_it_is_gone() -> None:
    harness = Harness(*queues(cq("q", cpu="8")))
    harness.observe(*(wl(f"w{i}", "q", cpu="4") for i in range(2)))
    harness.run()
    harness.observe(cq("q", cpu="2"), wl("next", "q", cpu="1"))
    harness.run()
    assert harness.holding() == {"w0", "w1"}

    harness.finish("w0")
    harness.run()
    assert harness.holding() == {"w1"}
    harness.finish("w1")
    harness.run()
    assert harness.holding() == {"next"}


def test_shares_are_reported_under_fair_sharing() -> None:
    harness = Harness(
        *queues(cohort("R"), cq("a", "R", cpu="2"), cq("b", "R", cpu="6", fair_weight=0.0)),
        options=EngineOptions(wake_up_batch_ms=0, fair_sharing=FairSharing()),
    )
    harness.observe(wl("w", "a", cpu="4"))
    harness.cycle()
    status = harness.engine.cluster_queue_status(ClusterQueueName("a"))
    assert status is not None
    assert status.weighted_share == 250
    assert harness.engine.cohort_status(CohortName("R")) is not None

    harness.finish("w")
    harness.observe(wl("z", "b", cpu="7"))
    harness.run()
    status = harness.engine.cluster_queue_status(ClusterQueueName("b"))
    assert status is not None
    assert status.weighted_share == 2**63 - 1


def test_changes_name_only_what_was_touched() -> None:
    harness = Harness(*queues(cq("a", cpu="2"), cq("b", cpu="2")))
    version, everything = harness.engine.changes_since(0)
    assert ObjectRef(kind=Kind.CLUSTER_QUEUE, key="b") in everything

    harness.observe(wl("w", "a", cpu="1"))
    harness.cycle()
    later, changed = harness.engine.changes_since(version)

    assert set(changed) == {
        ObjectRef(kind=Kind.CLUSTER_QUEUE, key="a"),
        ObjectRef(kind=Kind.LOCAL_QUEUE, key="ns/a"),
    }
    assert harness.engine.changes_since(later) == (later, ())
