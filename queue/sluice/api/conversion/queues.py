"""Conversion of ClusterQueue, Cohort, LocalQueue and MultiKueueCluster (docs/spec/api.md 1.11).

`upgrade_*` goes from v1beta1 to v1beta2 and `downgrade_*` back. Called by `convert` only, which
sets apiVersion and checks that spec and status are objects.
"""

from typing import Any, Final

from sluice.api.conversion.edits import Object, edited, renamed, without

_CURRENT_NAME: Final = {"Borrow": "MayStopSearch", "Preempt": "MayStopSearch"}
"""Legacy values of flavorFungibility and what they are called now."""


def upgrade_cluster_queue(obj: Object) -> Object:
    """Return a ClusterQueue in v1beta2."""
    obj = edited(obj, "spec", _upgrade_cluster_queue_spec)
    return edited(obj, "status", _upgrade_cluster_queue_status)


def _upgrade_cluster_queue_spec(spec: Object) -> Object:
    spec = renamed(spec, "cohort", "cohortName")
    spec = edited(spec, "flavorFungibility", _upgrade_fungibility)
    checks = spec.get("admissionChecks")
    spec = without(spec, "admissionChecks")
    if checks:
        rules = [{"name": name} for name in checks]
        return {**spec, "admissionChecksStrategy": {"admissionChecks": rules}}
    strategy = spec.get("admissionChecksStrategy")
    if strategy is not None and not strategy.get("admissionChecks"):
        # v1beta1 allows a strategy without checks, v1beta2 does not; it means no strategy.
        return without(spec, "admissionChecksStrategy")
    return spec


def _upgrade_fungibility(fungibility: Object) -> Object:
    return {
        key: _CURRENT_NAME.get(value, value) if key.startswith("whenCan") else value
        for key, value in fungibility.items()
    }


def _upgrade_cluster_queue_status(status: Object) -> Object:
    status = without(status, "pendingWorkloadsStatus")
    return edited(status, "fairSharing", _without_history)


def _without_history(fair_sharing: Object) -> Object:
    return without(fair_sharing, "admissionFairSharingStatus")


def downgrade_cluster_queue(obj: Object) -> Object:
    """Return a ClusterQueue in v1beta1."""
    return edited(obj, "spec", _downgrade_cluster_queue_spec)


def _downgrade_cluster_queue_spec(spec: Object) -> Object:
    return without(renamed(spec, "cohortName", "cohort"), "concurrentAdmissionPolicy")


def upgrade_cohort(obj: Object) -> Object:
    """Return a Cohort in v1beta2."""
    return edited(obj, "status", lambda s: edited(s, "fairSharing", _without_history))


def downgrade_cohort(obj: Object) -> Object:
    """Return a Cohort in v1beta1; nothing differs but the version."""
    return obj


def upgrade_local_queue(obj: Object) -> Object:
    """Return a LocalQueue in v1beta2."""
    return edited(
        obj, "status", lambda s: without(renamed(s, "flavorUsage", "flavorsUsage"), "flavors")
    )


def downgrade_local_queue(obj: Object) -> Object:
    """Return a LocalQueue in v1beta1."""
    return edited(obj, "status", lambda s: renamed(s, "flavorsUsage", "flavorUsage"))


def upgrade_multikueue_cluster(obj: Object) -> Object:
    """Return a MultiKueueCluster in v1beta2."""
    return edited(obj, "spec", _upgrade_cluster_spec)


def _upgrade_cluster_spec(spec: Object) -> Object:
    source: dict[str, Any] = {}
    kube_config = spec.get("kubeConfig")
    if kube_config is not None and kube_config.get("location"):
        source["kubeConfig"] = kube_config
    if spec.get("clusterProfileRef") is not None:
        source["clusterProfileRef"] = spec["clusterProfileRef"]
    return {**without(spec, "kubeConfig", "clusterProfileRef"), "clusterSource": source}


def downgrade_multikueue_cluster(obj: Object) -> Object:
    """Return a MultiKueueCluster in v1beta1."""
    return edited(obj, "spec", _downgrade_cluster_spec)


def _downgrade_cluster_spec(spec: Object) -> Object:
    source = spec.get("clusterSource") or {}
    # v1beta1 requires kubeConfig; an empty location there stands for its absence.
    kube_config = source.get("kubeConfig") or {"location": "", "locationType": "Secret"}
    out = {**without(spec, "clusterSource"), "kubeConfig": kube_config}
    if source.get("clusterProfileRef") is not None:
        out["clusterProfileRef"] = source["clusterProfileRef"]
    return out
