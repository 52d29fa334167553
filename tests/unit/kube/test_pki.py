"""Certificates of our own: what they say, that TLS libraries take them, and when they are due."""

import ssl

import pytest

from sluice.kube import pki

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def ca() -> pki.KeyPair:
    return pki.make_ca("test-ca", NOW_MS)


def test_a_ca_signs_end_certificates_only(ca: pki.KeyPair) -> None:
    facts = pki.check_pair(ca)
    assert facts.is_ca
    assert facts.subject == facts.issuer == "CN=test-ca"
    assert facts.made_at_ms == NOW_MS
    assert facts.not_after_ms == NOW_MS + 3650 * DAY_MS
    assert pki.is_signed_by(ca.certificate_pem, ca.certificate_pem)


def test_a_serving_certificate_names_its_hosts(ca: pki.KeyPair) -> None:
    pair = pki.make_serving(ca, ["sluice-webhook.sluice-system.svc", "127.0.0.1", "::1"], NOW_MS)
    facts = pki.check_pair(pair)
    assert facts.dns_names == ("sluice-webhook.sluice-system.svc",)
    assert facts.addresses == ("127.0.0.1", "::1")
    assert not facts.is_ca
    assert facts.issuer == "CN=test-ca"
    assert pki.is_signed_by(pair.certificate_pem, ca.certificate_pem)
    other = pki.make_ca("test-ca", NOW_MS)
    assert not pki.is_signed_by(pair.certificate_pem, other.certificate_pem)
    ssl.create_default_context(cadata=ca.certificate_pem.decode())


def test_a_client_certificate_names_user_and_groups(ca: pki.KeyPair) -> None:
    pair = pki.make_client(ca, "admin", NOW_MS, groups=["system:masters"])
    assert pki.check_pair(pair).subject == "CN=admin,O=system:masters"


def test_long_host_names_fit() -> None:
    host = f"{'x' * 63}.{'y' * 63}.svc"
    pair = pki.make_serving(pki.make_ca("ca", NOW_MS), [host], NOW_MS)
    assert pki.facts(pair.certificate_pem).dns_names == (host,)


@pytest.mark.parametrize(
    ("day", "is_due"), [(-1, True), (0, False), (240, False), (244, True), (366, True)]
)
def test_a_certificate_is_due_with_a_third_of_its_life_left(
    ca: pki.KeyPair, day: int, is_due: bool
) -> None:
    facts = pki.facts(pki.make_serving(ca, ["x"], NOW_MS).certificate_pem)
    assert facts.needs_rotation(NOW_MS + day * DAY_MS) is is_due


def test_bundles_are_split(ca: pki.KeyPair) -> None:
    other = pki.make_ca("other", NOW_MS)
    bundle = ca.certificate_pem + b"\n" + other.certificate_pem
    assert pki.split_bundle(bundle) == (ca.certificate_pem, other.certificate_pem)
    assert pki.split_bundle(b" \n") == ()


def test_what_is_unusable_is_told(ca: pki.KeyPair) -> None:
    other = pki.make_ca("other", NOW_MS)
    mixed = pki.KeyPair(certificate_pem=ca.certificate_pem, key_pem=other.key_pem)
    with pytest.raises(pki.BadCertificate, match="the key does not belong to the certificate"):
        pki.check_pair(mixed)
    with pytest.raises(pki.BadCertificate, match="not a PEM certificate"):
        pki.facts(b"nonsense")
    with pytest.raises(pki.BadCertificate, match="not a PEM private key"):
        pki.check_pair(pki.KeyPair(certificate_pem=ca.certificate_pem, key_pem=b"nonsense"))
    with pytest.raises(pki.BadCertificate, match="not a bundle"):
        pki.split_bundle(b"nonsense")


def test_keys_stay_out_of_texts(ca: pki.KeyPair) -> None:
    assert "PRIVATE" not in repr(ca)
