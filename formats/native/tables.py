"""Request bodies of the native API for tables: create, and the fifteen kinds of update."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator
from typing_extensions import TypeAliasType

from formats.native.columns import Column, DataType, FieldName, FunctionArg, LiteralValue, Name, lower, lower_key
from metalake.wire import Body, quote

Properties = dict[Name, str]
FieldNames = Annotated[list[FieldName], Field(min_length=1)]
IndexType = Literal[
    "PRIMARY_KEY", "UNIQUE_KEY", "SCALAR", "BTREE", "BITMAP", "LABEL_LIST", "INVERTED", "VECTOR", "IVF_FLAT", "IVF_SQ",
    "IVF_PQ", "IVF_HNSW_SQ", "IVF_HNSW_PQ", "DATA_SKIPPING_MINMAX", "DATA_SKIPPING_BLOOM_FILTER", "DATA_SKIPPING_SET",
]  # fmt: skip


class IdentityPartitioning(Body):
    strategy: Literal["identity"]
    field_name: FieldName


class YearPartitioning(Body):
    strategy: Literal["year"]
    field_name: FieldName


class MonthPartitioning(Body):
    strategy: Literal["month"]
    field_name: FieldName


class DayPartitioning(Body):
    strategy: Literal["day"]
    field_name: FieldName


class HourPartitioning(Body):
    strategy: Literal["hour"]
    field_name: FieldName


class BucketPartitioning(Body):
    strategy: Literal["bucket"]
    num_buckets: int = Field(ge=1, le=2**31 - 1)
    field_names: FieldNames


class TruncatePartitioning(Body):
    strategy: Literal["truncate"]
    width: int = Field(ge=1, le=2**31 - 1)
    field_name: FieldName


class ListPartition(Body):
    """A partition that holds the listed values."""

    type: Literal["list"]
    name: Name
    lists: list[list[LiteralValue]]
    properties: Properties = {}


class RangePartition(Body):
    """A partition between two bounds; an open bound is the null literal."""

    type: Literal["range"]
    name: Name
    upper: LiteralValue
    lower: LiteralValue
    properties: Properties = {}


class ListPartitioning(Body):
    strategy: Literal["list"]
    field_names: FieldNames
    assignments: list[ListPartition] = []


class RangePartitioning(Body):
    strategy: Literal["range"]
    field_name: FieldName
    assignments: list[RangePartition] = []


class FunctionPartitioning(Body):
    strategy: Literal["function"]
    func_name: Name
    func_args: list[FunctionArg]


Partitioning = TypeAliasType(
    "Partitioning",
    Annotated[
        IdentityPartitioning
        | YearPartitioning
        | MonthPartitioning
        | DayPartitioning
        | HourPartitioning
        | BucketPartitioning
        | TruncatePartitioning
        | ListPartitioning
        | RangePartitioning
        | FunctionPartitioning,
        Field(discriminator="strategy"),
        lower_key("strategy"),
    ],
)


class Distribution(Body):
    """How rows are spread over writers."""

    strategy: Annotated[Literal["none", "hash", "range", "even"], BeforeValidator(lower)] = "hash"
    number: int = Field(ge=-1, le=2**31 - 1, description="How many buckets; 0 or -1 leaves it to the catalog")
    func_args: list[FunctionArg] = []


class SortOrder(Body):
    """One term to sort by; without `nullOrdering`, nulls go first when ascending and last when descending."""

    sort_term: FunctionArg
    direction: Annotated[Literal["asc", "desc"], BeforeValidator(lower)] = "asc"
    null_ordering: Annotated[Literal["nulls_first", "nulls_last"], BeforeValidator(lower)] | None = None

    @property
    def nulls(self) -> str:
        """The effective null ordering."""
        return self.null_ordering or ("nulls_first" if self.direction == "asc" else "nulls_last")


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


class Index(Body):
    """A key or index over columns."""

    index_type: Annotated[IndexType, BeforeValidator(_upper)]
    name: str | None = None
    field_names: FieldNames
    properties: Properties = {}


class CreateTableRequest(Body):
    """A new table."""

    name: Name
    comment: str | None = None
    columns: list[Column]
    properties: Properties = {}
    partitioning: list[Partitioning] = []
    distribution: Distribution | None = None
    sort_orders: list[SortOrder] = []
    indexes: list[Index] = []

    @model_validator(mode="after")
    def _one_auto_increment(self) -> CreateTableRequest:
        counting = [column.name for column in self.columns if column.auto_increment]
        if len(counting) > 1:
            raise ValueError(f"only one column can be auto-incremented, not {', '.join(map(quote, counting))}")
        return self

    def layout(self) -> list[str]:
        """The JSON names of requested parts that many systems cannot store."""
        distributed = self.distribution is not None and self.distribution.strategy != "none"
        asked = {
            "partitioning": self.partitioning,
            "distribution": distributed,
            "sortOrders": self.sort_orders,
            "indexes": self.indexes,
        }
        return [name for name, part in asked.items() if part]


class After(Body):
    """Right after the sibling of that name."""

    after: Name


ColumnPosition = TypeAliasType(
    "ColumnPosition",
    Annotated[
        Annotated[Annotated[Literal["first", "default"], BeforeValidator(lower)], Tag("word")]
        | Annotated[After, Tag("after")],
        Discriminator(lambda value: "word" if isinstance(value, str) else "after"),
    ],
)


class RenameTable(Body):
    action: Literal["rename"] = Field(alias="@type")
    new_name: Name
    new_schema_name: Name | None = None


class UpdateComment(Body):
    """Replace the table's comment; None removes it."""

    action: Literal["updateComment"] = Field(alias="@type")
    new_comment: str | None = None


