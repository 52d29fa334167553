"""Feature gates: names, locks, dependencies (docs/spec/api.md 7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.api.errors import ConfigError
from sluice.api.feature_gates import DEFAULT_GATES, GATES, Stage, parse_flag, resolve


def test_defaults_satisfy_their_own_dependencies() -> None:
    assert resolve({}) == DEFAULT_GATES
    assert DEFAULT_GATES.changed() == {}


def test_every_dependency_names_a_gate() -> None:
    assert all(needed in GATES for gate in GATES.values() for needed in gate.requires)


def test_a_gate_is_set() -> None:
    gates = resolve({"PriorityBoost": True, "PartialAdmission": False})
    assert gates.enabled("PriorityBoost")
    assert gates.changed() == {"PriorityBoost": True, "PartialAdmission": False}


def test_an_unknown_gate_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="unknown feature gate PrioBoost; did you mean Priority"):
        resolve({"PrioBoost": True})


def test_a_locked_gate_keeps_its_value() -> None:
    resolve({"TLSOptions": True})
    with pytest.raises(ConfigError, match="TLSOptions is locked to true"):
        resolve({"TLSOptions": False})


def test_turning_off_what_others_need_names_them() -> None:
    with pytest.raises(ConfigError, match="TASMultiLayerTopology needs TopologyAwareScheduling"):
        resolve({"TopologyAwareScheduling": False})
    dependents = {n: False for n, g in GATES.items() if "TopologyAwareScheduling" in g.requires}
    assert not resolve({"TopologyAwareScheduling": False, **dependents}).enabled("TASProfileMixed")


def test_a_stage_is_set_as_a_whole_and_single_gates_win() -> None:
    gates = resolve({"AllAlpha": True, "PriorityBoost": False})
    assert gates.enabled("ConcurrentAdmission")
    assert not gates.enabled("PriorityBoost")


@given(st.dictionaries(st.sampled_from(sorted(GATES)), st.booleans(), max_size=6))
def test_what_is_taken_holds_every_rule(settings: dict[str, bool]) -> None:
    try:
        gates = resolve(settings)
    except ConfigError:
        return
    for name, on in settings.items():
        assert gates.enabled(name) is on
    for name, gate in GATES.items():
        if gates.enabled(name):
            assert all(gates.enabled(needed) for needed in gate.requires)
        if gate.stage is Stage.STABLE:
            assert gates.enabled(name) is gate.default


def test_the_flag() -> None:
    assert parse_flag(" A=true, B=False ,") == {"A": True, "B": False}
    with pytest.raises(ConfigError, match="'A' is not of the form Name=true"):
        parse_flag("A")
    with pytest.raises(ConfigError, match="'A=yes'"):
        parse_flag("A=yes")
