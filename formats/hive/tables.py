"""A Hive table as plain data, and its formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from formats.hive.formats import format_name
from metalake.errors import Invalid
from metalake.wire import quote

MANAGED_TABLE, EXTERNAL_TABLE = "MANAGED_TABLE", "EXTERNAL_TABLE"
VIEW_TYPES = frozenset({"VIRTUAL_VIEW", "MATERIALIZED_VIEW"})
TABLE_FORMATS = ("iceberg", "delta", "hudi")
FILTER_WORDS = ("all", "hive", "iceberg", "delta", "parquet")
FILE_FORMATS = {
    "TEXTFILE": "text", "ORC": "orc", "PARQUET": "parquet", "AVRO": "avro", "JSON": "json", "CSV": "csv",
}  # fmt: skip
SPARK_PROVIDER = "spark.sql.sources.provider"


@dataclass(frozen=True)
class HiveColumn:
    """A column or partition key; `type` is a Hive type string. Only Glue's columns have parameters."""

    name: str
    type: str
    comment: str | None = None
    parameters: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SortColumn:
    name: str
    ascending: bool = True


@dataclass(frozen=True, kw_only=True)
class HiveTable:
    """A table as a Hive Metastore or AWS Glue describes it.

    `comment` is the table's comment wherever the system stores it: a metastore's parameter `comment` is removed from
    `parameters` on read and restored on write; in Glue it is the description, and a parameter `comment` stays in
    `parameters`. Partition keys are not among the columns. `rest` is the remainder of the system's response as JSON,
    which its provider sends back unchanged.
    """

    name: str
    columns: tuple[HiveColumn, ...] = ()
    partition_keys: tuple[HiveColumn, ...] = ()
    parameters: dict[str, str] = field(default_factory=dict)
    table_type: str | None = None
    comment: str | None = None
    location: str | None = None
    input_format: str | None = None
    output_format: str | None = None
    serde_lib: str | None = None
    serde_name: str | None = None
    serde_parameters: dict[str, str] = field(default_factory=dict)
    bucket_columns: tuple[str, ...] = ()
    num_buckets: int = -1
    sort_columns: tuple[SortColumn, ...] = ()
    compressed: bool = False
    stored_as_sub_directories: bool = False
    sd_parameters: dict[str, str] = field(default_factory=dict)
    view_original_text: str | None = None
    view_expanded_text: str | None = None
    owner: str | None = None
    retention: int = 0
    rest: dict[str, Any] = field(default_factory=dict)

    @property
    def is_view(self) -> bool:
        return self.table_type in VIEW_TYPES

    @property
    def is_external(self) -> bool:
        """Whether a drop leaves its files; a metastore itself checks only the parameter."""
        return self.table_type == EXTERNAL_TABLE or self.parameters.get("EXTERNAL", "").upper() == "TRUE"

    def as_json(self) -> dict[str, Any]:
        """The table as JSON; lists and dicts are shared with the table, not copied."""
        lists = {
            name: [value if isinstance(value, str) else {**vars(value)} for value in values]
            for name, values in vars(self).items()
            if isinstance(values, tuple)
        }
        return {**vars(self), **lists}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> HiveTable:
        """The inverse of `as_json`."""
        return cls(
            **{
                **data,
                "columns": tuple(HiveColumn(**column) for column in data["columns"]),
                "partition_keys": tuple(HiveColumn(**column) for column in data["partition_keys"]),
                "bucket_columns": tuple(data["bucket_columns"]),
                "sort_columns": tuple(SortColumn(**column) for column in data["sort_columns"]),
            }
        )


def formats_of(table: HiveTable) -> frozenset[str]:
    """A table's formats: `iceberg`, `delta` or `hudi`, otherwise `hive` and its file format if known.

    File formats are `parquet`, `orc`, `csv`, `text`, `avro` and `json`.
    """
    marks = {table.parameters.get(mark, "").lower() for mark in ("table_type", SPARK_PROVIDER)}
    if (table.input_format or "").startswith("org.apache.hudi."):
        marks.add("hudi")
    for kind in TABLE_FORMATS:
        if kind in marks:
            return frozenset({kind})
    file_format = _file_format(table)
    return frozenset({"hive", file_format} if file_format else {"hive"})


def _file_format(table: HiveTable) -> str | None:
    """The file format: from Spark's provider, else the storage classes, refined for text by Glue's `classification`."""
    known = FILE_FORMATS.values()
    provider = table.parameters.get(SPARK_PROVIDER, "").lower()
    if provider in known:
        return provider
    stored = FILE_FORMATS.get(format_name(table.input_format, table.serde_lib) or "")
    classified = table.parameters.get("classification", "").lower()
    return classified if stored in (None, "text") and classified in known else stored


def read_filter(text: str, where: str) -> frozenset[str]:
    """Parse a `table-type-filter` such as `hive,delta`, in any case. Raises Invalid, naming `where`."""
    words = frozenset(word for part in text.split(",") if (word := part.strip().lower()))
    if unknown := sorted(words.difference(FILTER_WORDS)):
        raise Invalid(f"{where}: {quote(unknown[0])} is none of {', '.join(FILTER_WORDS)}", kind="catalog")
    return words or frozenset({"all"})


def passes(wanted: Iterable[str], formats: Iterable[str]) -> bool:
    """Whether a filter shows a table with these formats."""
    words = frozenset(wanted)
    return "all" in words or not words.isdisjoint(formats)
