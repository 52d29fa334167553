"""What a topology request asks for on trees of given levels: level, slices, strategy.

Source: docs/spec/algorithm.md 6.2 and 6.4.
"""

from dataclasses import dataclass

from sluice.api.records import SliceConstraint, TopologyRequest
from sluice.engine.placement import is_explicit
from sluice.engine.topology.choose import Want


def is_slice_only(request: TopologyRequest) -> bool:
    """Tell whether a request names slices and no level for the whole pod set.

    Whether it says ``unconstrained``, true or false, does not matter then.
    """
    return request.required is None and request.preferred is None and bool(request.slices)


def missing_level(request: TopologyRequest, levels: tuple[str, ...]) -> str | None:
    """Return what an explicit request needs of a topology that these levels lack (6.2).

    Slices in the wrong place are no reason to pass a flavor over; no placement will fit them.
    """
    is_named = request.required is not None or request.preferred is not None
    if not is_named and not request.unconstrained and not is_slice_only(request):
        return "no requested level"
    for level in (request.required, request.preferred):
        if level is not None and level not in levels:
            return f"no level {level}"
    for layer in request.slices:
        if layer.topology not in levels:
            return f"no level {layer.topology}"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request in terms of one tree's level indices.

    Attributes:
        level: Requested level index.
        required: Everything in one domain of that level.
        unconstrained: Several domains of that level are fine.
        slice_size: Pods in a slice, 1 without slices.
        slice_level: Level index of slices, the lowest without.
        inner: Per level, the size of inner slices, 1 for none.
        layers: (level index, size) of every slice layer, outermost first.
    """

    level: int
    required: bool
    unconstrained: bool
    slice_size: int
    slice_level: int
    inner: tuple[int, ...]
    layers: tuple[tuple[int, int], ...]

    def with_slices(self, level: int, size: int) -> "Ask":
        """Return the ask with other slices and no inner ones."""
        if level == self.slice_level and size == self.slice_size:
            return self
        return Ask(
            level=self.level,
            required=self.required,
            unconstrained=self.unconstrained,
            slice_size=size,
            slice_level=level,
            inner=(1,) * len(self.inner),
            layers=self.layers,
        )

    def want(self, count: int, leaders: int, *, mixed: bool) -> Want:
        """Return the want for a number of pods; ``mixed`` is the gate TASProfileMixed."""
        return Want(
            count=count,
            leaders=leaders,
            level=self.level,
            required=self.required,
            least_free=self.unconstrained and mixed,
            unconstrained=self.unconstrained,
            slice_size=self.slice_size,
            slice_level=self.slice_level,
            inner=self.inner,
        )


def _layers(
    slices: tuple[SliceConstraint, ...], levels: tuple[str, ...], level: int
) -> tuple[tuple[int, int], ...] | str:
    layers: list[tuple[int, int]] = []
    for layer in slices:
        key = layer.topology
        if key not in levels:
            return f"no requested topology level for slices: {key}"
        index = levels.index(key)
        if not layers and index < level:
            return f"podset slice topology {key} is above the podset topology {levels[level]}"
        if layers and index <= layers[-1][0]:
            return f"podset slice topology {key} is not below {levels[layers[-1][0]]}"
        if layers and (layer.size <= 0 or layers[-1][1] % layer.size):
            return f"podset slice size {layer.size} does not divide {layers[-1][1]}"
        layers.append((index, layer.size))
    return tuple(layers)


def interpret(
    request: TopologyRequest | None, levels: tuple[str, ...], *, has_layers: bool
) -> Ask | str:
    """Return what a request asks for on a tree of these levels, or why it cannot be asked there.

    Args:
        request: None for an implied one: any domains of the lowest level.
        levels: Node label keys, broadest first.
        has_layers: Gate TASMultiLayerTopology; without it only the outermost slices count.
    """
    lowest = len(levels) - 1
    required = unconstrained = False
    level = -1
    if request is None or not is_explicit(request):
        level, unconstrained = lowest, True
    elif request.required is not None or request.preferred is not None:
        key = request.required if request.required is not None else request.preferred
        level = levels.index(key) if key in levels else -1
        required = request.required is not None
    elif is_slice_only(request):
        level, unconstrained = 0, True
    elif request.unconstrained:
        level, unconstrained = lowest, True
    if level < 0:
        return "no requested topology level"
    slices = request.slices if request is not None else ()
    found = _layers(slices if has_layers else slices[:1], levels, level)
    if isinstance(found, str):
        return found
    slice_level, slice_size = found[0] if found else (lowest, 1)
    inner = [1] * len(levels)
    for index in range(lowest, slice_level, -1):
        inner[index] = next((size for at, size in found[1:] if at >= index), 1)
    return Ask(
        level=level,
        required=required,
        unconstrained=unconstrained,
        slice_size=max(1, slice_size),
        slice_level=slice_level,
        inner=tuple(inner),
        layers=found,
    )
