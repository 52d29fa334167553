"""Ownership after creates, updates and patches."""

import pytest
from tests.unit.local.merge.worlds import Writes, thing

from sluice.local.merge.managed import UPDATE_ENTRIES_MAX


def test_a_creator_owns_what_it_made_with_the_defaults() -> None:
    writes = Writes()
    writes.update("u", thing({"text": "t", "labels": {"k": "v"}}, labels={"l": "1"}))
    assert writes.owned("u", "Update") == {
        "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
        "f:spec": {".": {}, "f:text": {}, "f:count": {}, "f:labels": {".": {}, "f:k": {}}},
    }


def test_an_updater_owns_only_what_it_changed() -> None:
    writes = Writes()
    writes.update("u", thing({"text": "t", "other": "o", "map": [{"name": "n", "size": 1}]}))
    writes.update("v", thing({"text": "t", "other": "p", "map": [{"name": "n", "size": 2}]}))
    assert writes.owned("v", "Update") == {
        "f:spec": {"f:other": {}, "f:map": {'k:{"name":"n"}': {"f:size": {}}}}
    }
    assert writes.owned("u", "Update") == {
        "f:spec": {".": {}, "f:text": {}, "f:count": {},
                   "f:map": {".": {}, 'k:{"name":"n"}': {".": {}, "f:name": {}}}},
    }  # fmt: skip


def test_a_removed_field_has_no_owner() -> None:
    writes = Writes()
    writes.update("u", thing({"text": "t", "other": "o"}))
    writes.update("v", thing({"text": "t"}))
    assert writes.owned("u", "Update") == {"f:spec": {".": {}, "f:text": {}, "f:count": {}}}
    assert writes.owned("v", "Update") is None


def test_status_is_not_owned_through_the_object() -> None:
    writes = Writes()
    writes.update("u", {**thing({"text": "t"}), "status": {"text": "s"}})
    assert "f:status" not in writes.owned("u", "Update")
    writes.update("u", {**thing({"text": "ignored"}), "status": {"text": "s"}}, "status")
    assert writes.owned("u", "Update", "status") == {
        "f:status": {".": {}, "f:text": {}, "f:count": {}}
    }


def test_entries_given_by_the_writer_are_taken() -> None:
    writes = Writes()
    live = writes.update("u", thing({"text": "t"}))
    entries = [{**live["metadata"]["managedFields"][0], "manager": "w"}]
    writes.update("u", thing({"text": "t"}, managedFields=entries))
    assert writes.owned("u", "Update") is None
    assert writes.owned("w", "Update") is not None


@pytest.mark.parametrize("entries", [[{"operation": "Steal"}], [{"operation": "Apply"}]])
def test_malformed_entries_are_ignored(entries: list[dict[str, str]]) -> None:
    writes = Writes()
    writes.update("u", thing({"text": "t"}))
    writes.update("u", thing({"text": "t"}, managedFields=entries))
    assert writes.owned("u", "Update") is not None


def test_old_updaters_are_folded_together() -> None:
    writes = Writes()
    labels: dict[str, str] = {}
    for number in range(UPDATE_ENTRIES_MAX + 5):
        labels = {**labels, f"l{number}": "x"}
        writes.update(f"m{number:02}", thing({"labels": dict(labels)}))
    assert writes.live is not None
    entries = writes.live["metadata"]["managedFields"]
    assert len(entries) == UPDATE_ENTRIES_MAX
    assert "f:l0" in writes.owned("ancient-changes", "Update")["f:spec"]["f:labels"]
