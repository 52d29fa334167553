"""Field errors, conditions, times and keys."""

import pytest

from sluice.api import conditions, errors, names, times


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            errors.invalid("spec.a", -1, "must be positive"),
            "spec.a: Invalid value: -1: must be positive",
        ),
        (errors.invalid("spec.a", "x", "bad"), 'spec.a: Invalid value: "x": bad'),
        (errors.required("spec.b", "must be set"), "spec.b: Required value: must be set"),
        (errors.duplicate("spec.c[1]", "cpu"), 'spec.c[1]: Duplicate value: "cpu"'),
        (errors.forbidden("spec.d", "no"), "spec.d: Forbidden: no"),
        (errors.not_found("spec.e", "x"), 'spec.e: Not found: "x"'),
        (
            errors.not_supported("spec.f", "x", ["a", "b"]),
            'spec.f: Unsupported value: "x": supported values: "a", "b"',
        ),
        (errors.too_long("spec.g", 63), "spec.g: Too long: may not be more than 63 bytes"),
        (errors.too_many("spec.h", 17, 16), "spec.h: Too many: 17: must have at most 16 items"),
        (errors.too_many("spec.i", 2, 1), "spec.i: Too many: 2: must have at most 1 item"),
    ],
)
def test_field_error_texts(error: errors.FieldError, text: str) -> None:
    assert str(error) == text


def test_several_errors_are_joined_and_duplicates_dropped() -> None:
    one, two = errors.forbidden("a", "x"), errors.forbidden("b", "y")
    assert errors.aggregate([one, two, one]) == "[a: Forbidden: x, b: Forbidden: y]"
    assert errors.aggregate([one, one]) == "a: Forbidden: x"
    assert str(errors.InvalidObject([one])) == "a: Forbidden: x"


def test_a_condition_keeps_its_transition_time_while_the_status_stays() -> None:
    first = conditions.set_condition(
        [], kind="Admitted", status="True", reason="Admitted", message="m", now_ms=1_000
    )
    second = conditions.set_condition(
        first, kind="Admitted", status="True", reason="Other", message="n", now_ms=9_000
    )
    third = conditions.set_condition(
        second, kind="Admitted", status="False", reason="Other", message="n", now_ms=9_000
    )
    assert [c[0]["lastTransitionTime"] for c in (first, second, third)] == [
        "1970-01-01T00:00:01Z",
        "1970-01-01T00:00:01Z",
        "1970-01-01T00:00:09Z",
    ]
    assert conditions.is_true(second, "Admitted")
    assert conditions.is_false(third, "Admitted")
    assert conditions.status_of(third, "Evicted") is None
    assert first[0]["reason"] == "Admitted", "the given list is left alone"


def test_long_messages_are_cut() -> None:
    condition = conditions.set_condition(
        [], kind="Finished", status="True", reason="Failed", message="é" * 40_000, now_ms=0
    )[0]
    assert len(condition["message"].encode()) <= conditions.MESSAGE_LENGTH_MAX
    assert condition["message"].endswith(" ...")


def test_lists_that_say_the_same_are_the_same() -> None:
    a = conditions.set_condition([], kind="A", status="True", reason="R", message="", now_ms=0)
    ab = conditions.set_condition(a, kind="B", status="True", reason="R", message="", now_ms=0)
    ba = [ab[1], {**ab[0], "lastTransitionTime": "1970-01-01T00:00:05Z"}]
    assert conditions.same(ab, ba)
    assert not conditions.same(a, ab)
    assert conditions.same(conditions.remove(ab, "B"), a)


def test_times_read_back() -> None:
    assert times.to_ms("2026-01-01T12:00:01Z") == 1_767_268_801_000
    assert times.to_ms("2026-01-01T13:00:01.25+01:00") == 1_767_268_801_250
    assert times.from_ms(1_767_268_801_999) == "2026-01-01T12:00:01Z"
    assert times.micro_from_ms(1_767_268_801_250) == "2026-01-01T12:00:01.250000Z"
    with pytest.raises(ValueError, match="zone"):
        times.to_ms("2026-01-01T12:00:01")


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("1h30m", 5_400_000),
        ("45s", 45_000),
        ("500ms", 500),
        ("0", 0),
        ("1.5s", 1_500),
        ("-2s", -2_000),
    ],
)
def test_durations(text: str, duration_ms: int) -> None:
    assert times.duration_ms(text) == duration_ms


@pytest.mark.parametrize("text", ["", "5", "s", "1h 30m", "1x", "5s!"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        times.duration_ms(text)


def test_keys_split_again() -> None:
    assert names.split_key(names.key("ns", "a")) == ("ns", "a")
    assert names.split_key(names.key("", "cluster")) == ("", "cluster")
