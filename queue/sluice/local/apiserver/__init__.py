"""The HTTP side of the embedded control plane: storage, verbs, watch, discovery, tables.

Only `sluice.local` and `sluice.cli` build a server; everybody else is a client of its HTTPS port.
"""
