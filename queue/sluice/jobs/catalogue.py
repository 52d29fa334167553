"""The job kinds that this version knows. A new kind is added here and nowhere else in the code."""

from sluice.jobs.batch import BatchJob
from sluice.jobs.integration import JobIntegration


def all_integrations() -> tuple[JobIntegration, ...]:
    """Return every integration, in the order in which frameworks are documented."""
    return (BatchJob(),)
