"""Why a placement failed, in the words of Kueue (docs/spec/api.md 4.2).

How many pods or slices would fit, out of how many leaves, and what keeps pods off the others. No
decision depends on it; it is worked out only when a reason is going to be shown.
"""

from collections.abc import Sequence
from typing import Final

from sluice.engine.topology.choose import Want
from sluice.engine.topology.counts import Counts

_NO_SLICES: Final = 1


def shortage(topology: str, leaves: int, names: Sequence[str], counts: Counts, want: Want) -> str:
    """Return how much of a want fits, and what is in the way.

    Args:
        topology: Name of the Topology.
        leaves: Number of leaves of the tree.
        names: Resources by number.
        counts: What fits.
        want: What was asked for.
    """
    level = want.level if want.required or want.unconstrained else 0
    room = counts.slices_led[level] if want.leaders else counts.slices[level]
    fits = max(room, default=0) if want.required else sum(room)
    need = want.count // want.slice_size
    unit = "pod(s)" if want.slice_size == _NO_SLICES else "slice(s)"
    text = f'topology "{topology}" doesn\'t allow to fit any of {need} {unit}'
    if fits > 0:
        fits = min(fits, max(0, need - 1))
        text = f'topology "{topology}" allows to fit only {fits} out of {need} {unit}'
    excluded = [f"{reason}: {number}" for reason, number in counts.excluded.items()]
    excluded += [
        f'resource "{names[resource]}": {number}'
        for resource, number in counts.limits().items()
        if number
    ]
    if excluded:
        text += f". Total nodes: {leaves}; excluded: {', '.join(sorted(excluded))}"
    return text
