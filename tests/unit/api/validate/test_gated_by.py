"""docs/spec/api.md 2.3.3: the annotation admission-gated-by."""

import pytest

from sluice.api.validate import gated_by

KEY = "kueue.x-k8s.io/admission-gated-by"
PATH = f"metadata.annotations[{KEY}]"
LONG = "example.com/" + "x" * 52


def gates(text: str | None) -> dict[str, str]:
    return {} if text is None else {KEY: text}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, []),
        ("", []),
        ("  ", []),
        ("example.com/a, example.com/b", []),
        (
            "example.com/a,",
            [f'{PATH}: Invalid value: "example.com/a,": cannot contain empty gate names'],
        ),
        (
            "example.com/a,example.com/a",
            [
                f'{PATH}: Invalid value: "example.com/a,example.com/a": '
                "duplicate gate name: example.com/a"
            ],
        ),
        (
            "nodomain",
            [
                f'{PATH}: Invalid value: "nodomain": '
                'must be a domain-prefixed path (such as "acme.io/foo")'
            ],
        ),
        (LONG, [f"{PATH}: Too long: may not be more than 63 bytes"]),
    ],
)
def test_create(text: str | None, expected: list[str]) -> None:
    assert [str(error) for error in gated_by.on_create(gates(text))] == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a.io/x,a.io/y", "a.io/y", []),
        ("a.io/x", None, []),
        ("a.io/x", "", []),
        (None, " ", []),
        (None, "a.io/x", [f"{PATH}: Forbidden: cannot add admission gate after creation"]),
        ("", "a.io/x", [f"{PATH}: Forbidden: cannot add admission gate after creation"]),
        (
            "a.io/x",
            "a.io/x,a.io/y",
            [f"{PATH}: Forbidden: can only remove gates, not add new ones"],
        ),
        (
            "a.io/x,y",
            "y",
            [f'{PATH}: Invalid value: "y": must be a domain-prefixed path (such as "acme.io/foo")'],
        ),
    ],
)
def test_update(old: str | None, new: str | None, expected: list[str]) -> None:
    assert [str(error) for error in gated_by.on_update(gates(old), gates(new))] == expected
