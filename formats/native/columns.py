"""The native API's types, expressions and columns.

A primitive type is a lower-case string such as `decimal(10,2)`, any other type an object with a `type`. An unknown
string becomes an unparsed type, so that types of newer clients round-trip unchanged.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator
from typing_extensions import TypeAliasType

from metalake.wire import Body, quote

MAX_DECIMAL_PRECISION = 38
MAX_TIME_PRECISION = 12
EDGE_ALGORITHMS = ("spherical", "vincenty", "thomas", "andoyer", "karney")

PLAIN_PRIMITIVES = frozenset(
    {
        "boolean", "byte", "byte unsigned", "short", "short unsigned", "integer", "integer unsigned", "long",
        "long unsigned", "float", "double", "date", "time", "timestamp", "timestamp_tz", "interval_year",
        "interval_day", "string", "binary", "uuid", "null", "variant", "geometry", "geography",
    }
)  # fmt: skip

_WITH_NUMBERS = re.compile(r"(\w+)\(\s*([0-9]{1,9})\s*(?:,\s*([0-9]{1,9})\s*)?\)", re.ASCII)
_WITH_WORDS = re.compile(r"(geometry|geography)\(\s*([^,()]*?)\s*(?:,\s*([^,()]*?)\s*)?\)", re.IGNORECASE)
_NUMBER_COUNT = {"decimal": 2, "time": 1, "timestamp": 1, "timestamp_tz": 1, "varchar": 1, "char": 1, "fixed": 1}


class Primitive(NamedTuple):
    """A parsed primitive type: `decimal(10,2)` is `("decimal", (10, 2))`."""

    name: str
    arguments: tuple[int | str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({','.join(map(str, self.arguments))})" if self.arguments else self.name


def parse_primitive(text: str) -> Primitive | None:
    """Parse a primitive type; None if unknown. Raises ValueError for a precision, scale or length out of range."""
    trimmed = text.strip()
    if trimmed.lower() in PLAIN_PRIMITIVES:
        return Primitive(trimmed.lower())
    if words := _WITH_WORDS.fullmatch(trimmed):
        return _geospatial(words[1].lower(), words[2], words[3])
    numbers = _WITH_NUMBERS.fullmatch(trimmed.lower())
    if numbers is None:
        return None
    name, arguments = numbers[1], tuple(int(number) for number in numbers.groups()[1:] if number is not None)
    if _NUMBER_COUNT.get(name) != len(arguments):
        return None
    _check_numbers(name, *arguments)
    return Primitive(name, arguments)


def _geospatial(name: str, reference_system: str, algorithm: str | None) -> Primitive | None:
    if not reference_system or (name == "geometry" and algorithm is not None):
        return None
    if algorithm is None:
        return Primitive(name, (reference_system,))
    if algorithm.lower() not in EDGE_ALGORITHMS:
        raise ValueError(f"the algorithm of a geography is one of {', '.join(EDGE_ALGORITHMS)}")
    return Primitive(name, (reference_system, algorithm.lower()))


def _check_numbers(name: str, first: int, second: int = 0) -> None:
    """Raise ValueError for a precision, scale or length out of range; `second` is the scale of a decimal."""
    if name == "decimal":
        if not 1 <= first <= MAX_DECIMAL_PRECISION:
            raise ValueError(f"the precision of a decimal is between 1 and {MAX_DECIMAL_PRECISION}, not {first}")
        if second > first:
            raise ValueError(f"the scale of a decimal is between 0 and its precision {first}, not {second}")
    elif name in ("varchar", "char", "fixed"):
        if first < 1:
            raise ValueError(f"the length of a {name} is at least 1")
    elif first > MAX_TIME_PRECISION:
        raise ValueError(f"the precision of a {name} is between 0 and {MAX_TIME_PRECISION}, not {first}")


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def lower(value: Any) -> Any:
    """Before-validator that lower-cases a string."""
    return value.lower() if isinstance(value, str) else value


def lower_key(key: str) -> Any:
    """Before-validator for a union with a case-insensitive discriminator `key`."""

    def lowered(value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get(key), str):
            return {**value, key: value[key].lower()}
        return value

    return BeforeValidator(lowered)


Name = Annotated[str, AfterValidator(_not_blank)]
FieldName = Annotated[list[Name], Field(min_length=1, description="The path to a column, outermost name first")]


class UnparsedType(Body):
    """A type that this version does not know, stored as it was written."""

    type: Literal["unparsed"]
    unparsed_type: str


class ExternalType(Body):
    """A type that only the outside catalog knows, in its own spelling."""

    type: Literal["external"]
    catalog_string: str


def _primitive_or_unparsed(text: str) -> str | UnparsedType:
    primitive = parse_primitive(_not_blank(text))
    if primitive is None:
        return UnparsedType.model_validate({"type": "unparsed", "unparsedType": text})
    return str(primitive)


PrimitiveType = Annotated[
    str,
    AfterValidator(_primitive_or_unparsed),
    Field(
        description="The name of a primitive type; an unknown name is kept as an unparsed type",
        examples=["integer", "decimal(10,2)", "timestamp_tz(6)"],
    ),
]


class StructField(Body):
    """One field of a struct."""

    name: Name
    type: DataType
    nullable: bool = True
    comment: str | None = None


class StructType(Body):
    """Named fields in order."""

    type: Literal["struct"]
    fields: list[StructField]


class ListType(Body):
    """Elements of one type."""

    type: Literal["list"]
    element_type: DataType
    contains_null: bool = True


class MapType(Body):
    """Keys of one type to values of another."""

    type: Literal["map"]
    key_type: DataType
    value_type: DataType
    value_contains_null: bool = True


class UnionType(Body):
    """One of several types."""

    type: Literal["union"]
    types: list[DataType]


ObjectType = Annotated[
    StructType | ListType | MapType | UnionType | UnparsedType | ExternalType, Field(discriminator="type")
]
DataType = TypeAliasType(
    "DataType",
    Annotated[
        Annotated[PrimitiveType, Tag("primitive")] | Annotated[ObjectType, Tag("object")],
        Discriminator(
            lambda value: (
                "primitive" if isinstance(value, str) else "object" if isinstance(value, dict | Body) else None
            ),
            custom_error_type="no_type",
            custom_error_message="must be the name of a type, or an object",
        ),
    ],
)


class LiteralValue(Body):
    """A constant; the null constant has the type `null` and any value."""

    type: Literal["literal"]
    data_type: DataType
    value: str


class FieldReference(Body):
    """A column, by its path."""

    type: Literal["field"]
    field_name: FieldName


class FunctionCall(Body):
    """A function applied to arguments."""

    type: Literal["function"]
    func_name: Name
    func_args: list[FunctionArg]


class UnparsedExpression(Body):
    """An expression that this version does not know, stored as it was written."""

    type: Literal["unparsed"]
    unparsed_expression: str


FunctionArg = TypeAliasType(
    "FunctionArg",
    Annotated[
        LiteralValue | FieldReference | FunctionCall | UnparsedExpression,
        Field(discriminator="type"),
        lower_key("type"),
    ],
)


class Column(Body):
    """One column of a table or view."""

    name: Name
    type: DataType
    comment: str | None = None
    nullable: bool = True
    auto_increment: bool = False
    default_value: FunctionArg | None = None

    @model_validator(mode="after")
    def _required_has_no_null_default(self) -> Column:
        if not self.nullable and is_null(self.default_value):
            raise ValueError(f"column {quote(self.name)} is required, so its default cannot be null")
        return self


def is_null(expression: object) -> bool:
    """Whether an expression is the null constant."""
    return isinstance(expression, LiteralValue) and expression.data_type == "null"


for _model in (StructField, StructType, ListType, MapType, UnionType, LiteralValue, FunctionCall, Column):
    _model.model_rebuild()
