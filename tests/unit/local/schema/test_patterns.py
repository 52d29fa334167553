"""Go patterns in Python: held against RE2 itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.local.schema.cel.environment import matches
from sluice.local.schema.patterns import matcher, translate

LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
QUANTITY = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"  # noqa: E501
KIND = "^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$"


@pytest.mark.parametrize(
    "pattern", [LABEL, QUANTITY, KIND, r"^\d+$", "[]a]", "[^]$]", r"(a|(?i)b)c"]
)
@given(text=st.text(alphabet="aAbBcC019.-+KiMem]$\n\u0661", max_size=8))
def test_a_translated_pattern_matches_what_re2_matches(pattern: str, text: str) -> None:
    assert matcher(pattern)(text) == matches(pattern, text)


def test_what_has_no_counterpart_goes_to_re2() -> None:
    assert translate(r"^\p{Greek}+$") is None
    assert matcher(r"^\p{Greek}+$")("αβγ")
    assert not matcher("^[[:upper:]]+$")("abc")


def test_an_invalid_pattern_matches_nothing() -> None:
    assert not matcher("(")("(")
