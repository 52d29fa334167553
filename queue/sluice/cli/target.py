"""Which cluster, namespace and kind a user command is about: ``get``, ``stop``, ``resume``."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Final

import typer

from sluice import __version__
from sluice.api.errors import ConfigError, KubeError, NotFound, Transient
from sluice.kube.client import Client, ClientOptions
from sluice.kube.config import load
from sluice.kube.resources import CLUSTER_QUEUES, LOCAL_QUEUES, WORKLOADS, Resource

Kubeconfig = Annotated[
    str | None, typer.Option("--kubeconfig", metavar="FILE", help="Kubeconfig to use.")
]
Context = Annotated[
    str | None, typer.Option("--context", metavar="NAME", help="Context of the kubeconfig.")
]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NAME", help="Else the context's namespace.")
]

KINDS: Final = {
    "clusterqueue": CLUSTER_QUEUES,
    "clusterqueues": CLUSTER_QUEUES,
    "cq": CLUSTER_QUEUES,
    "localqueue": LOCAL_QUEUES,
    "localqueues": LOCAL_QUEUES,
    "lq": LOCAL_QUEUES,
    "queue": LOCAL_QUEUES,
    "queues": LOCAL_QUEUES,
    "workload": WORKLOADS,
    "workloads": WORKLOADS,
    "wl": WORKLOADS,
    "kwl": WORKLOADS,
}
"""Kinds by every name that users give them."""


def kind_of(text: str) -> Resource:
    """Return the kind of a name such as ``cq``.

    Raises:
        ConfigError: There is no such kind.
    """
    resource = KINDS.get(text.lower())
    if resource is None:
        raise ConfigError(f"{text!r} is none of clusterqueue, localqueue, workload")
    return resource


@asynccontextmanager
async def connected(
    kubeconfig: str | None, context: str | None = None
) -> AsyncIterator[tuple[Client, str]]:
    """Yield a client and the namespace of the kubeconfig's context.

    Raises:
        ConfigError: The cluster cannot be used; or it has no Kueue API.
    """
    access = await load(kubeconfig=kubeconfig, environ=os.environ, context=context)
    options = ClientOptions(user_agent=f"sluice-cli/{__version__}")
    async with Client(access, options=options) as client:
        try:
            yield client, access.namespace or "default"
        except NotFound as error:
            if error.reason == "NotFound" and "could not find the requested resource" in str(error):
                raise ConfigError(
                    f"the cluster at {access.host} (from {access.source}) has no kueue.x-k8s.io"
                    " API: apply manifests/base, or choose another with --kubeconfig or --context"
                ) from error
            raise
        except Transient as error:
            raise unreachable(access.host, access.source, error) from error


def unreachable(host: str, source: str, error: KubeError) -> ConfigError:
    """Return the error for an API server that does not answer."""
    return ConfigError(
        f"the API server at {host} (from {source}) does not answer: {error};"
        " choose another with --kubeconfig or --context"
    )
