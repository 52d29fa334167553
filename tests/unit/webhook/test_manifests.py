"""The webhook configurations of manifests/base fit what is served (docs/spec/api.md 2.0)."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.lookups import StaticLookups

from sluice.controllers.webhookconfigs import (
    MUTATING_NAME,
    UNLABELLED_SUFFIX,
    VALIDATING_NAME,
    entries_of,
    second_entry_changes,
)
from sluice.jobs.admission.context import Options
from sluice_webhook.routes import routes

BASE = Path(__file__).parents[3] / "manifests" / "base"
Json = dict[str, Any]


def load(direction: str) -> Json:
    body: Json = yaml.safe_load((BASE / f"webhook-{direction}.yaml").read_text())
    return body


@pytest.mark.parametrize(
    ("direction", "kind", "name"),
    [
        ("mutating", "MutatingWebhookConfiguration", MUTATING_NAME),
        ("validating", "ValidatingWebhookConfiguration", VALIDATING_NAME),
    ],
)
def test_the_entries(direction: str, kind: str, name: str) -> None:
    body = load(direction)
    assert (body["kind"], body["metadata"]["name"]) == (kind, name)
    served = {route.path: route.kind for route in routes(Options(), StaticLookups())}
    first_entries = [w for w in body["webhooks"] if not w["name"].endswith(UNLABELLED_SUFFIX)]
    for webhook in first_entries:
        (rule,) = webhook["rules"]
        reviewed = served[webhook["clientConfig"]["service"]["path"]]
        assert rule["apiGroups"] == [reviewed.group]
        assert rule["apiVersions"] == [reviewed.version]
        assert rule["resources"][0].startswith(reviewed.kind.lower().removesuffix("y"))
        operations = ["CREATE"] if direction == "mutating" else ["CREATE", "UPDATE"]
        assert rule["operations"] == operations
        # As the API server fills it in: appliers of another name would conflict otherwise.
        assert rule["scope"] == "*"
    for webhook in body["webhooks"]:
        assert webhook["failurePolicy"] == "Fail"
        assert webhook["sideEffects"] == "None"
        assert webhook["admissionReviewVersions"] == ["v1"]
        assert webhook["timeoutSeconds"] == 10
        # The manager writes it; a manifest with it would undo its work.
        assert "caBundle" not in webhook["clientConfig"]
    assert {entry.service for entry in entries_of(body)} == {"sluice-system/sluice-webhook"}


@pytest.mark.parametrize("direction", ["mutating", "validating"])
def test_job_kinds_are_narrow(direction: str) -> None:
    jobs = [w for w in load(direction)["webhooks"] if w["name"].startswith(f"{direction[0]}job.")]
    labelled, unlabelled = jobs
    assert unlabelled["name"].endswith(UNLABELLED_SUFFIX)
    assert labelled["namespaceSelector"]["matchExpressions"] == [
        {
            "key": "kubernetes.io/metadata.name",
            "operator": "NotIn",
            "values": ["kube-system", "sluice-system"],
        }
    ]
    # Without rules the second entry takes nothing. The manager writes both; a manifest with them
    # would undo its work.
    assert not {"rules", "namespaceSelector"} & unlabelled.keys()
    (first,), (second,) = labelled["matchConditions"], unlabelled["matchConditions"]
    assert second["expression"] == f"!{first['expression']}"


@pytest.mark.parametrize("direction", ["mutating", "validating"])
def test_second_entries_get_the_rules_of_the_first(direction: str) -> None:
    body = load(direction)
    selector = {"matchLabels": {"team": "a"}}
    changes = second_entry_changes(entries_of(body), selector)
    (entry,) = {change[0].name for change in changes}
    assert entry.endswith(UNLABELLED_SUFFIX)
    for changed, pointer, value in changes:
        body["webhooks"][changed.index][pointer.removeprefix("/")] = value
    labelled, unlabelled = body["webhooks"][-2:]
    assert unlabelled["rules"] == labelled["rules"]
    assert unlabelled["namespaceSelector"] == selector
    assert second_entry_changes(entries_of(body), selector) == []


def test_workloads_are_validated_with_their_status() -> None:
    (entry,) = (w for w in load("validating")["webhooks"] if w["name"] == "vworkload.kb.io")
    assert entry["rules"][0]["resources"] == ["workloads", "workloads/status"]
