"""Sluice: a job queue and admission controller for Kubernetes that speaks Kueue's public API."""

__version__ = "0.1.0"
