"""Names for which an outside system's answer may be stale: our writes hold them, or held them since the request.

A write reserves its names until it ends, and then records when it ended; a removed object has a tombstone.
Reservations are read before ended writes, so that a write ending between the two reads is not missed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

from catalogs.models import LEVELS, Intent, Reservation, Tombstone
from metalake.full_names import dotted
from metalake.kinds import LEAVES, Slot, sharing
from metalake.lineage import Located
from metalake.models import Securable
from outside.calls import levels_of


def wire_name(levels: Collection[str]) -> str:
    return LEVELS.join(levels)


def moving_leaves(slot: str, schema: Located, names: Collection[str], asked_at: datetime) -> set[str]:
    """Those of `names` that a write has reserved, or that were written or removed since `asked_at`."""
    reservations = Reservation.objects.filter(scope_id=schema.id, slot=slot, intent__state__in=Intent.LIVE)
    moving = set(reservations.values_list("name", flat=True)) | _written(slot, schema, asked_at)
    if buried := _buried(schema, slot, asked_at):
        moving |= {name for name in names if dotted([*schema.full_name, name]) in buried}
    return moving.intersection(names)


def _written(slot: str, schema: Located, asked_at: datetime) -> set[str]:
    written = list(_ended(schema, asked_at))
    if not written:
        return set()
    here = levels_of(schema)
    names = set()
    for arguments in written:
        for kind in sharing(slot):
            for levels, leaf in (("schema", str(kind)), ("to_schema", f"to_{kind}")):
                if leaf in arguments and arguments[levels] == here:
                    names.add(arguments[leaf])
    return names


def reserved_schemas(catalog: Located) -> set[tuple[int, str]]:
    """A catalog's schemas that our writes have reserved, as (container id, name)."""
    reservations = Reservation.objects.filter(intent__in_catalog_id=catalog.id, slot=Slot.SCHEMA)
    return set(reservations.values_list("scope_id", "name"))


def written_schemas(catalog: Located, asked_at: datetime) -> set[str]:
    """Wire names of schemas written since the request; to be read after `reserved_schemas`."""
    ended = _ended(catalog, asked_at)
    return {wire_name(arguments["schema"]) for arguments in ended if arguments.keys().isdisjoint(LEAVES)}


def buried_schemas(catalog: Located, asked_at: datetime) -> set[str]:
    """Dotted full names of schemas removed since the request."""
    return _buried(catalog, Slot.SCHEMA, asked_at)


def _ended(located: Located, asked_at: datetime) -> Iterator[dict[str, Any]]:
    """The call arguments of all writes that ended since then."""
    ended = Intent.objects.filter(in_catalog_id=located.catalog.id, ended_at__gte=asked_at)
    for steps in ended.values_list("steps", flat=True):
        yield from (each["arguments"] for each in steps)


def _buried(located: Located, slot: str, asked_at: datetime) -> set[str]:
    buried = Tombstone.objects.filter(in_catalog_id=located.catalog.id, found_at__gte=asked_at, kind__in=sharing(slot))
    return set(buried.values_list("full_name", flat=True))


def stored_here(slot: str, schema: Located, names: Collection[str]) -> set[str]:
    """Those of the names that objects stored here have, so no outside object can have them."""
    if not names:
        return set()
    rows = Securable.objects.filter(parent_id=schema.id, slot=slot, mirror=None)
    rows = rows.filter(name__in=names) if len(names) <= 500 else rows
    return set(rows.values_list("name", flat=True))
