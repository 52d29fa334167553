"""The models: what goes in comes out, and what breaks a bound is refused with its path."""

import os
import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError
from tests.support.crd_schemas import node_paths, root_schema, value_paths
from tests.support.samples import VERSIONS, samples, version_id

from sluice.api.models.kinds import KINDS, Kind, Version

MODEL = {(k.kind, v.name): v.model for k, v in VERSIONS}


@pytest.mark.parametrize("case", VERSIONS, ids=version_id)
def test_samples_come_out_as_they_went_in(case: tuple[Kind, Version]) -> None:
    kind, version = case
    for sample in samples(kind.kind, version.name):
        assert version.model.model_validate(sample).to_wire() == sample


@pytest.mark.parametrize("case", VERSIONS, ids=version_id)
def test_samples_set_every_field_of_the_crd(case: tuple[Kind, Version]) -> None:
    kind, version = case
    set_somewhere = {
        path for sample in samples(kind.kind, version.name) for path in value_paths(sample)
    }
    assert set(node_paths(root_schema(kind.kind, version.name))) - set_somewhere == set()


@pytest.mark.parametrize(
    ("kind", "path", "value", "expected"),
    [
        pytest.param("Topology", ("spec", "levels"), [], "at least 1 item", id="too few items"),
        pytest.param(
            "Topology", ("spec", "levels", 0, "nodeLabel"), "/", "match pattern", id="pattern"
        ),
        pytest.param("ClusterQueue", ("spec", "stopPolicy"), "hold", "'HoldAndDrain'", id="enum"),
        pytest.param("ClusterQueue", ("spec", "cohort"), "a", "not permitted", id="unknown field"),
        pytest.param(
            "ClusterQueue", ("spec", "fairSharing", "weight"), "1 cpu", "quantity", id="quantity"
        ),
        pytest.param(
            "ClusterQueue", ("status", "pendingWorkloads"), 2**31, "less than", id="int32"
        ),
        pytest.param("ClusterQueue", ("status", "pendingWorkloads"), "5", "integer", id="strict"),
        pytest.param(
            "Workload",
            ("status", "requeueState", "requeueAt"),
            "yesterday",
            "RFC 3339",
            id="time",
        ),
    ],
)
def test_a_broken_bound_is_refused(
    kind: str, path: tuple[str | int, ...], value: Any, expected: str
) -> None:
    sample: Any = samples(kind, "v1beta2")[0]
    *parents, last = path
    target = sample
    for step in parents:
        target = target[step]
    target[last] = value
    with pytest.raises(ValidationError) as caught:
        MODEL[kind, "v1beta2"].model_validate(sample)
    errors = caught.value.errors()
    assert all(error["loc"][: len(path)] == path for error in errors)
    assert any(expected in error["msg"] for error in errors)


def test_defaults_are_those_of_the_crd() -> None:
    minimal = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "spec": {}}
    queue = MODEL["ClusterQueue", "v1beta2"].model_validate(minimal)
    dumped = queue.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert dumped["spec"] == {
        "queueingStrategy": "BestEffortFIFO",
        "flavorFungibility": {
            "whenCanBorrow": "MayStopSearch",
            "whenCanPreempt": "TryNextFlavor",
        },
        "preemption": {
            "reclaimWithinCohort": "Never",
            "borrowWithinCohort": {"policy": "Never"},
            "withinClusterQueue": "Never",
        },
        "stopPolicy": "None",
    }
    assert queue.to_wire() == minimal


def test_every_kind_has_one_stored_version() -> None:
    assert {kind.stored.name for kind in KINDS} == {"v1beta2"}


def test_the_api_layer_does_without_the_kubernetes_client() -> None:
    program = (
        "import sys, sluice.api.models, sluice.api.crds, sluice.api.conversion;"
        "sys.exit('kubernetes' in sys.modules)"
    )
    search_path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {**os.environ, "PYTHONPATH": search_path}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
