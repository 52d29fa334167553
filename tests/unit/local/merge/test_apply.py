"""Server-side apply: what is merged, owned, refused, given up and removed."""

from typing import Any

import pytest
from tests.unit.local.merge.worlds import API_VERSION, NOW, Writes, thing

from sluice.local.apiserver.status import ApiError


def test_an_applier_owns_what_it_states_and_no_more() -> None:
    writes = Writes()
    live = writes.apply("a", thing({
        "text": "t", "atomic": ["x"], "set": ["s"], "map": [{"name": "n", "size": 1}],
        "labels": {"k": "v"}, "whole": {"k": "v"}, "struct": {"a": "1"}, "free": {"x": [1]},
    }, labels={"l": "1"}))  # fmt: skip
    assert live["spec"]["count"] == 1
    assert live["metadata"]["managedFields"] == [{
        "manager": "a", "operation": "Apply", "apiVersion": API_VERSION, "time": NOW,
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {"f:labels": {"f:l": {}}},
            "f:spec": {
                "f:text": {}, "f:atomic": {}, "f:set": {'v:"s"': {}},
                "f:map": {'k:{"name":"n"}': {".": {}, "f:name": {}, "f:size": {}}},
                "f:labels": {"f:k": {}}, "f:whole": {}, "f:struct": {"f:a": {}},
                "f:free": {"f:x": {}},
            },
        },
    }]  # fmt: skip


def test_a_field_no_longer_applied_is_removed() -> None:
    writes = Writes()
    writes.apply("a", thing({"text": "t", "labels": {"k": "v", "l": "w"}, "set": ["s", "t"]}))
    live = writes.apply("a", thing({"labels": {"l": "w"}, "set": ["t"]}))
    assert live["spec"] == {"count": 1, "labels": {"l": "w"}, "set": ["t"]}


def test_a_field_that_another_applier_states_too_stays() -> None:
    writes = Writes()
    writes.apply("a", thing({"text": "t", "map": [{"name": "n", "size": 1}]}))
    writes.apply("b", thing({"text": "t", "map": [{"name": "n", "note": "x"}]}))
    live = writes.apply("a", thing({}))
    assert live["spec"] == {"count": 1, "text": "t", "map": [{"name": "n", "note": "x"}]}
    assert writes.owned("a", "Apply") == {"f:spec": {}}


def test_a_list_emptied_of_ones_own_items_disappears() -> None:
    writes = Writes()
    writes.apply("a", thing({"map": [{"name": "n"}]}))
    assert writes.apply("a", thing({}))["spec"] == {"count": 1}


def test_changing_anothers_field_is_a_conflict_that_names_it() -> None:
    writes = Writes()
    writes.apply("a", thing({"text": "t", "map": [{"name": "n", "size": 1}]}))
    with pytest.raises(ApiError) as caught:
        writes.apply("b", thing({"text": "u", "map": [{"name": "n", "size": 2}]}))
    assert caught.value.code == 409
    assert caught.value.to_status()["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "a"',
         "field": '.spec.map[name="n"].size'},
        {"reason": "FieldManagerConflict", "message": 'conflict with "a"', "field": ".spec.text"},
    ]  # fmt: skip
    assert caught.value.message == (
        'Apply failed with 2 conflicts: conflicts with "a":\n'
        '- .spec.map[name="n"].size\n- .spec.text'
    )


def test_a_conflict_with_an_updater_tells_version_and_time() -> None:
    writes = Writes()
    writes.update("u", thing({"text": "t"}))
    with pytest.raises(ApiError) as caught:
        writes.apply("b", thing({"text": "u"}))
    assert caught.value.message == (
        f'Apply failed with 1 conflict: conflict with "u" using {API_VERSION} at {NOW}: .spec.text'
    )


def test_force_takes_the_field_over() -> None:
    writes = Writes()
    writes.apply("a", thing({"text": "t", "other": "o"}))
    live = writes.apply("b", thing({"text": "u"}), force=True)
    assert live["spec"]["text"] == "u"
    assert writes.owned("a", "Apply") == {"f:spec": {"f:other": {}}}
    assert writes.owned("b", "Apply") == {"f:spec": {"f:text": {}}}


def test_the_same_value_is_shared() -> None:
    writes = Writes()
    writes.apply("a", thing({"text": "t"}))
    writes.apply("b", thing({"text": "t"}))
    assert writes.owned("a", "Apply") == writes.owned("b", "Apply") == {"f:spec": {"f:text": {}}}


def test_items_keep_their_places_and_new_ones_follow_the_configuration() -> None:
    writes = Writes()
    writes.apply("a", thing({"map": [{"name": "x"}, {"name": "y"}]}))
    live = writes.apply("b", thing({"map": [{"name": "z"}, {"name": "y", "size": 1}]}))
    names = [item["name"] for item in live["spec"]["map"]]
    assert names == ["x", "z", "y"]


def test_ownership_of_status_is_apart_from_that_of_the_object() -> None:
    writes = Writes()
    writes.apply("a", thing({"text": "t"}))
    live = writes.apply("a", {**thing(), "status": {"text": "s"}}, "status")
    assert (live["spec"]["text"], live["status"]["text"]) == ("t", "s")
    assert writes.owned("a", "Apply") == {"f:spec": {"f:text": {}}}
    assert writes.owned("a", "Apply", "status") == {"f:status": {"f:text": {}}}
    live = writes.apply("a", {**thing(), "status": {"other": "o"}}, "status")
    assert live["status"] == {"other": "o", "count": 1}


def test_fields_of_an_object_without_owners_belong_to_its_past() -> None:
    writes = Writes()
    writes.update("u", thing({"text": "t"}))
    writes.update("u", thing({"text": "t"}, managedFields=[{}]))
    assert writes.owned("u", "Update") is None
    writes.update("u", thing({"text": "v"}))
    assert writes.owned("u", "Update") is None
    with pytest.raises(ApiError) as caught:
        writes.apply("a", thing({"text": "w"}))
    assert 'conflict with "before-first-apply"' in caught.value.message


def test_one_item_named_twice_is_refused() -> None:
    with pytest.raises(ApiError, match="duplicate entries for key"):
        Writes().apply("a", thing({"map": [{"name": "n"}, {"name": "n"}]}))


def test_applying_the_same_again_changes_nothing() -> None:
    writes = Writes()
    config: dict[str, Any] = {"text": "t", "map": [{"name": "n", "size": 1}]}
    first = writes.apply("a", thing(dict(config)))
    assert writes.apply("a", thing(dict(config))) == first
