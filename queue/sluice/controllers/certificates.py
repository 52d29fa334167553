"""Certificates of our own webhook: one Secret for all replicas, and the CA bundles that trust it.

Every replica does the same: read the Secret, or make it if nobody has; serve what is in it; see
that our webhook configurations and CRDs trust its CAs; take the next step of `rotation` when one is
due. Whoever is first wins, by create and by resourceVersion; the others take what they find.
A configuration or CRD is ours when it has one of our names and calls our Service; nothing else is
written. Not used with ``internalCertManagement.enable: false``.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sluice.api import names
from sluice.api.errors import AlreadyExists, Conflict, KubeError, NotFound
from sluice.clock import Clock
from sluice.controllers import rotation
from sluice.controllers.rotation import Material, RotationRules
from sluice.controllers.webhookconfigs import (
    ConfigurationInformer,
    patch_entries,
    service_key,
    synced,
    waking,
)
from sluice.kube.client import Client, PatchType
from sluice.kube.informer import Informer
from sluice.kube.pki import BadCertificate, KeyPair
from sluice.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, SECRETS
from sluice.log import get_logger

log = get_logger(__name__)

CONVERTED_CRDS: Final = tuple(
    f"{plural}.{names.GROUP}"
    for plural in ("clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads")
)
"""CRDs of ours that name a conversion webhook (docs/spec/api.md 1.0)."""
_TRIES_MAX: Final = 5
_TICK_S: Final = 60.0
"""How often rotation is looked at when nothing happens."""
_RETRY_S: Final = 5.0
_CONVERSION: Final = "/spec/conversion/webhook/clientConfig"


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateOptions:
    """What the configuration file says about certificates.

    Attributes:
        namespace: Where the Secret and the Service are.
        secret: ``internalCertManagement.webhookSecretName``.
        service: ``internalCertManagement.webhookServiceName``.
        extra_hosts: More names and addresses to serve under.
        crds: CRDs that may name our conversion webhook.
    """

    namespace: str = names.SYSTEM_NAMESPACE
    secret: str = "sluice-webhook-server-cert"
    service: str = "sluice-webhook"
    extra_hosts: tuple[str, ...] = ()
    crds: tuple[str, ...] = CONVERTED_CRDS

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the names that the Service has in the cluster, and the extra ones."""
        base = f"{self.service}.{self.namespace}"
        return (f"{base}.svc", f"{base}.svc.cluster.local", base, self.service, *self.extra_hosts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """The conversion webhook of a CRD: its Service as ``namespace/name``, and whom it trusts."""

    service: str
    ca_bundle: str


def conversion_of(body: Mapping[str, Any]) -> Conversion | None:
    """Return the conversion webhook of a CRD, or None when it has none."""
    config = ((body["spec"].get("conversion") or {}).get("webhook") or {}).get("clientConfig")
    if not config:
        return None
    return Conversion(service=service_key(config), ca_bundle=config.get("caBundle") or "")


class CertificateKeeper:
    """Keeps the Secret, the served pair and the CA bundles. `load` first, then `run`."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        configurations: Sequence[ConfigurationInformer],
        *,
        options: CertificateOptions,
        serve: Callable[[KeyPair], None],
        rules: RotationRules | None = None,
    ) -> None:
        """Make a keeper.

        Args:
            client: The API server.
            clock: For validity.
            configurations: Informers of our webhook configurations, run by the caller.
            options: Names.
            serve: Called with every new pair; must make it the served one at once.
            rules: How long things last; by default for the hosts of `options`.
        """
        self._client = client
        self._clock = clock
        self._configurations = tuple(configurations)
        self._options = options
        self._serve = serve
        self._rules = rules or RotationRules(hosts=options.hosts)
        self._material: Material | None = None
        self._published: tuple[bytes, int] | None = None
        self._wake = asyncio.Event()
        self._service = names.key(options.namespace, options.service)
        self._secret: Informer[str] = Informer(
            client,
            SECRETS,
            lambda body: str(body["metadata"]["resourceVersion"]),
            namespace=options.namespace,
            field_selector=f"metadata.name={options.secret}",
        )
        self._crds: tuple[Informer[Conversion], ...] = tuple(
            Informer(
                client,
                CUSTOM_RESOURCE_DEFINITIONS,
                conversion_of,
                field_selector=f"metadata.name={crd}",
            )
            for crd in options.crds
        )
        self.published = asyncio.Event()
        """Set once every configuration and CRD of ours has trusted the served certificate."""

    async def load(self) -> KeyPair:
        """Return the pair to serve, from the Secret, which is made if need be.

        Raises:
            KubeError: The Secret can be neither read nor made.
        """
        _, material = await self._read_or_make()
        self._material = material
        return material.serving

    async def run(self) -> None:
        """Keep everything as it should be until cancelled."""
        caches: tuple[Informer[Any], ...] = (self._secret, *self._crds)
        for informer in (*caches, *self._configurations):
            informer.add_handlers(waking(self._wake))
        async with asyncio.TaskGroup() as tasks:
            for informer in caches:
                what = informer.resource.full_name
                tasks.create_task(informer.run(), name=f"informer of {what} for certificates")
            await synced(*caches, *self._configurations)
            while True:
                self._wake.clear()
                wait_s = _TICK_S
                try:
                    await self.step()
                except (KubeError, BadCertificate) as error:
                    log.warning("certificates not kept; trying again", fields={"error": str(error)})
                    wait_s = _RETRY_S
                try:
                    async with asyncio.timeout(wait_s):
                        await self._wake.wait()
                except TimeoutError:
                    pass

    async def step(self) -> None:
        """Do what is due once: take the Secret, trust its CAs, rotate.

        Raises:
            KubeError: A read or write failed.
        """
        version, material = await self._read_or_make()
        self._take(material)
        bundle = base64.b64encode(material.bundle_pem)
        has_written = await self._publish(bundle.decode())
        now_ms = self._clock.now_ms()
        if has_written or self._published is None or self._published[0] != bundle:
            self._published = (bundle, now_ms)
        self.published.set()
        due = rotation.advance(material, self._rules, now_ms, self._published[1])
        if due is not material:
            try:
                await self._replace(version, due)
            except Conflict:
                log.debug("another replica has taken the next step")
            self._wake.set()

    def _take(self, material: Material) -> None:
        if self._material is None or material.serving != self._material.serving:
            self._serve(material.serving)
            log.info("serving certificate changed", fields={"secret": self._options.secret})
        self._material = material

    async def _read_or_make(self) -> tuple[str, Material]:
        """Return resourceVersion and content of the Secret."""
        for _ in range(_TRIES_MAX):
            try:
                found = await self._client.get(
                    SECRETS, self._options.namespace, self._options.secret
                )
            except NotFound:
                try:
                    return await self._create()
                except AlreadyExists:
                    continue
            version = found["metadata"]["resourceVersion"]
            try:
                return version, rotation.from_data(found.get("data") or {})
            except BadCertificate as error:
                # Empty as some manifests make it, or not ours: Kueue's has RSA keys.
                log.warning("Secret filled anew", fields={"why": str(error)})
            try:
                return await self._replace(version, self._made())
            except Conflict:
                continue
        raise Conflict(
            f"Secret {self._options.secret} changed {_TRIES_MAX} times while it was read"
        )

    def _made(self) -> Material:
        now_ms = self._clock.now_ms()
        if self._material is not None:
            # Whoever deleted the Secret wants other keys; API servers trust these until then.
            return rotation.with_next_ca(self._material, self._rules, now_ms)
        return rotation.fresh(self._rules, now_ms)

    async def _create(self) -> tuple[str, Material]:
        material = self._made()
        body = SECRETS.skeleton(self._options.namespace, self._options.secret)
        body |= {"type": "Opaque", "data": rotation.to_data(material)}
        stored = await self._client.create(
            SECRETS, self._options.namespace, body, field_manager=names.FIELD_MANAGER
        )
        log.info("certificates made", fields={"secret": self._options.secret})
        return stored["metadata"]["resourceVersion"], material

    async def _replace(self, version: str, material: Material) -> tuple[str, Material]:
        # Labels and annotations that others have put on the Secret stay.
        body = {"metadata": {"resourceVersion": version}, "data": _pruned(material)}
        stored = await self._client.patch(
            SECRETS,
            self._options.namespace,
            self._options.secret,
            body,
            patch_type=PatchType.MERGE,
            field_manager=names.FIELD_MANAGER,
        )
        log.info("certificates rotated", fields={"secret": self._options.secret})
        return stored["metadata"]["resourceVersion"], material

    async def _publish(self, bundle: str) -> bool:
        """Write a CA bundle wherever ours is missing; returns whether it was anywhere."""
        has_written = False
        for informer in self._configurations:
            for name, entries in tuple(informer.store.items()):
                changes = [
                    (entry, "/clientConfig/caBundle", bundle)
                    for entry in entries
                    if entry.service == self._service and entry.ca_bundle != bundle
                ]
                if changes:
                    await patch_entries(self._client, informer, name, changes)
                    log.info("CA bundle written", fields={"name": name})
                    has_written = True
        for crd in self._crds:
            for name, conversion in tuple(crd.store.items()):
                if conversion.service == self._service and conversion.ca_bundle != bundle:
                    await self._publish_crd(crd, name, bundle)
                    has_written = True
        return has_written

    async def _publish_crd(self, crd: Informer[Conversion], name: str, bundle: str) -> None:
        service = f"{_CONVERSION}/service"
        operations = [
            {"op": "test", "path": f"{service}/name", "value": self._options.service},
            {"op": "test", "path": f"{service}/namespace", "value": self._options.namespace},
            {"op": "add", "path": f"{_CONVERSION}/caBundle", "value": bundle},
        ]
        written = await self._client.patch(
            CUSTOM_RESOURCE_DEFINITIONS,
            "",
            name,
            operations,
            patch_type=PatchType.JSON,
            field_manager=names.FIELD_MANAGER,
        )
        crd.observe_write(written)
        log.info("CA bundle written", fields={"name": name})


def _pruned(material: Material) -> dict[str, str | None]:
    """Return Secret data for a merge patch, in which null removes a key."""
    return {"next-ca.crt": None, "next-ca.key": None, "old-ca.crt": None} | dict(
        rotation.to_data(material)
    )
