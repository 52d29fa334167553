"""From pydantic's JSON schema to the structural schema of a CRD."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from sluice.api.crds import NotStructural, structural
from sluice.api.models.base import Int32, Model, Quantity
from sluice.api.models.schema import POD_TEMPLATE, REQUIRED, cel, rules


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the structural schema of a model, with a recognisable pod template."""
    return structural(model.model_json_schema(by_alias=True), {"type": "object", "pods": True})


class Inner(Model):
    """Inner text."""

    value: Int32 = 3


class Outer(Model):
    """Outer text
    over two lines."""

    inner: Inner | None = None
    """Text of
    the field."""
    same_again: Inner
    quantity: Quantity | None = None
    kind: Literal["Only"]
    labels: dict[str, str] | None = None
    template: Annotated[dict[str, Any], POD_TEMPLATE]
    """The pods."""
    name: Annotated[str, REQUIRED] = "main"
    names: list[Annotated[str, Field(max_length=3), rules(cel("true", "never"))]]


def test_references_optional_types_and_marks_are_resolved() -> None:
    inner = {
        "description": "Inner text.",
        "type": "object",
        "properties": {"value": {"type": "integer", "format": "int32", "default": 3}},
    }
    schema = schema_of(Outer)
    properties = schema.pop("properties")
    assert schema == {
        "description": "Outer text over two lines.",
        "type": "object",
        "required": ["kind", "name", "names", "sameAgain", "template"],
    }
    assert properties["inner"] == {**inner, "description": "Text of the field."}
    assert properties["sameAgain"] == inner
    assert properties["kind"] == {"type": "string", "enum": ["Only"]}
    assert properties["labels"] == {"type": "object", "additionalProperties": {"type": "string"}}
    assert properties["template"] == {"type": "object", "pods": True, "description": "The pods."}
    assert properties["name"] == {"type": "string", "default": "main"}
    assert properties["names"]["items"] == {
        "type": "string",
        "maxLength": 3,
        "x-kubernetes-validations": [{"rule": "true", "message": "never"}],
    }
    assert properties["quantity"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert properties["quantity"]["x-kubernetes-int-or-string"] is True


class Tree(BaseModel):
    """A type inside itself."""

    child: "Tree | None" = None


class Choice(BaseModel):
    """Two types at once."""

    either: int | list[str]


class Pair(BaseModel):
    """A tuple."""

    pair: tuple[int, str]


class Free(BaseModel):
    """Any value."""

    anything: Any


@pytest.mark.parametrize(
    ("model", "message"),
    [
        pytest.param(Tree, r"^\.child: Tree contains itself", id="recursion"),
        pytest.param(Choice, r"^\.either: .* union or tuple", id="union"),
        pytest.param(Pair, r"^\.pair: .* union or tuple", id="tuple"),
        pytest.param(Free, r"^\.anything: the type is missing", id="no type"),
    ],
)
def test_what_a_crd_cannot_say_is_refused(model: type[BaseModel], message: str) -> None:
    with pytest.raises(NotStructural, match=message):
        schema_of(model)


def test_a_rule_may_name_its_cause() -> None:
    assert cel("r", "m", reason="FieldValueForbidden") == {
        "rule": "r",
        "message": "m",
        "reason": "FieldValueForbidden",
    }
