"""What can go wrong with the real control plane; raised in this package only.

::

    ControlPlaneError       could not be found, built, started or kept running
    ├── ProgramsMissing     the programs are not on this machine; the message says how to get them
    ├── BuildFailed         the programs could not be built
    └── StartFailed         a program ended or did not get ready; the message shows its log
"""

from __future__ import annotations

from sluice.api.errors import SluiceError


class ControlPlaneError(SluiceError):
    """The real control plane could not be found, built, started or kept running."""


class ProgramsMissing(ControlPlaneError):
    """The programs are not on this machine; the message says how to get them."""


class BuildFailed(ControlPlaneError):
    """The programs could not be built; the message shows the end of the compiler's output."""


class StartFailed(ControlPlaneError):
    """A program ended early or did not get ready; the message shows the end of its log."""
