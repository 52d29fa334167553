"""The generated CRDs as a user installs and sees them: kubectl on the real API server."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.controlplane import KubectlFactory, run_apart
from tests.support.crd_schemas import CRD_DIRECTORY
from tests.support.kubectl import Kubectl
from tests.support.samples import samples
from tests.support.waiting import wait_for

from sluice.api.models.kinds import KINDS
from sluice.kube.client import Client
from sluice.kube.resources import CUSTOM_RESOURCE_DEFINITIONS
from sluice.local.real import RealControlPlane


@pytest.fixture(scope="module")
def kubectl(real_apiserver: RealControlPlane, kubectl_of: KubectlFactory) -> Kubectl:
    """A kubectl for an API server on which the CRDs are installed and served."""
    run = kubectl_of(real_apiserver)
    run_apart(install(run, real_apiserver))
    return run


async def install(run: Kubectl, plane: RealControlPlane) -> None:
    """Apply all definitions and wait until they are served."""
    await run("apply", "--server-side", "-k", str(CRD_DIRECTORY))
    async with Client(plane.access()) as client:
        for kind in KINDS:
            name = f"{kind.plural}.kueue.x-k8s.io"
            await wait_for(client, CUSTOM_RESOURCE_DEFINITIONS, "", is_established, name=name)


def is_established(definition: dict[str, Any]) -> bool:
    """Say whether a definition is served; at first its conditions are null."""
    conditions = definition.get("status", {}).get("conditions") or ()
    return {"Established": "True"}.items() <= {c["type"]: c["status"] for c in conditions}.items()


async def stored(kubectl: Kubectl, sample: dict[str, Any], directory: Path) -> None:
    """Create a sample and its status."""
    sample["metadata"].pop("ownerReferences", None)
    sample["metadata"].pop("finalizers", None)
    file = directory / "object.json"
    file.write_text(json.dumps(sample))
    await kubectl("create", "-f", str(file))
    if "status" in sample:
        await kubectl("replace", "--subresource=status", "-f", str(file))


async def test_every_schema_is_structural(
    kubectl: Kubectl, real_apiserver: RealControlPlane
) -> None:
    async with Client(real_apiserver.access()) as client:
        for kind in KINDS:
            name = f"{kind.plural}.kueue.x-k8s.io"
            definition = await client.get(CUSTOM_RESOURCE_DEFINITIONS, "", name)
            conditions = {c["type"]: c["status"] for c in definition["status"]["conditions"]}
            assert conditions == {"NamesAccepted": "True", "Established": "True"}


async def test_kinds_have_their_short_names(kubectl: Kubectl) -> None:
    listed = await kubectl("api-resources", "--api-group=kueue.x-k8s.io", "--no-headers")
    found = {}
    for line in listed.splitlines():
        plural, short, version, namespaced, kind = line.split()
        found[kind] = (plural, tuple(short.split(",")), version, namespaced == "true")
    assert found == {
        kind.kind: (
            kind.plural,
            kind.short_names,
            "kueue.x-k8s.io/v1beta2",
            kind.scope == "Namespaced",
        )
        for kind in KINDS
    }


async def test_tables_show_what_matters(
    kubectl: Kubectl, real_namespace: str, tmp_path: Path
) -> None:
    run = kubectl.within(real_namespace)
    queue = samples("ClusterQueue", "v1beta2")[0]
    queue["metadata"]["name"] = "shown"
    await stored(run, queue, tmp_path)
    workload = samples("Workload", "v1beta2")[0]
    workload["metadata"]["namespace"] = real_namespace
    await stored(run, workload, tmp_path)
    try:
        wide = (await run("get", "cq", "shown", "-o", "wide")).splitlines()
        assert wide[0].split() == [
            "NAME",
            "COHORT",
            "STRATEGY",
            "PENDING",
            "WORKLOADS",
            "ADMITTED",
            "WORKLOADS",
        ]
        assert wide[1].split() == ["shown", "research", "StrictFIFO", "5", "3"]
        narrow = (await run("get", "cq", "shown", "--no-headers")).split()
        assert narrow == ["shown", "research", "5"]
        for selected, rows in (("full", 1), ("other", 0)):
            selector = f"--field-selector=status.admission.clusterQueue={selected}"
            table = await run("get", "kwl", "--no-headers", "--ignore-not-found", selector)
            assert len(table.splitlines()) == rows
        row = (await run("get", "kwl", "--no-headers")).split()
        assert row[:3] == ["job-full", "main", "full"]
    finally:
        await run("delete", "cq", "shown")


async def test_explain_tells_our_words_and_cores_fields(kubectl: Kubectl) -> None:
    queue = await kubectl("explain", "clusterqueue.spec.stopPolicy")
    assert "HoldAndDrain also evicts them" in " ".join(queue.split())
    template = "workload.spec.podSets.template.spec.containers.resources"
    assert "requests" in await kubectl("explain", template)


async def test_the_old_version_warns(kubectl: Kubectl, tmp_path: Path) -> None:
    flavor = samples("ResourceFlavor", "v1beta1")[0]
    file = tmp_path / "flavor.yaml"
    file.write_text(yaml.safe_dump(flavor))
    result = await kubectl.run("create", "--dry-run=server", "-f", str(file))
    assert result.code == 0, result.err
    assert "This version is deprecated. Use v1beta2 instead." in result.err


def test_each_definition_fits_client_side_apply() -> None:
    for path in sorted(CRD_DIRECTORY.glob("kueue*.yaml")):
        # The annotation that `kubectl apply` writes may hold 256 KiB.
        assert len(json.dumps(yaml.load(path.read_text(), yaml.CSafeLoader))) < 256 * 1024