class SetProperty(Body):
    action: Literal["setProperty"] = Field(alias="@type")
    property: Name
    value: str


class RemoveProperty(Body):
    action: Literal["removeProperty"] = Field(alias="@type")
    property: Name


class KeepProperty(Body):
    """A property set to its own mask: the value stays. Clients never send this; it replaces their `setProperty`."""

    property: Name


class AddColumn(Body):
    action: Literal["addColumn"] = Field(alias="@type")
    field_name: FieldName
    type: DataType
    comment: str | None = None
    position: ColumnPosition = "default"
    nullable: bool = True
    auto_increment: bool = False
    default_value: FunctionArg | None = None


class DeleteColumn(Body):
    action: Literal["deleteColumn"] = Field(alias="@type")
    field_name: FieldName
    if_exists: bool = False


class RenameColumn(Body):
    action: Literal["renameColumn"] = Field(alias="@type")
    old_field_name: FieldName
    new_field_name: Name


class UpdateColumnType(Body):
    action: Literal["updateColumnType"] = Field(alias="@type")
    field_name: FieldName
    new_type: DataType


class UpdateColumnComment(Body):
    action: Literal["updateColumnComment"] = Field(alias="@type")
    field_name: FieldName
    new_comment: str | None = None


class UpdateColumnPosition(Body):
    action: Literal["updateColumnPosition"] = Field(alias="@type")
    field_name: FieldName
    new_position: ColumnPosition


class UpdateColumnNullability(Body):
    action: Literal["updateColumnNullability"] = Field(alias="@type")
    field_name: FieldName
    nullable: bool


class UpdateColumnAutoIncrement(Body):
    action: Literal["updateColumnAutoIncrement"] = Field(alias="@type")
    field_name: FieldName
    auto_increment: bool


class UpdateColumnDefaultValue(Body):
    action: Literal["updateColumnDefaultValue"] = Field(alias="@type")
    field_name: FieldName
    new_default_value: FunctionArg


class AddTableIndex(Body):
    action: Literal["addTableIndex"] = Field(alias="@type")
    index: Index


class DeleteTableIndex(Body):
    action: Literal["deleteTableIndex"] = Field(alias="@type")
    name: Name
    if_exists: bool = False


TableUpdate = TypeAliasType(
    "TableUpdate",
    Annotated[
        RenameTable
        | UpdateComment
        | SetProperty
        | RemoveProperty
        | AddColumn
        | DeleteColumn
        | RenameColumn
        | UpdateColumnType
        | UpdateColumnComment
        | UpdateColumnPosition
        | UpdateColumnNullability
        | UpdateColumnAutoIncrement
        | UpdateColumnDefaultValue
        | AddTableIndex
        | DeleteTableIndex,
        Field(discriminator="action"),
    ],
)


class TableUpdatesRequest(Body):
    """Alterations, applied in order, all or none. An empty list changes nothing."""

    updates: list[TableUpdate]
