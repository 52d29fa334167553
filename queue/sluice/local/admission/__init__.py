"""Admission and conversion webhooks of the embedded API server."""

from sluice.local.admission.calls import ServiceResolver
from sluice.local.admission.conversion import WebhookConverter
from sluice.local.admission.dispatcher import WebhookAdmission

__all__ = ["ServiceResolver", "WebhookAdmission", "WebhookConverter"]
