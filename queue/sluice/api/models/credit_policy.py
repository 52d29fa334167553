"""CreditPolicy of our own group, in v1alpha1 (docs/spec/credits.md 4).

The status is the ledger's checkpoint: a manager that starts anew goes on from it. Big integers are
strings, because JSON readers keep 53 bits only.
"""

from typing import Annotated, Final, Literal

from pydantic import Field

from sluice.api.models.base import Model, Quantity, SubdomainName, Timestamp
from sluice.api.models.meta import Conditions, ObjectMeta
from sluice.api.models.schema import ATOMIC_LIST, Extension, cel, object_rules, rules

V1ALPHA1: Final = "v1alpha1"
WEIGHTS_MAX: Final = 64
ACCOUNTS_MAX: Final = 2000

_DURATION_PATTERN = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"
_INTEGER_PATTERN = "^-?[0-9]{1,64}$"

Duration = Annotated[str, Field(min_length=2, max_length=32, pattern=_DURATION_PATTERN)]
BigInteger = Annotated[str, Field(max_length=65, pattern=_INTEGER_PATTERN)]
ResourceName = Annotated[str, Field(min_length=1, max_length=317)]

SHORT = Extension({"maxLength": 32})
"""The API server estimates what a rule costs by the longest text, times the items of the list."""

NOT_NEGATIVE = rules(
    cel("type(self) == int ? self >= 0 : !self.startsWith('-')", "must not be negative")
)
AT_MOST_ZERO = rules(
    cel(
        "type(self) == int ? self <= 0"
        " : (self.startsWith('-') || self.matches('^[+]?[0.]+[a-zA-Z]*$'))",
        "must be at most 0",
    )
)


def _bounds(field: str, least: str, most: str | None = None) -> list[dict[str, str]]:
    found = [
        cel(
            f"!has(self.{field}) || duration(self.{field}) >= duration('{least}')",
            f"{field} must be at least {least}",
        )
    ]
    if most is not None:
        found.append(
            cel(
                f"!has(self.{field}) || duration(self.{field}) <= duration('{most}')",
                f"{field} must be at most {most}",
            )
        )
    return found


class CreditWeight(Model):
    """What one unit of a resource costs while it is borrowed."""

    resource: ResourceName
    """The resource, such as cpu or nvidia.com/gpu; a unit is a core of cpu, a GiB of memory,
    ephemeral-storage or huge pages, and one of anything else."""
    flavor: SubdomainName | None = None
    """Only in this ResourceFlavor; goes before an entry of the resource without a flavor."""
    weight: Annotated[Quantity, SHORT, NOT_NEGATIVE]
    """The weight; counted in thousandths. 0 makes the resource free."""


BillingWeights = Annotated[
    list[CreditWeight],
    Field(max_length=WEIGHTS_MAX),
    ATOMIC_LIST,
    rules(
        cel(
            "self.all(a, self.exists_one(b, a.resource == b.resource"
            " && (has(a.flavor) ? a.flavor : '') == (has(b.flavor) ? b.flavor : '')))",
            "a resource may have one weight, and one for each flavor",
        )
    ),
]


class CreditPolicySpec(Model):
    """Whose credits are kept, what borrowing costs, and how far credits reach."""

    model_config = object_rules(
        cel(
            "self.cohortName == oldSelf.cohortName",
            "cohortName is immutable; make another CreditPolicy for another tree",
        ),
        *_bounds("settlementPeriod", "10s", "1h"),
        *_bounds("horizon", "10s", "720h"),
        cel(
            "!has(self.horizon) || !has(self.settlementPeriod)"
            " || duration(self.horizon) >= duration(self.settlementPeriod)",
            "horizon must be at least settlementPeriod",
        ),
        *_bounds("halfLife", "1s"),
    )

    cohort_name: SubdomainName
    """Root of the tree whose accounts are kept: at each cohort of it, every child ClusterQueue and
    Cohort has an account."""
    billing_weights: BillingWeights | None = None
    """What borrowed resources cost. Without an entry: 1 for each resource with a domain prefix, 0
    for others; where the tree has no such resource, 1 per core of cpu."""
    settlement_period: Duration = "60s"
    """How often balances change; from 10s to 1h. Boundaries are multiples since the epoch."""
    horizon: Duration = "1h"
    """How far ahead present borrowing counts when balances are compared; about as long as the jobs
    that compete run. At least settlementPeriod, at most 720h."""
    initial_balance: Quantity = 0
    """Balance, in unit-hours, of the first account of a cohort, and where halfLife leads."""
    min_balance: Annotated[Quantity, AT_MOST_ZERO] | None = None
    """Lowest balance, in unit-hours, that borrowing may lead to; the rest is not paid."""
    max_balance: Annotated[Quantity, NOT_NEGATIVE] | None = None
    """Highest balance in unit-hours; what exceeds it is lost at each settlement."""
    half_life: Duration | None = None
    """Time in which half of the distance to initialBalance is forgotten. Absent: never."""


