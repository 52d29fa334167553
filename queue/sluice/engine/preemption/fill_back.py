"""Gives back the targets that turn out not to be needed (docs/spec/algorithm.md 4.4.6)."""

from sluice.engine.preemption.candidates import Demand, Target
from sluice.engine.simulation import Simulation


def fill_back(
    simulation: Simulation, demand: Demand, targets: list[Target], *, may_borrow: bool
) -> list[Target]:
    """Return the targets still needed; all of them are removed from the state on entry.

    The last target found made the request fit, so it is never given back.
    """
    kept = list(targets)
    at = len(kept) - 2
    while at >= 0:
        target = kept[at]
        simulation.restore(target.wl)
        if demand.fits(may_borrow=may_borrow):
            kept[at] = kept[-1]
            kept.pop()
        else:
            simulation.remove(target.wl)
        at -= 1
    return kept
