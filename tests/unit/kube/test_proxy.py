"""Which proxy leads to a host."""

import pytest

from sluice.api.errors import ConfigError
from sluice.kube.proxy import resolve_proxy

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("url", "excluded", "expected"),
    [
        ("https://api.example.com:6443", "", PROXY),
        ("https://api.example.com", "example.com", None),
        ("https://api.example.com", ".example.com", None),
        ("https://badexample.com", "example.com", PROXY),
        ("https://10.1.2.3", "10.0.0.0/8", None),
        ("https://11.1.2.3", "10.0.0.0/8, 192.168.0.1", PROXY),
        ("https://anything", "*", None),
        ("https://localhost:6443", "", None),
        ("https://127.0.0.1:6443", "", None),
        ("http://api.example.com", "", None),
    ],
)
def test_proxy_by_host(url: str, excluded: str, expected: str | None) -> None:
    environ = {"HTTPS_PROXY": PROXY, "NO_PROXY": excluded}
    assert resolve_proxy(url, environ) == expected


def test_a_proxy_without_scheme_is_an_http_proxy() -> None:
    assert resolve_proxy("https://a", {"https_proxy": "proxy:1"}) == "http://proxy:1"


def test_another_kind_of_proxy_is_refused_with_the_fix() -> None:
    with pytest.raises(ConfigError, match="add a to NO_PROXY"):
        resolve_proxy("https://a", {"https_proxy": "socks5://proxy:1"})
