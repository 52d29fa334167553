"""When certificates are made, exchanged and retired: the rules, without I/O.

A serving certificate is renewed under its CA when a third of its life is left; nobody notices,
because the CA is trusted already. A CA is exchanged in three steps, so that at no time a server
shows a certificate that some API server does not trust yet, or no longer:

1. a next CA is made and put beside the current one in every CA bundle;
2. when every bundle has held it for a while, it signs the serving certificate; the CA before
   stays in the bundles, because other replicas still serve under it;
3. when that was a while ago, the CA before leaves the bundles.

Called by ``certificates``. Deleting the Secret starts such an exchange at once.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from sluice.kube import pki
from sluice.kube.pki import BadCertificate, KeyPair

CA_NAME: Final = "sluice-webhook-ca"
_MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationRules:
    """How long things last.

    Attributes:
        hosts: DNS names and IP addresses to serve under.
        ca_days: Validity of a CA.
        leaf_days: Validity of a serving certificate.
        settle_ms: How long every bundle must have held a next CA before it signs; API servers
            hear of a bundle within seconds.
        retire_ms: How long a CA stays trusted after another has taken over; replicas hear of it
            within seconds.
    """

    hosts: tuple[str, ...]
    ca_days: int = pki.CA_DAYS
    leaf_days: int = pki.LEAF_DAYS
    settle_ms: int = 10 * _MINUTE_MS
    retire_ms: int = 60 * _MINUTE_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What the Secret holds.

    Attributes:
        ca: The CA that signs.
        serving: What is served.
        next_ca: The CA that will sign next, or None.
        old_cas_pem: CAs that signed before and are still trusted; empty for none.
    """

    ca: KeyPair
    serving: KeyPair
    next_ca: KeyPair | None = None
    old_cas_pem: bytes = b""

    @property
    def bundle_pem(self) -> bytes:
        """Return every CA that must be trusted now, in a fixed order."""
        cas = [self.ca.certificate_pem]
        if self.next_ca is not None:
            cas.append(self.next_ca.certificate_pem)
        return b"".join([*cas, self.old_cas_pem])


_KEYS: Final = ("ca.crt", "ca.key", "tls.crt", "tls.key")


def to_data(material: Material) -> dict[str, str]:
    """Return the ``data`` of the Secret: Kueue's four keys, and two more during an exchange."""
    values = {
        "ca.crt": material.ca.certificate_pem,
        "ca.key": material.ca.key_pem,
        "tls.crt": material.serving.certificate_pem,
        "tls.key": material.serving.key_pem,
    }
    if material.next_ca is not None:
        values["next-ca.crt"] = material.next_ca.certificate_pem
        values["next-ca.key"] = material.next_ca.key_pem
    if material.old_cas_pem:
        values["old-ca.crt"] = material.old_cas_pem
    return {name: base64.b64encode(value).decode() for name, value in values.items()}


def from_data(data: Mapping[str, Any]) -> Material:
    """Return what a Secret's ``data`` holds.

    Raises:
        BadCertificate: Something is missing, unreadable, or does not belong together.
    """
    if missing := [name for name in _KEYS if not data.get(name)]:
        raise BadCertificate(f"the Secret has no {', '.join(missing)}")
    next_ca = None
    if data.get("next-ca.crt"):
        next_ca = KeyPair(
            certificate_pem=_decoded(data, "next-ca.crt"), key_pem=_decoded(data, "next-ca.key")
        )
        pki.check_pair(next_ca)
    material = Material(
        ca=KeyPair(certificate_pem=_decoded(data, "ca.crt"), key_pem=_decoded(data, "ca.key")),
        serving=KeyPair(
            certificate_pem=_decoded(data, "tls.crt"), key_pem=_decoded(data, "tls.key")
        ),
        next_ca=next_ca,
        old_cas_pem=_decoded(data, "old-ca.crt"),
    )
    if not pki.check_pair(material.ca).is_ca:
        raise BadCertificate("ca.crt of the Secret is no CA")
    pki.check_pair(material.serving)
    pki.split_bundle(material.old_cas_pem)
    return material


def _decoded(data: Mapping[str, Any], name: str) -> bytes:
    try:
        return base64.b64decode(data.get(name) or "", validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise BadCertificate(f"{name} of the Secret is not base64: {error}") from error


def fresh(rules: RotationRules, now_ms: int) -> Material:
    """Return a new CA with a serving certificate."""
    ca = pki.make_ca(CA_NAME, now_ms, days=rules.ca_days)
    return Material(ca=ca, serving=_serving(ca, rules, now_ms))


def with_next_ca(material: Material, rules: RotationRules, now_ms: int) -> Material:
    """Return the material with an exchange of the CA begun, unless one is under way."""
    if material.next_ca is not None:
        return material
    return replace(material, next_ca=pki.make_ca(CA_NAME, now_ms, days=rules.ca_days))


def advance(
    material: Material, rules: RotationRules, now_ms: int, published_ms: int | None
) -> Material:
    """Return what the Secret should hold next; the same object when nothing is due.

    Args:
        material: What it holds.
        rules: How long things last.
        now_ms: The time, epoch milliseconds.
        published_ms: Since when every bundle has held the CAs of `material`; None while one
            does not.
    """
    ca = pki.facts(material.ca.certificate_pem)
    # A next CA that is only made here has not been published anywhere, whatever has.
    is_settled = (
        material.next_ca is not None
        and published_ms is not None
        and now_ms - published_ms >= rules.settle_ms
    )
    if ca.needs_rotation(now_ms):
        material = with_next_ca(material, rules, now_ms)
    # Once the CA has expired nothing can be refused that is not refused already.
    if material.next_ca is not None and (is_settled or ca.not_after_ms <= now_ms):
        return Material(
            ca=material.next_ca,
            serving=_serving(material.next_ca, rules, now_ms),
            old_cas_pem=material.ca.certificate_pem,
        )
    serving = pki.facts(material.serving.certificate_pem)
    if material.old_cas_pem and now_ms - serving.made_at_ms >= rules.retire_ms:
        material = replace(material, old_cas_pem=b"")
    if not _is_good(material, serving, rules, now_ms):
        material = replace(material, serving=_serving(material.ca, rules, now_ms))
    return material


def _is_good(
    material: Material, serving: pki.CertificateFacts, rules: RotationRules, now_ms: int
) -> bool:
    names = {*serving.dns_names, *serving.addresses}
    is_signed = pki.is_signed_by(material.serving.certificate_pem, material.ca.certificate_pem)
    return not serving.needs_rotation(now_ms) and names >= set(rules.hosts) and is_signed


def _serving(ca: KeyPair, rules: RotationRules, now_ms: int) -> KeyPair:
    return pki.make_serving(ca, rules.hosts, now_ms, days=rules.leaf_days)
