"""Stand-ins for Kubernetes' controllers, scheduler and kubelets, on any API server.

They are clients of the HTTP API like the components they stand in for.
"""

from sluice.local.standins.jobs import JobOptions
from sluice.local.standins.kubelets import EXIT_CODE, OUTCOME, RUN_TIME, KubeletOptions
from sluice.local.standins.run import CONNECTIONS_MAX, StandInOptions, StandIns

__all__ = [
    "CONNECTIONS_MAX",
    "EXIT_CODE",
    "OUTCOME",
    "RUN_TIME",
    "JobOptions",
    "KubeletOptions",
    "StandInOptions",
    "StandIns",
]
