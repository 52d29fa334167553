"""Finds the API server and the credentials: a kubeconfig, or the service account of a pod.

Parsing, exec plugins, OIDC and the like are those of ``kubernetes.aio.config``; here is what it
lacks: credentials that renew themselves, one clear ConfigError for every way a file can be wrong,
and a proxy that is resolved once. Called by the composition root.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes.aio import config as kube_config
from kubernetes.aio.client import Configuration

from sluice.api.errors import ConfigError, Forbidden, KubeError
from sluice.clock import Clock, SystemClock
from sluice.kube.access import ClusterAccess, Credentials, NoCredentials
from sluice.kube.client import Client
from sluice.kube.credentials import InClusterCredentials, KubeconfigCredentials, Login
from sluice.kube.proxy import resolve_proxy

_library: Any = kube_config  # untyped
DEFAULT_PATH: Final = "~/.kube/config"
_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_TOKEN_POLL_S: Final = 60.0
_MALFORMED: Final = (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError)
"""What the library raises, besides its own error, for a file that is not shaped as it expects."""


async def load(
    *,
    kubeconfig: str | None,
    environ: Mapping[str, str],
    context: str | None = None,
    clock: Clock | None = None,
) -> ClusterAccess:
    """Return how to reach the API server.

    The first of these that is there counts: the file given, ``KUBECONFIG``, the pod's service
    account, ``~/.kube/config``.

    Args:
        kubeconfig: Path given by the user, or None.
        environ: The process environment.
        context: Context of the kubeconfig to use; None for its current one.
        clock: For the expiry of credentials.

    Raises:
        ConfigError: There is none, or it cannot be used; the message names the file and the fix.
    """
    path = kubeconfig or environ.get("KUBECONFIG")
    if not path and environ.get("KUBERNETES_SERVICE_HOST"):
        return _load_in_cluster(environ)
    if not path and not _exists(DEFAULT_PATH):
        raise ConfigError(
            "no cluster to talk to: there is no ~/.kube/config and this is no pod;"
            " pass --kubeconfig FILE or set KUBECONFIG"
        )
    return await _load_file(path or DEFAULT_PATH, environ, context, clock or SystemClock())


async def require_reachable(client: Client, *, timeout_s: float = 10.0) -> str:
    """Return the API server's version after making sure that it answers these credentials.

    Raises:
        ConfigError: It does not answer, or refuses us; the message names address and fix.
    """
    access = client.access
    place = f"the API server at {access.host} (from {access.source})"
    try:
        version = await client.call("/version", timeout_s=timeout_s)
    except Forbidden as error:
        raise ConfigError(
            f"{place} refuses these credentials: {error}; log in again or fix the user entry"
        ) from error
    except KubeError as error:
        raise ConfigError(
            f"{place} cannot be reached: {error};"
            " check that it runs, and the server address, proxy and certificate authority there"
        ) from error
    return str(version.get("gitVersion", "unknown"))


def _exists(path: str) -> bool:
    return Path(path).expanduser().exists()


def _load_in_cluster(environ: Mapping[str, str]) -> ClusterAccess:
    configuration = Configuration()
    try:
        _library.load_incluster_config(client_configuration=configuration)
        namespace = _NAMESPACE_FILE.read_text().strip() if _NAMESPACE_FILE.exists() else ""
    except (kube_config.ConfigException, OSError) as error:
        raise ConfigError(
            f"the pod's service account cannot be used: {error};"
            " set automountServiceAccountToken: true, or pass --kubeconfig FILE"
        ) from error
    return ClusterAccess(
        host=configuration.host,
        tls=_tls_context(configuration, "the pod's service account"),
        credentials=InClusterCredentials(configuration),
        proxy=resolve_proxy(configuration.host, environ),
        namespace=namespace,
        source="the pod's service account",
    )


async def _load_file(
    path: str, environ: Mapping[str, str], context: str | None, clock: Clock
) -> ClusterAccess:
    source = f"kubeconfig {path}"

    async def log_in() -> Login:
        return await _log_in(path, context, clock)

    login = await log_in()
    configuration = login.configuration
    tls = _tls_context(configuration, source) if configuration.host.startswith("https") else None
    credentials: Credentials
    if login.header is None and login.refresh_after_s is None and not configuration.cert_file:
        credentials = NoCredentials()
    else:
        credentials = KubeconfigCredentials(login, log_in, tls, clock)
    return ClusterAccess(
        host=configuration.host.rstrip("/"),
        tls=tls,
        credentials=credentials,
        tls_server_name=configuration.tls_server_name or None,
        proxy=configuration.proxy or resolve_proxy(configuration.host, environ),
        namespace=login.namespace,
        source=source,
    )


async def _log_in(path: str, context: str | None, clock: Clock) -> Login:
    """Read the file, run what it says is to be run, and return the outcome."""
    if not any(_exists(part) for part in path.split(":") if part):
        raise ConfigError(f"kubeconfig {path} does not exist; pass --kubeconfig FILE")
    configuration = Configuration()
    try:
        loader = await _library.load_kube_config(
            config_file=path,
            context=context,
            client_configuration=configuration,
            persist_config=False,
        )
        user = loader._user
        if user is not None and "exec" in user:
            await _require_exec_result(user["exec"], configuration)
        return Login(
            configuration=configuration,
            header=configuration.api_key.get("BearerToken"),
            refresh_after_s=_refresh_after_s(user, loader, clock),
            namespace=loader.current_context.get("context", {}).get("namespace") or "",
        )
    except kube_config.ConfigException as error:
        raise ConfigError(f"kubeconfig {path} cannot be used: {error}") from error
    except _MALFORMED as error:
        raise ConfigError(
            f"kubeconfig {path} cannot be read: {type(error).__name__}: {error};"
            " compare it with the output of `kubectl config view`"
        ) from error


async def _require_exec_result(plugin: Any, configuration: Configuration) -> None:
    """Raise the reason why an exec plugin gave nothing: the library only logs it."""
    if configuration.api_key.get("BearerToken") or configuration.cert_file:
        return
    await _library.exec_provider.ExecProvider(plugin).run()
    raise kube_config.ConfigException(
        f"exec plugin {plugin['command']} returned neither a token nor a client certificate"
    )


def _refresh_after_s(user: Any, loader: Any, clock: Clock) -> float | None:
    """Return the seconds until credentials must be read again, None when only on refusal."""
    if user is None:
        return None
    if "exec" in user:
        expiry = getattr(loader, "exec_plugin_expiry", None)
        if expiry is None:
            return None
        lifetime_s = float(expiry.timestamp()) - clock.now_ms() / 1000
        return max(0.0, lifetime_s - min(60.0, lifetime_s * 0.2))
    if "tokenFile" in user or "auth-provider" in user:
        return _TOKEN_POLL_S
    return None


def _tls_context(configuration: Configuration, source: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(
            cafile=configuration.ssl_ca_cert, cadata=configuration.ca_cert_data
        )
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{source}: the certificate authority or client certificate cannot be used: {error}"
        ) from error
    # Python 3.13 demands key identifiers that many clusters' own authorities do not set.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
