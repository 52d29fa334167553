"""Put a server together from its parts; the only module here that knows their implementations."""

from __future__ import annotations

from sluice.local.admission import ServiceResolver, WebhookAdmission, WebhookConverter
from sluice.local.apiserver.seams import Parts
from sluice.local.merge import Merger
from sluice.local.schema import Compiler


class Services:
    """Where Services lead that webhook configurations name.

    Nothing routes to Services here, so whoever runs a program behind one says where it listens.
    """

    def __init__(self) -> None:
        self._addresses: dict[tuple[str, str], tuple[str, int]] = {}

    def lead(self, namespace: str, name: str, host: str, port: int) -> None:
        """Send calls for a Service, whatever its port, to an address."""
        self._addresses[namespace, name] = (host, port)

    def __call__(self, namespace: str, name: str, port: int) -> tuple[str, int] | None:
        """Return the address behind a Service, or None when nobody told it."""
        return self._addresses.get((namespace, name))


def parts(resolve: ServiceResolver) -> Parts:
    """Return all parts of a server.

    Args:
        resolve: Finds the address of a Service; usually a `Services`.
    """
    return Parts(
        schemas=Compiler(),
        merger=Merger(),
        admission=lambda cluster: WebhookAdmission(cluster, resolve),
        converter=lambda cluster: WebhookConverter(resolve),
    )


def parts_without_webhooks() -> Parts:
    """Return the parts of a server on which no Service leads anywhere."""
    return parts(Services())
