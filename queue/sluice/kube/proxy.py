"""Which proxy, if any, leads to the API server: resolved once, because asking per request is slow.

Used by ``config``. The variables are those every HTTP client honours.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from sluice.api.errors import ConfigError


def resolve_proxy(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the proxy for a URL by HTTPS_PROXY, HTTP_PROXY and NO_PROXY, upper or lower case.

    Raises:
        ConfigError: The proxy is not an HTTP proxy.
    """
    parts = urlsplit(url)
    name = f"{parts.scheme}_proxy"
    proxy = environ.get(name) or environ.get(name.upper())
    if not proxy or _is_excluded(parts.hostname or "", environ):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if urlsplit(proxy).scheme not in ("http", "https"):
        raise ConfigError(
            f"{name.upper()}={proxy} is no HTTP proxy; set an http:// proxy,"
            f" or add {parts.hostname} to NO_PROXY"
        )
    return proxy


def _is_excluded(host: str, environ: Mapping[str, str]) -> bool:
    if host == "localhost" or _is_loopback(host):
        return True
    entries = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    return any(_matches(host, entry.strip()) for entry in entries.split(",") if entry.strip())


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _matches(host: str, entry: str) -> bool:
    """Whether NO_PROXY's entry (a name, .suffix, address, network or *) covers a host."""
    if entry == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        suffix = entry.removeprefix("*").removeprefix(".").lower()
        return host.lower() == suffix or host.lower().endswith("." + suffix)
