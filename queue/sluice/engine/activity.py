"""Which ClusterQueues take part in scheduling, and why one does not (docs/spec/algorithm.md 1.7).

The reasons and texts are those of the Active condition (docs/spec/api.md 4.8). Used when queues,
flavors, checks or topologies change, and by the status queries.
"""

from sluice.api import names
from sluice.api.records import ClusterQueue, StopPolicy
from sluice.engine.world import World

Problem = tuple[str, str]
"""Reason of the Active condition, and its text."""


def problems(world: World, record: ClusterQueue) -> list[Problem]:
    """Return why a ClusterQueue does not take part, in the order of docs/spec/api.md 4.8."""
    found: list[Problem] = []
    if record.is_terminating:
        found.append(("Terminating", "is terminating"))
    if record.stop_policy is not StopPolicy.NONE:
        found.append(("Stopped", "is stopped"))
    used = [flavor.name for group in record.resource_groups for flavor in group.flavors]
    missing = [name for name in used if name not in world.flavors]
    if missing:
        text = ",".join(missing)
        found.append(("FlavorNotFound", f"references missing ResourceFlavor(s): {text}"))
    found.extend(_check_problems(world, record))
    if world.options.gates.topology_aware:
        for name in used:
            flavor = world.flavors.get(name)
            if (
                flavor is not None
                and flavor.topology is not None
                and flavor.topology not in world.topologies
            ):
                text = f'there is no Topology "{flavor.topology}" for TAS flavor "{name}"'
                found.append(("TopologyNotFound", text))
    if record.cohort is not None and world.forest.root_of(record.cohort) is None:
        found.append(("CohortCycle", f"the cohorts above {record.cohort} form a cycle"))
    return found


def _check_problems(world: World, record: ClusterQueue) -> list[Problem]:
    found: list[Problem] = []
    missing = [rule.name for rule in record.checks if rule.name not in world.checks]
    known = [rule for rule in record.checks if rule.name in world.checks]
    inactive = [rule.name for rule in known if not world.checks[rule.name].is_active]
    if missing:
        text = ",".join(missing)
        found.append(("AdmissionCheckNotFound", f"references missing AdmissionCheck(s): {text}"))
    if inactive:
        text = ",".join(inactive)
        found.append(("AdmissionCheckInactive", f"references inactive AdmissionCheck(s): {text}"))
    multi = [
        rule for rule in known if world.checks[rule.name].controller == names.MULTIKUEUE_CONTROLLER
    ]
    provisioning = [
        rule
        for rule in known
        if world.checks[rule.name].controller == names.PROVISIONING_CONTROLLER
    ]
    listed = ",".join(rule.name for rule in multi)
    if len(multi) > 1:
        found.append(
            (
                "MultipleMultiKueueAdmissionChecks",
                "Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, "
                f"found: {listed}",
            )
        )
    if any(rule.on_flavors for rule in multi):
        found.append(
            (
                "MultiKueueAdmissionCheckAppliedPerFlavor",
                f"Cannot specify MultiKueue AdmissionCheck per flavor, found: {listed}",
            )
        )
    if multi and provisioning:
        both = ",".join(rule.name for rule in (*multi, *provisioning))
        found.append(
            (
                "MultiKueueWithProvisioningRequest",
                "Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, "
                f"found: {both}",
            )
        )
    return found


def message(found: list[Problem]) -> tuple[bool, str, str]:
    """Return (active, reason, message) of the Active condition for these problems."""
    if not found:
        return True, "Ready", "Can admit new workloads"
    if found[0][0] == "Terminating":
        return False, "Terminating", "Can't admit new workloads; clusterQueue is terminating"
    texts = ", ".join(text for _, text in found)
    return False, found[0][0], f"Can't admit new workloads: {texts}."