class CreditResource(Model):
    """What an account has of one flavor-resource; zeros are left out."""

    flavor: SubdomainName
    """The ResourceFlavor."""
    resource: ResourceName
    """The resource; amounts are milli-cores of cpu, bytes of memory, and units of the rest."""
    usage: BigInteger | None = None
    """What Workloads hold."""
    quota: BigInteger | None = None
    """The quota of the account's subtree."""
    guaranteed: BigInteger | None = None
    """The part of the quota that is never lent."""


class CreditAccount(Model):
    """One account right after the last settlement. Amounts of credit are in thousandths of a
    weighted unit times milliseconds: one unit-hour is 3600000000. Zeros are left out."""

    parent: SubdomainName
    """The cohort that the account is in."""
    kind: Literal["ClusterQueue", "Cohort"]
    """What has the account."""
    name: SubdomainName
    """Name of what has the account."""
    balance: BigInteger
    """The balance."""
    weight: Quantity | None = None
    """Fair-sharing weight, unless it is 1."""
    earned: BigInteger | None = None
    """Sum of what others paid for what it left to them."""
    spent: BigInteger | None = None
    """Sum of what it paid for what it borrowed."""
    inflow: BigInteger | None = None
    """Sum of its parts of the cohort's own quota."""
    unpaid: BigInteger | None = None
    """Sum of what it owed and could not pay because of minBalance."""
    clipped: BigInteger | None = None
    """Sum of what it lost because of maxBalance."""
    decayed: BigInteger | None = None
    """Sum of what it lost, or won where negative, because of halfLife."""
    frozen_since: Timestamp | None = None
    """Since when its object is gone; the account is kept for 30 days."""
    resources: Annotated[list[CreditResource], Field(max_length=1024), ATOMIC_LIST] | None = None
    """What it has of each flavor-resource with a weight."""


class CreditOwnResource(Model):
    """Quota of one flavor-resource that a cohort holds itself."""

    flavor: SubdomainName
    """The ResourceFlavor."""
    resource: ResourceName
    """The resource."""
    quota: BigInteger
    """The quota."""


class CreditCohort(Model):
    """A cohort with quota of its own, the source of inflow."""

    name: SubdomainName
    """The cohort."""
    resources: Annotated[list[CreditOwnResource], Field(max_length=1024), ATOMIC_LIST]
    """Its own quota."""


class CreditWeightInForce(Model):
    """The weight of one flavor-resource in the present period."""

    flavor: SubdomainName
    """The ResourceFlavor."""
    resource: ResourceName
    """The resource."""
    weight: Quantity
    """The weight."""


class CreditPolicyStatus(Model):
    """The ledger right after a settlement, from which a manager that starts anew goes on."""

    settled_at: Timestamp | None = None
    """When the last settlement was that this status shows."""
    accounts: Annotated[list[CreditAccount], Field(max_length=ACCOUNTS_MAX), ATOMIC_LIST] | None = (
        None
    )
    """All accounts, frozen ones included."""
    cohorts: Annotated[list[CreditCohort], Field(max_length=ACCOUNTS_MAX), ATOMIC_LIST] | None = (
        None
    )
    """Cohorts that hold quota themselves."""
    weights: Annotated[list[CreditWeightInForce], Field(max_length=1024), ATOMIC_LIST] | None = None
    """Weights in force until the next settlement, without those that are 0."""
    conditions: Conditions | None = None
    """Active: the policy works, or why not. Settled: what the last settlement did."""


class CreditPolicy(Model):
    """Fair-share credits for one tree of cohorts: who lends earns, who borrows spends, and who has
    more goes first. docs/credits.md tells how to use it."""

    api_version: Literal["sluicegate.io/v1alpha1"]
    kind: Literal["CreditPolicy"]
    metadata: ObjectMeta | None = None
    spec: CreditPolicySpec
    """Whose credits are kept, what borrowing costs, and how far credits reach."""
    status: CreditPolicyStatus | None = None
    """The ledger right after a settlement."""
