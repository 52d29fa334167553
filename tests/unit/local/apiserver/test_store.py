"""The store's history: every earlier state can be had back while history reaches it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.clock import ManualClock
from sluice.local.apiserver.status import ApiError
from sluice.local.apiserver.store import ChangeType, Collection, Key, Store

OPERATIONS = st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=40)


def thing(name: str, value: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "metadata": {"name": name, "uid": name}, "value": value}


def write(store: Store, collection: Collection, name: str, value: int, *, remove: bool) -> None:
    key = Key("", name)
    if remove and key in collection.objects:
        store.remove(collection, key)
    else:
        store.put(collection, key, thing(name, value), {})


def values(states: Any) -> dict[str, int]:
    return {key.name: state.load()["value"] for key, state in states.items()}


@given(operations=OPERATIONS)
def test_each_revision_can_be_seen_again(operations: list[tuple[str, bool]]) -> None:
    store = Store(ManualClock())
    collection = store.collection("", "things")
    seen = {store.revision: values(collection.objects)}
    for value, (name, remove) in enumerate(operations):
        write(store, collection, name, value, remove=remove)
        seen[store.revision] = values(collection.objects)
    for revision, expected in seen.items():
        assert values(collection.snapshot(revision)) == expected


@given(operations=OPERATIONS, cut=st.integers(0, 40))
def test_changes_after_a_revision_lead_to_the_present(
    operations: list[tuple[str, bool]], cut: int
) -> None:
    store = Store(ManualClock())
    collection = store.collection("", "things")
    start, at_cut = store.revision, values(collection.objects)
    for value, (name, remove) in enumerate(operations):
        write(store, collection, name, value, remove=remove)
        if value == cut:
            start, at_cut = store.revision, values(collection.objects)
    position = collection.position_after(start)
    assert position is not None
    for change in collection.since(position) or ():
        assert change.revision > start
        if change.type is ChangeType.DELETED:
            del at_cut[change.new.key.name]
        else:
            at_cut[change.new.key.name] = change.new.load()["value"]
    assert at_cut == values(collection.objects)


def test_history_is_bounded_and_says_when_it_is_gone() -> None:
    store = Store(ManualClock(), changes_max=10)
    collection = store.collection("", "things")
    first = store.revision
    for value in range(100):
        write(store, collection, "a", value, remove=False)
    assert collection.position_after(first) is None
    assert collection.since(0) is None
    with pytest.raises(ApiError, match="too old resource version") as caught:
        collection.snapshot(first)
    assert caught.value.code == 410
    kept = collection.position_after(store.revision - 5)
    assert kept is not None
    assert len(collection.since(kept) or ()) == 5


def test_compaction_forgets_every_collection() -> None:
    store = Store(ManualClock())
    for plural in ("things", "others"):
        write(store, store.collection("", plural), "a", 1, remove=False)
    store.compact()
    for plural in ("things", "others"):
        collection = store.collection("", plural)
        assert collection.position_after(store.revision - 1) is None
        assert collection.position_after(store.revision) == collection.position


def test_a_deletion_has_a_revision_of_its_own() -> None:
    store = Store(ManualClock())
    collection = store.collection("", "things")
    write(store, collection, "a", 1, remove=False)
    last = store.remove(collection, Key("", "a"))
    assert last.revision == store.revision
    assert last.load()["metadata"]["resourceVersion"] == str(store.revision)


def test_objects_of_a_namespace_come_in_order() -> None:
    store = Store(ManualClock())
    collection = store.collection("", "things")
    for namespace, name in (("b", "x"), ("a", "z"), ("a", "y"), ("ab", "w")):
        store.put(collection, Key(namespace, name), thing(name, 0), {})
    assert [s.key.name for s in collection.select("a")] == ["y", "z"]
    assert [s.key for s in collection.select("")] == sorted(collection.objects)


def test_a_stored_object_cannot_be_changed_by_its_readers() -> None:
    store = Store(ManualClock())
    collection = store.collection("", "things")
    stored = store.put(collection, Key("", "a"), thing("a", 1), {})
    stored.load()["value"] = 2
    assert stored.load()["value"] == 1


def test_a_future_revision_is_refused() -> None:
    store = Store(ManualClock())
    with pytest.raises(ApiError) as caught:
        store.check_reached(store.revision + 1)
    assert caught.value.code == 504
    assert caught.value.details is not None
    assert caught.value.details["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_old_changes_are_forgotten_in_time() -> None:
    clock = ManualClock()
    store = Store(clock)
    collection = store.collection("", "things")
    for value in range(20):
        clock.advance(60_000)
        write(store, collection, "a", value, remove=False)
    position = collection.position_after(store.revision - 4)
    assert position is not None
    assert collection.position_after(2) is None
    assert len(collection.since(position) or ()) == 4
