"""Native table properties that Hive stores outside the parameters, and reserved ones."""

from __future__ import annotations

from metalake.errors import Invalid

# Property -> its attribute of HiveTable.
PLACES = {
    "location": "location",
    "input-format": "input_format",
    "output-format": "output_format",
    "serde-lib": "serde_lib",
    "serde-name": "serde_name",
    "table-type": "table_type",
}
FORMAT = "format"
SERDE_PARAMETER = "serde.parameter."

_WRITTEN_BY_ENGINES = "it is written by engines"
RESERVED = {
    "comment": "it is the table's comment",
    "external": "it follows from table-type",
    "numfiles": _WRITTEN_BY_ENGINES,
    "totalsize": _WRITTEN_BY_ENGINES,
    "transient_lastddltime": _WRITTEN_BY_ENGINES,
    "serde.parameter.path": "it follows from location",
}
FIXED_AT_CREATION = frozenset({"table-type", FORMAT, "input-format", "output-format"})
# Parameters that mark a table as another format than Hive's, or point to that format's metadata.
FORMAT_MARKS = frozenset({"table_type", "metadata_location", "previous_metadata_location"})
SPARKS_OWN = "spark.sql.sources."


def require_unreserved(name: str, where: str) -> None:
    """Raise Invalid for a reserved property, ignoring case (Hive has several spellings)."""
    reason = "it is written by Spark" if name.lower().startswith(SPARKS_OWN) else RESERVED.get(name.lower())
    if reason:
        raise Invalid(f"{where}: {name} is reserved; {reason}", kind="table")


def require_changeable(name: str, where: str) -> None:
    """Raise Invalid for a property that an update cannot set or remove."""
    require_unreserved(name, where)
    if name in FIXED_AT_CREATION or name.lower() in FORMAT_MARKS:
        raise Invalid(f"{where}: {name} is decided at creation", kind="table")
