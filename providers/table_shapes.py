"""What tables of each format may have, for forms; the store itself checks each table and each change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from providers.base import Offer, Storage

BY_PROPERTY = frozenset({"iceberg", "hive"})
_NUMBERS = ("boolean", "integer", "long", "float", "double", "decimal(10,2)")
_POINTS = ("date", "timestamp", "timestamp_tz")


@dataclass(frozen=True, kw_only=True)
class TableShape:
    """The choices for a table of one format.

    `types` are suggestions, in the native API's names; `takes_other_types`: the system has more of its own.
    `transforms` are the native partitioning strategies. `lacks` has the parts that such a table cannot have, with the
    reason: `partitioning`, `sorting`, `properties`, `required` of a column, and `moving` a column.
    `properties` are those that ask for this format.
    """

    label: str
    types: tuple[str, ...]
    takes_other_types: bool = False
    transforms: tuple[str, ...] = ()
    lacks: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


def _of_database(label: str, *types: str, **lacks: str) -> TableShape:
    return TableShape(
        label=label,
        types=(*_NUMBERS, "short", "string", "varchar(200)", *_POINTS, "time", "binary", *types),
        takes_other_types=True,
        lacks={
            "partitioning": "Tables of a database are made plain here; partitions are made in the database.",
            "sorting": "A database stores rows in an order of its own.",
            "properties": "Tables of a database have no properties.",
            **lacks,
        },
    )


ICEBERG = TableShape(
    label="Iceberg",
    types=(*_NUMBERS, "string", *_POINTS, "time", "uuid", "binary", "fixed(16)", "list<string>", "map<string, long>"),
    transforms=("identity", "year", "month", "day", "hour", "bucket", "truncate"),
)
HIVE = TableShape(
    label="Hive",
    types=(*_NUMBERS, "byte", "short", "string", "varchar(200)", *_POINTS, "binary", "list<string>"),
    transforms=("identity",),
    lacks={"required": "Every column of a Hive table may be empty."},
)
_SHAPES = {
    "iceberg": ICEBERG,
    "hive": HIVE,
    "postgresql": _of_database(
        "PostgreSQL", "uuid", "jsonb", moving="PostgreSQL adds columns at the end and moves none."
    ),
    "mysql": _of_database("MySQL", "uuid", "json"),
}


def shapes_of(offer: Offer) -> dict[str, TableShape]:
    """The shapes of the tables that can be made under an offer, by format; formats of engines alone have none."""
    shapes = {name: _SHAPES[name] for name in sorted(offer.formats & _SHAPES.keys(), reverse=True)}
    if offer.storage is Storage.EXTERNAL:  # these read a new table's format from a property
        shapes |= {name: replace(shapes[name], properties={"table_type": name}) for name in shapes.keys() & BY_PROPERTY}
    return shapes or {name: TableShape(label=name.capitalize(), types=ICEBERG.types) for name in sorted(offer.formats)}
