"""Behaviours of the kinds that hold a pod template, but have no controller here."""

from __future__ import annotations

from sluice.local.apiserver.kinds.podspec import default_template
from sluice.local.apiserver.resources import Behaviour
from sluice.local.apiserver.seams import Json


class TemplateBehaviour(Behaviour):
    """A template at `spec.template` and a number of replicas."""

    def default(self, obj: Json) -> None:
        """Fill in the template's defaults and one replica."""
        spec = obj.setdefault("spec", {})
        if obj["kind"] != "DaemonSet":
            spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        default_template(obj, "spec", "template")


class DeploymentBehaviour(TemplateBehaviour):
    """Deployment: strategy and progress deadline."""

    def default(self, obj: Json) -> None:
        """Fill in rolling update defaults."""
        super().default(obj)
        spec = obj["spec"]
        strategy = spec.setdefault("strategy", {})
        strategy.setdefault("type", "RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxSurge", "25%")
            rolling.setdefault("maxUnavailable", "25%")
        spec.setdefault("progressDeadlineSeconds", 600)


class PodTemplateBehaviour(Behaviour):
    """PodTemplate: its template is not below a spec."""

    def default(self, obj: Json) -> None:
        """Fill in the template's defaults."""
        default_template(obj, "template")


class ReplicaSetBehaviour(Behaviour):
    """ReplicaSet: replicas only."""

    def default(self, obj: Json) -> None:
        """Fill in the template's defaults and one replica."""
        obj.setdefault("spec", {}).setdefault("replicas", 1)
        default_template(obj, "spec", "template")


class StatefulSetBehaviour(TemplateBehaviour):
    """StatefulSet: update and management policies."""

    def default(self, obj: Json) -> None:
        """Fill in policies."""
        super().default(obj)
        spec = obj["spec"]
        spec.setdefault("podManagementPolicy", "OrderedReady")
        strategy = spec.setdefault("updateStrategy", {})
        strategy.setdefault("type", "RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
        retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        retention.setdefault("whenDeleted", "Retain")
        retention.setdefault("whenScaled", "Retain")


class DaemonSetBehaviour(TemplateBehaviour):
    """DaemonSet: update strategy."""

    def default(self, obj: Json) -> None:
        """Fill in the strategy."""
        super().default(obj)
        strategy = obj["spec"].setdefault("updateStrategy", {})
        strategy.setdefault("type", "RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxSurge", 0)
            rolling.setdefault("maxUnavailable", 1)
