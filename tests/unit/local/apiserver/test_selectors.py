"""Label and field selectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.local.apiserver.selectors import matches, parse_fields, parse_labels
from sluice.local.apiserver.status import ApiError

LABELS = {"app": "web", "tier": "front", "n": "5"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app=db", False),
        ("app!=db", True),
        ("app!=web", False),
        ("missing!=x", True),
        ("app", True),
        ("missing", False),
        ("!missing", True),
        ("!app", False),
        ("app in (web,db)", True),
        ("app in (db)", False),
        ("app notin (db, cache)", True),
        ("app notin (web)", False),
        ("missing notin (x)", True),
        ("n>4", True),
        ("n>5", False),
        ("n<6", True),
        ("app>1", False),
        ("app=web,tier=front", True),
        ("app=web,tier=back", False),
        ("app in (web,db),tier!=back,!x", True),
        ("example.com/a=b", False),
        ("app=", False),
    ],
)
def test_label_selectors(text: str, *, expected: bool) -> None:
    assert matches(parse_labels(text), LABELS) is expected


@pytest.mark.parametrize(
    "text", ["a b c", "a=b c", "a in b", "a in (b", "=a", "a>x", "a=(b)", "a!b", ","]
)
def test_a_label_selector_that_makes_no_sense_is_a_bad_request(text: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse_labels(text)
    assert caught.value.code == 400


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("metadata.name=a", True),
        ("metadata.name==a", True),
        ("metadata.name=b", False),
        ("metadata.name!=b", True),
        ("metadata.name=a,spec.nodeName=", True),
        ("metadata.name=a,spec.nodeName!=", False),
        (r"type=x\,y", True),
    ],
)
def test_field_selectors(text: str, *, expected: bool) -> None:
    fields = {"metadata.name": "a", "spec.nodeName": "", "type": "x,y"}
    assert matches(parse_fields(text), fields) is expected


def test_a_field_selector_without_operator_is_a_bad_request() -> None:
    with pytest.raises(ApiError) as caught:
        parse_fields("metadata.name")
    assert caught.value.code == 400


@given(value=st.text(st.characters(categories=("L", "N", "P", "S")), max_size=20))
def test_any_field_value_can_be_escaped(value: str) -> None:
    escaped = value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
    (requirement,) = parse_fields(f"f={escaped}")
    assert requirement.values == {value}
