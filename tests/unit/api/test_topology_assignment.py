"""Domains <-> slices: nothing is lost, and the slices are those of docs/spec/api.md 1.4."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.crd_strategies import domain_lists

from sluice.api import topology_assignment
from sluice.api.errors import InvalidObject
from sluice.api.models.v1beta2.topology_assignment import TopologyAssignment
from sluice.api.topology_assignment import HOSTNAME_LEVEL, Domain, decode, encode


def nodes(*names: str, pods: int = 1) -> list[Domain]:
    """Return domains of a topology whose only level is the node."""
    return [Domain((name,), pods) for name in names]


@given(st.data(), st.integers(1, 3), st.booleans(), st.booleans())
def test_decoding_gives_the_domains_back(
    data: st.DataObject, level_count: int, ends_in_hostname: bool, by_prefix: bool
) -> None:
    levels = [f"level-{i}" for i in range(level_count)]
    if ends_in_hostname:
        levels[-1] = HOSTNAME_LEVEL
    domains = data.draw(domain_lists(level_count, max_size=30))
    encoded = encode(levels, domains, by_hostname_prefix=by_prefix)
    assert decode(encoded) == domains
    assert encoded["levels"] == levels
    TopologyAssignment.model_validate(encoded)


@given(domain_lists(1, max_size=30))
def test_runs_are_never_larger_than_a_single_slice(domains: list[Domain]) -> None:
    by_prefix = encode([HOSTNAME_LEVEL], domains)
    single = encode([HOSTNAME_LEVEL], domains, by_hostname_prefix=False)
    assert len(orjson.dumps(by_prefix)) <= len(orjson.dumps(single))


def test_the_example_of_the_specification() -> None:
    domains = [Domain(("r1", "n-a"), 2), Domain(("r1", "n-b"), 2)]
    assert encode(["rack", HOSTNAME_LEVEL], domains) == {
        "levels": ["rack", HOSTNAME_LEVEL],
        "slices": [
            {
                "domainCount": 2,
                "valuesPerLevel": [
                    {"universal": "r1"},
                    {"individual": {"prefix": "n-", "roots": ["a", "b"]}},
                ],
                "podCounts": {"universal": 2},
            }
        ],
    }


def test_no_domains_make_no_slices() -> None:
    assert encode(["rack"], []) == {"levels": ["rack"], "slices": []}
    assert decode({"levels": ["rack"]}) == []


def test_prefix_gives_way_to_suffix_where_they_overlap() -> None:
    (piece,) = encode(["rack"], [Domain(("aba",), 1), Domain(("ababa",), 2)])["slices"]
    assert piece["valuesPerLevel"] == [{"individual": {"roots": ["", "ab"], "suffix": "aba"}}]
    assert piece["podCounts"] == {"individual": [1, 2]}


def test_each_run_of_a_long_shared_prefix_is_a_slice() -> None:
    pools = [f"very-long-pool-name-{pool}-" for pool in ("alpha", "beta")]
    domains = nodes(*(f"{pool}{i:03}" for pool in pools for i in range(50)))
    slices = encode([HOSTNAME_LEVEL], domains)["slices"]
    assert [piece["domainCount"] for piece in slices] == [50, 50]
    prefixes = [piece["valuesPerLevel"][0]["individual"]["prefix"] for piece in slices]
    assert prefixes == [f"{pool}0" for pool in pools]


def test_interleaved_pools_are_cheaper_in_one_slice() -> None:
    domains = nodes(*(f"{'ab'[i % 2]}-{i}" for i in range(40)))
    assert len(encode([HOSTNAME_LEVEL], domains)["slices"]) == 1


def test_other_levels_are_not_split() -> None:
    pools = [f"very-long-pool-name-{pool}-" for pool in ("alpha", "beta")]
    domains = nodes(*(f"{pool}{i:03}" for pool in pools for i in range(50)))
    assert len(encode(["rack"], domains)["slices"]) == 1


def test_too_many_runs_fall_back_to_shorter_prefixes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_assignment, "SLICES_MAX", 3)
    zones = [f"long-zone-name-{zone}-pool-{pool}-" for zone in "ab" for pool in "xyz"]
    domains = nodes(*(f"{zone}{i}" for zone in zones for i in range(40)))
    slices = encode([HOSTNAME_LEVEL], domains)["slices"]
    assert [piece["domainCount"] for piece in slices] == [120, 120]
    assert decode({"levels": [HOSTNAME_LEVEL], "slices": slices}) == domains


def test_names_that_share_nothing_stay_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_assignment, "SLICES_MAX", 1)
    domains = nodes("a-1", "a-2", "b-1", "b-2")
    assert len(encode([HOSTNAME_LEVEL], domains)["slices"]) == 1


def test_large_slices_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_assignment, "DOMAINS_PER_SLICE_MAX", 4)
    domains = nodes(*(f"node-{i}" for i in range(10)))
    encoded = encode([HOSTNAME_LEVEL], domains)
    assert [piece["domainCount"] for piece in encoded["slices"]] == [4, 4, 2]
    assert decode(encoded) == domains


def test_a_domain_without_a_value_for_each_level_is_refused() -> None:
    with pytest.raises(InvalidObject, match=r"domains\[1\]\.values: .*must have 2 entries"):
        encode(["rack", "host"], [Domain(("r", "h"), 1), Domain(("r",), 1)])


PIECE = {
    "domainCount": 2,
    "valuesPerLevel": [{"individual": {"roots": ["a", "b"]}}],
    "podCounts": {"universal": 1},
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"domainCount": None}, r"slices\[0\].domainCount: Required", id="no count"),
        pytest.param(
            {"valuesPerLevel": []}, r"valuesPerLevel: .* must have 1 entries", id="levels"
        ),
        pytest.param(
            {"valuesPerLevel": [{}]}, r"valuesPerLevel\[0\]: Required", id="neither value"
        ),
        pytest.param(
            {"valuesPerLevel": [{"individual": {"roots": ["a"]}}]}, r"roots: .* 2", id="roots"
        ),
        pytest.param({"podCounts": {}}, "podCounts: Required", id="neither pod count"),
        pytest.param({"podCounts": {"individual": [1]}}, "individual: .* 2", id="pod counts"),
    ],
)
def test_a_slice_that_contradicts_itself_is_refused(
    change: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidObject, match=message):
        decode({"levels": ["rack"], "slices": [{**PIECE, **change}]})
