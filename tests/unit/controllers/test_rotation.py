"""The exchange of certificates: no server ever shows what some API server does not trust."""

import base64
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.controllers import rotation
from sluice.controllers.rotation import Material, RotationRules, advance, from_data, to_data
from sluice.kube import pki
from sluice.kube.pki import BadCertificate

DAY_MS = 86_400_000
MINUTE_MS = 60_000
NOW_MS = 1_800_000_000_000
RULES = RotationRules(hosts=("sluice-webhook.sluice-system.svc", "127.0.0.1"))


def fresh(now_ms: int = NOW_MS) -> Material:
    return rotation.fresh(RULES, now_ms)


def trusts(bundle_pem: bytes, material: Material) -> bool:
    return any(
        pki.is_signed_by(material.serving.certificate_pem, ca)
        for ca in pki.split_bundle(bundle_pem)
    )


def test_fresh_material_is_complete_and_nothing_is_due() -> None:
    material = fresh()
    assert trusts(material.bundle_pem, material)
    assert len(pki.split_bundle(material.bundle_pem)) == 1
    assert advance(material, RULES, NOW_MS, NOW_MS) is material
    assert advance(material, RULES, NOW_MS + 200 * DAY_MS, NOW_MS) is material


def test_a_secret_holds_it() -> None:
    material = rotation.with_next_ca(fresh(), RULES, NOW_MS)
    material = replace(material, old_cas_pem=pki.make_ca("old", NOW_MS).certificate_pem)
    assert from_data(to_data(material)) == material
    assert set(to_data(fresh())) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tls.key": None}, "the Secret has no tls.key"),
        ({"tls.key": ""}, "the Secret has no tls.key"),
        ({"ca.crt": "%"}, "ca.crt of the Secret is not base64"),
        ({"ca.crt": base64.b64encode(b"x").decode()}, "not a PEM certificate"),
        ({"tls.key": to_data(fresh())["ca.key"]}, "the key does not belong to the certificate"),
        ({"next-ca.crt": to_data(fresh())["ca.crt"]}, "not a PEM private key"),
    ],
)
def test_unusable_secrets_are_told(changes: dict[str, str | None], message: str) -> None:
    data = {k: v for k, v in {**to_data(fresh()), **changes}.items() if v is not None}
    with pytest.raises(BadCertificate, match=message):
        from_data(data)


def test_a_leaf_as_ca_is_refused() -> None:
    data = to_data(fresh())
    data |= {"ca.crt": data["tls.crt"], "ca.key": data["tls.key"]}
    with pytest.raises(BadCertificate, match=r"ca\.crt of the Secret is no CA"):
        from_data(data)


def test_a_serving_certificate_is_renewed_under_its_ca() -> None:
    material = fresh()
    due = advance(material, RULES, NOW_MS + 250 * DAY_MS, None)
    assert due.ca == material.ca
    assert due.serving != material.serving
    assert trusts(material.bundle_pem, due), "trusted before anybody has heard of it"


def test_other_hosts_mean_another_serving_certificate() -> None:
    rules = replace(RULES, hosts=(*RULES.hosts, "localhost"))
    due = advance(fresh(), rules, NOW_MS, None)
    assert "localhost" in pki.facts(due.serving.certificate_pem).dns_names


def test_the_exchange_of_a_ca() -> None:
    material = fresh()
    at_ms = NOW_MS + 2500 * DAY_MS
    # 1: a next CA, trusted but not used; the serving certificate is due too, under the old CA.
    first = advance(material, RULES, at_ms, NOW_MS)
    assert first.next_ca is not None
    assert first.ca == material.ca
    assert len(pki.split_bundle(first.bundle_pem)) == 2
    # Nothing more while a bundle lacks it, or has it only just now.
    assert advance(first, RULES, at_ms + DAY_MS, None) is first
    assert advance(first, RULES, at_ms + 9 * MINUTE_MS, at_ms) is first
    # 2: it signs; both are trusted.
    second = advance(first, RULES, at_ms + 10 * MINUTE_MS, at_ms)
    assert second.ca == first.next_ca
    assert second.next_ca is None
    assert trusts(first.bundle_pem, second), "trusted by those who have not heard of this step"
    assert trusts(second.bundle_pem, first), "replicas that have not heard of it are trusted too"
    assert advance(second, RULES, at_ms + 60 * MINUTE_MS, at_ms) is second
    # 3: the old one goes.
    third = advance(second, RULES, at_ms + 70 * MINUTE_MS, at_ms)
    assert third.old_cas_pem == b""
    assert trusts(third.bundle_pem, third)
    assert third.serving == second.serving


def test_an_expired_ca_is_exchanged_at_once() -> None:
    at_ms = NOW_MS + 4000 * DAY_MS
    due = advance(fresh(), RULES, at_ms, None)
    assert due.ca != fresh().ca
    assert pki.facts(due.serving.certificate_pem).not_after_ms > at_ms


def test_an_exchange_begins_once() -> None:
    begun = rotation.with_next_ca(fresh(), RULES, NOW_MS)
    assert rotation.with_next_ca(begun, RULES, NOW_MS) is begun


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 900), st.booleans()), min_size=1, max_size=25))
def test_whoever_lags_one_step_behind_is_trusted(steps: list[tuple[int, bool]]) -> None:
    """API servers and replicas may each be one published step behind, at any time."""
    material, now_ms = fresh(), NOW_MS
    published_ms: int | None = NOW_MS
    for days, is_published in steps:
        now_ms += days * DAY_MS
        before = material
        material = advance(material, RULES, now_ms, published_ms)
        has_expired = pki.facts(before.ca.certificate_pem).not_after_ms <= now_ms
        if material is not before and not has_expired:
            assert trusts(before.bundle_pem, material)
            assert trusts(material.bundle_pem, before) or before.old_cas_pem
        assert trusts(material.bundle_pem, material)
        assert not pki.facts(material.serving.certificate_pem).needs_rotation(now_ms)
        published_ms = now_ms - 20 * MINUTE_MS if is_published else None
