"""The real control plane on this machine: etcd, kube-apiserver and, if wanted, running Pods.

It is found or built once (`programs`, `build`), started on free ports with its own certificates,
and thrown away at the end (`plane`). For ``sluice up --real``, the tests and the benchmarks.
"""

from sluice.local.real.errors import BuildFailed, ControlPlaneError, ProgramsMissing, StartFailed
from sluice.local.real.plane import PlaneOptions, RealControlPlane
from sluice.local.real.programs import Programs, find
from sluice.local.real.simulation import (
    EXIT_CODE_ANNOTATION,
    OUTCOME_ANNOTATION,
    RUN_TIME_ANNOTATION,
    SimulatedNode,
)
from sluice.local.real.versions import API_SERVER_PROGRAMS, CLUSTER_PROGRAMS

__all__ = [
    "API_SERVER_PROGRAMS",
    "CLUSTER_PROGRAMS",
    "EXIT_CODE_ANNOTATION",
    "OUTCOME_ANNOTATION",
    "RUN_TIME_ANNOTATION",
    "BuildFailed",
    "ControlPlaneError",
    "PlaneOptions",
    "Programs",
    "ProgramsMissing",
    "RealControlPlane",
    "SimulatedNode",
    "StartFailed",
    "find",
]
