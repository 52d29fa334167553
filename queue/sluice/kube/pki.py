"""Certificates of our own: a CA, and serving or client certificates that it signs.

All keys are P-256: making one takes milliseconds. The time is passed in, so that validity can be
tested. Used by the certificate controller and by the local control planes; keys are never logged
(`repr` leaves them out).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sluice.api.errors import SluiceError

CA_DAYS: Final = 3650
LEAF_DAYS: Final = 365
BACKDATED: Final = timedelta(minutes=5)
"""Validity starts this long before the time of making, for clocks that are behind."""


class BadCertificate(SluiceError):
    """PEM data that is no usable certificate and key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate_pem: bytes
    key_pem: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFacts:
    """What matters about a certificate.

    Attributes:
        subject: Distinguished name.
        issuer: Distinguished name of the signer.
        serial: Serial number, unique among the certificates of one CA.
        not_before_ms: Start of validity, epoch milliseconds.
        not_after_ms: End of validity, epoch milliseconds.
        dns_names: DNS names that it may be served under.
        addresses: IP addresses that it may be served under.
        is_ca: Whether it may sign others.
    """

    subject: str
    issuer: str
    serial: int
    not_before_ms: int
    not_after_ms: int
    dns_names: tuple[str, ...]
    addresses: tuple[str, ...]
    is_ca: bool

    @property
    def made_at_ms(self) -> int:
        """Return when it was made, if it was made here."""
        return self.not_before_ms + int(BACKDATED.total_seconds() * 1000)

    def needs_rotation(self, now_ms: int) -> bool:
        """Tell whether less than a third of the validity is left, or none has begun."""
        lifetime_ms = self.not_after_ms - self.not_before_ms
        return now_ms < self.not_before_ms or self.not_after_ms - now_ms < lifetime_ms // 3


