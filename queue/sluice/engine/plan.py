"""How the flavors of one pod shape are searched in one ClusterQueue, worked out once.

Which resource groups are searched in which order, which flavors a pod may use at all, and the
numbers of their flavor-resources depend on specs only; a cycle just compares amounts. Plans belong
to a ClusterQueue and are dropped when it, its tree or a flavor changes. Source:
docs/spec/algorithm.md 3.3.1 to 3.3.4 c. Made by `sluice.engine.planning`.
"""

from sluice.api.names import FlavorName, ResourceName


class FlavorOption:
    """One flavor of a search; ``refusal`` says why no pod of the shape can use it, empty if it can.

    ``frs`` are the flavor-resources of the search's resources, in their order.
    """

    __slots__ = ("flavor", "frs", "index", "refusal")

    def __init__(self, index: int, flavor: FlavorName, frs: list[int], refusal: str) -> None:
        self.index = index
        self.flavor = flavor
        self.frs = frs
        self.refusal = refusal


class Search:
    """One step over the resources of a group.

    Attributes:
        resource: The resource that starts the search (3.3.2).
        resources: All of the group's requested resources that this resource group covers, in the
            order of 0.3; empty when no resource group covers ``resource``.
        positions: Where the resources stand in the group's names.
        start: Where ``resource`` stands there.
        options: The resource group's flavors in order.
    """

    __slots__ = ("options", "positions", "resource", "resources", "start")

    def __init__(
        self,
        resource: ResourceName,
        resources: tuple[ResourceName, ...],
        names: list[ResourceName],
        options: list[FlavorOption],
    ) -> None:
        self.resource = resource
        self.resources = resources
        self.positions = [names.index(name) for name in resources]
        self.start = names.index(resource)
        self.options = options


class GroupPlan:
    """Pod sets that get their flavors together, by index in the spec, and the searches to make.

    ``names`` are all resources that they request, in the order of 0.3.
    """

    __slots__ = ("members", "names", "searches")

    def __init__(
        self, members: list[int], names: list[ResourceName], searches: list[Search]
    ) -> None:
        self.members = members
        self.names = names
        self.searches = searches


class Plan:
    """The groups of a Workload in order of first appearance.

    Attributes:
        groups: The groups.
        explicit: Indices of pod sets that ask for a topology themselves.
        implied: Indices of pod sets that get one because the queue has only such flavors.
    """

    __slots__ = ("explicit", "groups", "implied")

    def __init__(
        self, groups: list[GroupPlan], explicit: frozenset[int], implied: frozenset[int]
    ) -> None:
        self.groups = groups
        self.explicit = explicit
        self.implied = implied
