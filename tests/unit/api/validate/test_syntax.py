"""Names, label keys and values, selectors and conditions, with Kubernetes' texts."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.api.validate import syntax
from sluice.api.validate.conditions import condition_list
from sluice.api.validate.node import Node

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NAME = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("team-a.example.com", ()),
        ("a" * 253, ()),
        ("a" * 254, ("must be no more than 253 bytes",)),
        ("", (SUBDOMAIN,)),
        ("Team", (SUBDOMAIN,)),
        ("team\n", (SUBDOMAIN,)),
        ("a..b", (SUBDOMAIN,)),
    ],
)
def test_dns_subdomain(text: str, problems: tuple[str, ...]) -> None:
    assert syntax.dns_subdomain(text) == problems


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("cpu", ()),
        ("example.com/My_Name.1", ()),
        ("/x", ("prefix part must be non-empty",)),
        ("A.b/x", (f"prefix part {SUBDOMAIN}",)),
        ("", ("name part must be non-empty", f"name part {NAME}")),
        ("example.com/", ("name part must be non-empty", f"name part {NAME}")),
        ("x" * 64, ("name part must be no more than 63 bytes",)),
        ("é", (f"name part {NAME}",)),
    ],
)
def test_qualified_name(text: str, problems: tuple[str, ...]) -> None:
    assert syntax.qualified_name(text) == problems


def test_lengths_are_in_bytes() -> None:
    assert syntax.label_value("é" * 32)[0] == "must be no more than 63 bytes"


@settings(deadline=None)
@given(st.text(string.ascii_letters + string.digits + "-_./", max_size=70))
def test_a_label_value_is_what_can_be_the_name_of_a_key(text: str) -> None:
    is_value = not syntax.label_value(text)
    assert is_value == (text == "" or (not syntax.qualified_name(text) and "/" not in text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("example.com/gate", []),
        ("", ["p: Required value"]),
        (
            "gate",
            ['p: Invalid value: "gate": must be a domain-prefixed path (such as "acme.io/foo")'],
        ),
        ("A/gate", [f'p: Invalid value: "A": {SUBDOMAIN}']),
        (
            "a/b c",
            [
                'p: Invalid value: "b c": Invalid path (regex used for validation is '
                r"'[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')"
            ],
        ),
    ],
)
def test_domain_prefixed_path(text: str, expected: list[str]) -> None:
    assert [str(error) for error in syntax.domain_prefixed_path("p", text)] == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, []),
        ({"matchLabels": {"a": "b"}}, []),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x"]}]}, []),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
            [
                "s.matchExpressions[0].values: Forbidden: "
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            ],
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
            ['s.matchExpressions[0].operator: Invalid value: "Gt": not a valid selector operator'],
        ),
        (
            {"matchExpressions": [{"key": "", "operator": "Exists"}]},
            [
                's.matchExpressions[0].key: Invalid value: "": name part must be non-empty',
                f's.matchExpressions[0].key: Invalid value: "": name part {NAME}',
            ],
        ),
    ],
)
def test_label_selector(selector: dict[str, object], expected: list[str]) -> None:
    assert [str(error) for error in syntax.label_selector(Node(selector, "s"))] == expected


def test_label_selector_values_have_label_syntax() -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["ok", "n o"]}]}
    (error,) = syntax.label_selector(Node(selector, "s"))
    assert str(error).startswith('s.matchExpressions[0].values[1]: Invalid value: "n o": a valid')


def test_annotations_are_bounded_together() -> None:
    (error,) = syntax.annotation_map("p", {"A.example.com/KEY": "x" * 262144})
    assert str(error) == "p: Too long: may not be more than 262144 bytes"


CONDITION = {
    "type": "Admitted",
    "status": "True",
    "reason": "Admitted",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        (
            {"status": "Yes"},
            ['c[0].status: Unsupported value: "Yes": supported values: "False", "True", "Unknown"'],
        ),
        ({"lastTransitionTime": None}, ["c[0].lastTransitionTime: Required value"]),
        ({"reason": ""}, ["c[0].reason: Required value"]),
        (
            {"observedGeneration": -1},
            ["c[0].observedGeneration: Invalid value: -1: must be greater than or equal to zero"],
        ),
        (
            {"message": "x" * 32769},
            ["c[0].message: Too long: may not be more than 32768 bytes"],
        ),
        ({"reason": "x" * 1025}, ["c[0].reason: Too long: may not be more than 1024 bytes"]),
        (
            {"reason": "no spaces"},
            [
                'c[0].reason: Invalid value: "no spaces": a condition reason must start with '
                "alphabetic character, optionally followed by a string of alphanumeric characters "
                "or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or "
                "'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used "
                "for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
            ],
        ),
    ],
)
def test_conditions(changes: dict[str, object], expected: list[str]) -> None:
    nodes = [Node({**CONDITION, **changes}, "c[0]")]
    assert [str(error) for error in condition_list("c", nodes)] == expected


def test_a_condition_type_stands_once() -> None:
    nodes = [Node(CONDITION, f"c[{i}]") for i in range(2)]
    assert [str(e) for e in condition_list("c", nodes)] == [
        'c[1].type: Duplicate value: "Admitted"'
    ]
