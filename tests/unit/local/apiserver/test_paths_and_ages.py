"""JSONPath of printer columns, ages in tables, request paths and Accept headers."""

import pytest

from sluice.local.apiserver.ages import age, format_time, human, parse_time
from sluice.local.apiserver.calls import Shape, parse_accept, parse_path
from sluice.local.apiserver.jsonpath import compile_path
from sluice.local.apiserver.status import ApiError

OBJECT = {
    "metadata": {"name": "a", "annotations": {"x.y/z": "1"}},
    "spec": {"list": [{"n": "p", "v": 1}, {"n": "q", "v": 2}], "empty": []},
    "status": {"conditions": [{"type": "Ready", "status": "True", "ok": True}]},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".metadata.name", "a"),
        ("{.metadata.name}", "a"),
        ("$.metadata.name", "a"),
        (".spec.list[1].v", 2),
        (".spec.list[-1].n", "q"),
        (".spec.list[7].n", None),
        (".spec.list[*].n", "p"),
        (".spec.empty[*].n", None),
        (".status.conditions[?(@.type=='Ready')].status", "True"),
        ('.status.conditions[?(@.type=="Other")].status', None),
        (".spec.list[?(@.v==2)].n", "q"),
        (".spec.list[?(@.n!='p')].n", "q"),
        (".status.conditions[?(@.ok==true)].type", "Ready"),
        (r".metadata.annotations.x\.y/z", "1"),
        (".metadata.annotations['x.y/z']", "1"),
        (".nothing.here", None),
    ],
)
def test_paths(path: str, expected: object) -> None:
    assert compile_path(path)(OBJECT) == expected


@pytest.mark.parametrize("path", ["metadata", ".a[", ".a[?(@.b)]", ".a[b]"])
def test_a_path_outside_the_subset_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is not understood"):
        compile_path(path)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600 + 60, "8h"),
        (47 * 3600, "47h"),
        (49 * 3600, "2d1h"),
        (8 * 86400, "8d"),
        (800 * 86400, "2y70d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_durations(seconds: int, shown: str) -> None:
    assert human(seconds) == shown


def test_ages() -> None:
    assert age("2026-01-01T00:00:00Z", 1767225605.0) == "5s"
    assert age("nonsense", 0) == "<unknown>"
    assert parse_time(format_time(1767225600.9)) == 1767225600


def test_request_paths() -> None:
    def parts(path: str) -> tuple[str, ...]:
        target = parse_path(path)
        assert target is not None
        return (
            target.group,
            target.version,
            target.namespace,
            target.plural,
            target.name,
            target.subresource,
        )

    assert parts("/api/v1/pods") == ("", "v1", "", "pods", "", "")
    assert parts("/api/v1/namespaces") == ("", "v1", "", "namespaces", "", "")
    assert parts("/api/v1/namespaces/x") == ("", "v1", "", "namespaces", "x", "")
    assert parts("/api/v1/namespaces/x/status") == ("", "v1", "", "namespaces", "x", "status")
    assert parts("/api/v1/namespaces/x/pods") == ("", "v1", "x", "pods", "", "")
    assert parts("/apis/a.b/v1/namespaces/x/ws/y/status") == ("a.b", "v1", "x", "ws", "y", "status")
    assert parts("/apis/g/v1/roles/a%3Ab") == ("g", "v1", "", "roles", "a:b", "")
    assert parse_path("/version") is None
    assert parse_path("/api/v1/namespaces/x/pods/a/b/c") is None


@pytest.mark.parametrize(
    ("header", "shape"),
    [
        ("", Shape.WHOLE),
        ("*/*", Shape.WHOLE),
        ("application/vnd.kubernetes.protobuf,application/json", Shape.WHOLE),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Shape.TABLE),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", Shape.WHOLE),
        ("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", Shape.METADATA),
        ("application/json;as=Unknown;v=v1,application/json;as=Table;v=v1", Shape.TABLE),
    ],
)
def test_accept_headers(header: str, shape: Shape) -> None:
    assert parse_accept(header) is shape


@pytest.mark.parametrize("header", ["application/vnd.kubernetes.protobuf", "application/cbor"])
def test_a_client_that_takes_no_json_is_told(header: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse_accept(header)
    assert caught.value.code == 406
