"""The base model and the scalar types that every kind of the API is built from.

All names, bounds and patterns are those of docs/spec/api.md section 1 ("Conventions" and "Shared
reference types"). Models are strict (no coercion), refuse unknown fields, and keep values as they
came in, so that dumping a validated object by alias and without unset fields gives the same JSON.
Used by the modules of this package; everyone else imports a kind from `sluice.api.models`.
"""

import re
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from sluice.api.models.schema import INT_OR_STRING, Extension

GROUP: Final = "kueue.x-k8s.io"

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
LABEL_PATTERN: Final = f"^{_LABEL}$"
SUBDOMAIN_PATTERN: Final = f"^{_SUBDOMAIN}$"
LABEL_KEY_PATTERN: Final = rf"^({_SUBDOMAIN}/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
REASON_PATTERN: Final = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
KIND_PATTERN: Final = r"^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$"
_DECIMAL = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
QUANTITY_PATTERN: Final = rf"^(\+|-)?{_DECIMAL}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_DECIMAL}))?$"

INT32_MIN: Final = -(2**31)
INT32_MAX: Final = 2**31 - 1
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

_QUANTITY = re.compile(QUANTITY_PATTERN)
_TIMESTAMP = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?"
    r"(Z|[+-]([01]\d|2[0-3]):[0-5]\d)"
)


class Model(BaseModel):
    """Base of every object in the API: strict, closed, camelCase on the wire."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        strict=True,
        extra="forbid",
        use_attribute_docstrings=True,
    )

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form: wire names, only the fields that were given."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _check_quantity(value: int | str) -> int | str:
    if isinstance(value, str) and _QUANTITY.fullmatch(value) is None:
        raise ValueError("must be a quantity such as 500m, 2 or 16Gi")
    return value


def _check_timestamp(value: str) -> str:
    if _TIMESTAMP.fullmatch(value) is None:
        raise ValueError("must be an RFC 3339 time such as 2030-01-31T12:00:00Z")
    return value


Int32 = Annotated[int, Field(ge=INT32_MIN, le=INT32_MAX), Extension({"format": "int32"})]
Int64 = Annotated[int, Field(ge=INT64_MIN, le=INT64_MAX), Extension({"format": "int64"})]
Count = Annotated[int, Field(ge=0, le=INT32_MAX), Extension({"format": "int32"})]
PositiveInt32 = Annotated[int, Field(ge=1, le=INT32_MAX), Extension({"format": "int32"})]

Quantity = Annotated[
    int | str,
    AfterValidator(_check_quantity),
    Extension({"pattern": QUANTITY_PATTERN, INT_OR_STRING: True}),
]
"""An exact amount such as `500m`, `2` or `16Gi`; `sluice.api.quantity` reads it."""

Timestamp = Annotated[str, AfterValidator(_check_timestamp), Extension({"format": "date-time"})]
"""A time in RFC 3339 form; `sluice.api.times` reads it."""

SubdomainName = Annotated[str, Field(max_length=253, pattern=SUBDOMAIN_PATTERN)]
"""Name of a ClusterQueue, Cohort, LocalQueue, ResourceFlavor or Topology."""

LabelName = Annotated[str, Field(max_length=63, pattern=LABEL_PATTERN)]
"""Name of a PodSet."""

StopPolicy = Literal["None", "Hold", "HoldAndDrain"]
