"""The kubeconfig of a local control plane: private, removed, and nobody else's file."""

from pathlib import Path

import pytest

from sluice.api.errors import ConfigError
from sluice.local import kubeconfigs

OURS = b"clusters: [{name: sluice}]\n"
OTHERS = [
    b"clusters: [{name: production}]\n",
    b"clusters: [{name: sluice}, {name: production}]\n",
    b"some notes\n",
    b"clusters: []\n",
    b"\xff\xfe",
    b"a: [",
]


def test_only_its_owner_reads_it_and_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "new" / "kubeconfig"
    with kubeconfigs.lent(path, OURS):
        assert path.read_bytes() == OURS
        assert path.stat().st_mode & 0o077 == 0
    assert not path.exists()


def test_one_that_was_left_behind_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    for left in (b"", OURS):
        path.write_bytes(left)
        path.chmod(0o644)
        kubeconfigs.write(path, OURS + b"# new\n")
        assert path.read_bytes().endswith(b"# new\n")
        assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", OTHERS)
def test_another_file_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kubeconfig"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="is not the kubeconfig of a local control plane"):
        kubeconfigs.write(path, OURS)
    assert path.read_bytes() == content


def test_one_that_was_changed_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    with kubeconfigs.lent(path, OURS):
        path.write_bytes(OTHERS[0])
    assert path.read_bytes() == OTHERS[0]


def test_one_that_was_removed_meanwhile_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    with kubeconfigs.lent(path, OURS):
        path.unlink()


def test_real_clusters_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in (tmp_path / ".kube" / "config", Path("~/.kube/config")):
        with pytest.raises(ConfigError, match="is for real clusters"):
            kubeconfigs.write(path, OURS)
    assert not (tmp_path / ".kube").exists()


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"kubeconfig can't be written: .*file: File exists"):
        kubeconfigs.write(tmp_path / "file" / "kubeconfig", OURS)