def make_ca(common_name: str, now_ms: int, *, days: int = CA_DAYS) -> KeyPair:
    """Return a new CA that signs end certificates only.

    Args:
        common_name: Name of the CA. Two CAs of one name are told apart by their key identifiers.
        now_ms: The time, epoch milliseconds.
        days: Validity.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(common_name, ())
    builder = _builder(name, name, key.public_key(), now_ms, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(is_ca=True), critical=True)
    return _signed(builder, key, key)


def make_serving(
    ca: KeyPair, hosts: Sequence[str], now_ms: int, *, days: int = LEAF_DAYS
) -> KeyPair:
    """Return a new serving certificate.

    Args:
        ca: Who signs.
        hosts: DNS names and IP addresses; the first one is also the common name.
        now_ms: The time, epoch milliseconds.
        days: Validity.

    Raises:
        BadCertificate: The CA cannot be read.
    """
    # A common name has at most 64 characters; only the alternative names are looked at anyway.
    return _leaf(ca, _name(hosts[0][:64], ()), hosts, now_ms, days, _SERVER)


def make_client(
    ca: KeyPair,
    user: str,
    now_ms: int,
    *,
    groups: Iterable[str] = (),
    days: int = LEAF_DAYS,
) -> KeyPair:
    """Return a new client certificate, which Kubernetes takes for a user in groups.

    Args:
        ca: Who signs.
        user: Name of the user.
        now_ms: The time, epoch milliseconds.
        groups: Groups of the user.
        days: Validity.

    Raises:
        BadCertificate: The CA cannot be read.
    """
    return _leaf(ca, _name(user, groups), (), now_ms, days, _CLIENT)


def facts(certificate_pem: bytes) -> CertificateFacts:
    """Return what matters about the first certificate of a PEM text.

    Raises:
        BadCertificate: There is none.
    """
    return _facts(_certificate(certificate_pem))


def split_bundle(bundle_pem: bytes) -> tuple[bytes, ...]:
    """Return the certificates of a bundle, each as PEM; empty for an empty bundle.

    Raises:
        BadCertificate: Something in it is no certificate.
    """
    if not bundle_pem.strip():
        return ()
    try:
        certificates = x509.load_pem_x509_certificates(bundle_pem)
    except ValueError as error:
        raise BadCertificate(f"not a bundle of PEM certificates: {error}") from error
    return tuple(c.public_bytes(serialization.Encoding.PEM) for c in certificates)


def check_pair(pair: KeyPair) -> CertificateFacts:
    """Return what matters about the certificate of a pair whose key belongs to it.

    Raises:
        BadCertificate: One of them cannot be read, or they do not belong together.
    """
    certificate, key = _certificate(pair.certificate_pem), _key(pair.key_pem)
    if certificate.public_key() != key.public_key():
        raise BadCertificate("the key does not belong to the certificate")
    return _facts(certificate)


def is_signed_by(certificate_pem: bytes, ca_pem: bytes) -> bool:
    """Tell whether a certificate was signed with the key of a CA; False when one is unreadable."""
    try:
        _certificate(certificate_pem).verify_directly_issued_by(_certificate(ca_pem))
    except Exception:
        # Wrong name, wrong signature, wrong kind of key: all mean no.
        return False
    return True


_SERVER: Final = ExtendedKeyUsageOID.SERVER_AUTH
_CLIENT: Final = ExtendedKeyUsageOID.CLIENT_AUTH
_Extension = TypeVar("_Extension", bound=x509.ExtensionType)


def _name(common_name: str, groups: Iterable[str]) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    now_ms: int,
    days: int,
) -> x509.CertificateBuilder:
    now = datetime.fromtimestamp(now_ms // 1000, UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _usage(*, is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        encipher_only=False,
        decipher_only=False,
    )


def _leaf(
    ca: KeyPair,
    subject: x509.Name,
    hosts: Sequence[str],
    now_ms: int,
    days: int,
    usage: x509.ObjectIdentifier,
) -> KeyPair:
    ca_certificate, ca_key = _certificate(ca.certificate_pem), _key(ca.key_pem)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(subject, ca_certificate.subject, key.public_key(), now_ms, days)
    builder = (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(is_ca=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(_authority(ca_certificate, ca_key), critical=False)
    )
    if hosts:
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return _signed(builder, key, ca_key)


def _authority(
    ca: x509.Certificate, ca_key: ec.EllipticCurvePrivateKey
) -> x509.AuthorityKeyIdentifier:
    # A CA that somebody else made may have a key identifier of another form; the two must match.
    try:
        identifier = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _signed(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    signing_key: ec.EllipticCurvePrivateKey,
) -> KeyPair:
    certificate = builder.sign(signing_key, hashes.SHA256())
    return KeyPair(
        certificate_pem=certificate.public_bytes(serialization.Encoding.PEM),
        key_pem=key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def _certificate(pem: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise BadCertificate(f"not a PEM certificate: {error}") from error


def _key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key: PrivateKeyTypes = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise BadCertificate(f"not a PEM private key without password: {error}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise BadCertificate("not an elliptic-curve key")
    return key


def _facts(certificate: x509.Certificate) -> CertificateFacts:
    names = _extension(certificate, x509.SubjectAlternativeName)
    constraints = _extension(certificate, x509.BasicConstraints)
    return CertificateFacts(
        subject=certificate.subject.rfc4514_string(),
        issuer=certificate.issuer.rfc4514_string(),
        serial=certificate.serial_number,
        not_before_ms=int(certificate.not_valid_before_utc.timestamp() * 1000),
        not_after_ms=int(certificate.not_valid_after_utc.timestamp() * 1000),
        dns_names=tuple(names.get_values_for_type(x509.DNSName)) if names else (),
        addresses=tuple(str(a) for a in names.get_values_for_type(x509.IPAddress)) if names else (),
        is_ca=bool(constraints and constraints.ca),
    )


def _extension(certificate: x509.Certificate, kind: type[_Extension]) -> _Extension | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
