"""The generator: what it writes is what is committed, and it deletes only its own files."""

from pathlib import Path

import pytest
import yaml

from sluice.cli.generate import HEADER, generate, main

CRDS = Path(__file__).parents[3] / "manifests/crds"


@pytest.mark.slow
def test_what_is_committed_is_what_it_writes(tmp_path: Path) -> None:
    written = generate(tmp_path)
    assert {p.name: p.read_text() for p in written} == {
        path.name: path.read_text() for path in CRDS.glob("*.yaml")
    }


@pytest.mark.slow
def test_only_its_own_stale_files_are_removed(tmp_path: Path) -> None:
    (tmp_path / "stale.yaml").write_text(f"{HEADER}kind: Gone\n")
    (tmp_path / "other.yaml").write_text("kind: Other\n")
    assert main([str(tmp_path)]) == 0
    assert not (tmp_path / "stale.yaml").exists()
    assert (tmp_path / "other.yaml").exists()


def test_a_second_argument_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["a", "b"]) == 2
    assert "usage" in capsys.readouterr().err


def test_the_kustomization_lists_every_definition() -> None:
    listed = yaml.safe_load((CRDS / "kustomization.yaml").read_text())["resources"]
    assert sorted(listed) == sorted(path.name for path in CRDS.glob("*_*.yaml"))


def test_definitions_have_no_anchors() -> None:
    for path in CRDS.glob("*_*.yaml"):
        text = path.read_text()
        assert "&id" not in text
        assert "*id" not in text
