"""Validation of the kinds of group ``kueue.x-k8s.io`` beyond what their schemas say.

Each kind's module has ``on_create(new, gates)`` and ``on_update(old, new, gates)``, which take raw
JSON objects and return field errors. Source: docs/spec/api.md 2.1 and 2.2.
"""
