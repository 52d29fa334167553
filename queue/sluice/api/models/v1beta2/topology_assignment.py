"""Where pods were placed, in the compressed form of v1beta2 (docs/spec/api.md 1.4).

`sluice.api.topology_assignment` reads and writes this form.
"""

from typing import Annotated

from pydantic import Field

from sluice.api.models.base import Model, PositiveInt32
from sluice.api.models.schema import ATOMIC_LIST, cel, object_rules

_ONE_OF = "has(self.universal) != has(self.individual)"
_ONE_OF_MESSAGE = "exactly one of the fields in [universal individual] must be set"

DomainValue = Annotated[str, Field(max_length=63)]


class IndividualLevelValues(Model):
    """One value for each domain: prefix, root and suffix put together."""

    prefix: DomainValue | None = None
    """What all values begin with."""
    suffix: DomainValue | None = None
    """What all values end with."""
    roots: Annotated[list[DomainValue], Field(min_length=1, max_length=100000), ATOMIC_LIST]
    """What is between prefix and suffix, for each domain."""


class LevelValues(Model):
    """The values of one level in all domains of the slice."""

    model_config = object_rules(cel(_ONE_OF, _ONE_OF_MESSAGE))

    universal: DomainValue | None = None
    """The value, when it is the same in all domains."""
    individual: IndividualLevelValues | None = None
    """The values, when they differ."""


class PodCounts(Model):
    """How many pods are in each domain of the slice."""

    model_config = object_rules(cel(_ONE_OF, _ONE_OF_MESSAGE))

    universal: PositiveInt32 | None = None
    """The count, when it is the same in all domains."""
    individual: (
        Annotated[list[PositiveInt32], Field(min_length=1, max_length=100000), ATOMIC_LIST] | None
    ) = None
    """The counts, when they differ."""


class TopologyAssignmentSlice(Model):
    """A run of domains that are written together."""

    model_config = object_rules(
        cel(
            "!has(self.podCounts.individual)"
            " || size(self.podCounts.individual) == self.domainCount",
            "podCounts.individual must have one entry per domain",
        ),
        cel(
            "self.valuesPerLevel.all(v, !has(v.individual)"
            " || size(v.individual.roots) == self.domainCount)",
            "individual.roots must have one entry per domain in every level",
        ),
    )

    domain_count: PositiveInt32
    """How many domains the slice has."""
    values_per_level: Annotated[list[LevelValues], Field(min_length=1, max_length=16), ATOMIC_LIST]
    """The values of the domains, in the order of the levels."""
    pod_counts: PodCounts
    """How many pods are in each domain."""


class TopologyAssignment(Model):
    """The domains that got pods, such as racks or nodes."""

    model_config = object_rules(
        cel(
            "self.slices.all(s, size(s.valuesPerLevel) == size(self.levels))",
            "every slice must have one entry of valuesPerLevel per level",
        )
    )

    levels: Annotated[
        list[Annotated[str, Field(max_length=317)]], Field(min_length=1, max_length=16), ATOMIC_LIST
    ]
    """The node labels that name a domain, widest first. Upper levels may be left out."""
    slices: Annotated[list[TopologyAssignmentSlice], Field(max_length=1000), ATOMIC_LIST]
    """The domains in order, in runs."""
