"""Names of which an answer of the outside system is not true any more: writes of ours have them, or they went since.

What is published between the moment a system is asked and the moment its answer is met shows here: a write holds its
names until it ends, and then has a time at which it ended; what was buried has a tombstone. Holders are read before
the ended, so that none slips through between the two.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

from catalogs.models import LEVELS, Intent, Reservation, Tombstone
from metalake.kinds import Kind, Slot
from metalake.lineage import Located
from metalake.names import dotted
from outside.calls import levels_of


def wire_name(levels: Collection[str]) -> str:
    return LEVELS.join(levels)


def moving_tables(schema: Located, names: Collection[str], asked_at: datetime) -> set[str]:
    """Those of these tables that a write has, or that were written or buried since the system was asked."""
    reservations = Reservation.objects.filter(scope_id=schema.id, slot=Slot.TABULAR, intent__state__in=Intent.LIVE)
    moving = set(reservations.values_list("name", flat=True)) | _written(schema, asked_at)
    if buried := _buried(schema, Kind.TABLE, asked_at):
        moving |= {name for name in names if dotted([*schema.full_name, name]) in buried}
    return moving.intersection(names)


def _written(schema: Located, asked_at: datetime) -> set[str]:
    written = list(_ended(schema, asked_at))
    if not written:
        return set()
    here = levels_of(schema)
    names = set()
    for arguments in written:
        for levels, table in (("schema", "table"), ("to_schema", "to_table")):
            if table in arguments and arguments[levels] == here:
                names.add(arguments[table])
    return names


def reserved_schemas(catalog: Located) -> set[tuple[int, str]]:
    """The schemas of a catalog that a write of ours has, by what they are in and their names."""
    reservations = Reservation.objects.filter(intent__in_catalog_id=catalog.id, slot=Slot.SCHEMA)
    return set(reservations.values_list("scope_id", "name"))


def written_schemas(catalog: Located, asked_at: datetime) -> set[str]:
    """Wire names of schemas that were written since the system was asked; read after those that are held."""
    ended = _ended(catalog, asked_at)
    return {wire_name(arguments["schema"]) for arguments in ended if "table" not in arguments}


def buried_schemas(catalog: Located, asked_at: datetime) -> set[str]:
    """Dotted full names."""
    return _buried(catalog, Kind.SCHEMA, asked_at)


def _ended(located: Located, asked_at: datetime) -> Iterator[dict[str, Any]]:
    """The arguments of the calls of each write that ended since."""
    ended = Intent.objects.filter(in_catalog_id=located.catalog.id, ended_at__gte=asked_at)
    for steps in ended.values_list("steps", flat=True):
        yield from (each["arguments"] for each in steps)


def _buried(located: Located, kind: str, asked_at: datetime) -> set[str]:
    buried = Tombstone.objects.filter(in_catalog_id=located.catalog.id, found_at__gte=asked_at, kind=kind)
    return set(buried.values_list("full_name", flat=True))
