"""List and release locations that nothing writes to any more: former ones of tables, and reserved ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from django.db import transaction

from authz import operations, snapshot
from authz.actor import NOBODY, Actor
from authz.locks import Lock
from authz.transactions import Stale
from catalogs.lookup import by_id
from catalogs.models import LocationClaim, ReservedPlace
from catalogs.services import reserved_denies, reserved_places
from catalogs.services.alterations import event
from catalogs.services.writes import Target, Write, write_to
from catalogs.stores import store_for
from formats.iceberg.live_files import live_files
from formats.iceberg.table_locations import owned_by
from metalake.errors import Conflict, InUse, NotFound
from metalake.events import event_of, record
from metalake.kinds import Kind
from metalake.lineage import Address, Located

ATTEMPTS = 3
PLACE = "place"


# Former places of a table


def places_of(actor: Actor, ident: Address) -> list[LocationClaim]:
    """The places of a table, the current ones first, then the former ones."""
    located = _target(ident).permitted(actor)
    rows = LocationClaim.objects.filter(securable_id=located.id).order_by("former_since", "location")
    return sorted(rows, key=lambda row: row.former_since is not None)


def _target(ident: Address) -> Target:
    return Target(replace(ident, leaf_kind=Kind.TABLE), operations.RELEASE_PLACES, check=_require_claims)


def _require_claims(actor: Actor, table: Located) -> None:
    store_for(table, Kind.TABLE).pointers.require_claims(table)


def release_former(actor: Actor, ident: Address, place_id: str) -> None:
    """Release a former place of a table, after reading the manifests of all its snapshots.

    With DENYs in force on the table it stays reserved (docs/authorization.md, rule 13).
    Raises InUse while live files of the table are there, Conflict if concurrent commits exhaust the retries.
    """
    for _ in range(ATTEMPTS):
        if _release_as_read(actor, ident, place_id):
            return
    raise Conflict("Others keep committing to the table; try again.", kind=Kind.TABLE)


def _release_as_read(actor: Actor, ident: Address, place_id: str) -> bool:
    located = _target(ident).permitted(actor)
    rows = LocationClaim.objects.filter(securable_id=located.id)
    place = next((row for row in rows if str(row.pk) == place_id), None)
    if place is None:
        raise NotFound(f"Place {place_id} of the table does not exist.", kind=PLACE)
    if place.former_since is None:
        raise InUse(f"The table writes to {place.location}; set another location first.", kind=PLACE)
    _require_left(actor, located, place, [row.location for row in rows])
    return write_to(actor, _target(ident), _release_former, located, place)


def _release_former(write: Write, as_read: Located, place: LocationClaim) -> bool:
    """Release the place; False if the table has changed since it was read."""
    fresh = write.located
    if (fresh.id, fresh.metadata_location) != (as_read.id, as_read.metadata_location):
        return False
    reserved_places.keep_left(fresh, place.location)
    if not LocationClaim.objects.filter(pk=place.pk, former_since=place.former_since).delete()[0]:
        raise Stale
    record(event(write.actor, "table.place_released", fresh, location=place.location))
    return True


def _require_left(actor: Actor, located: Located, place: LocationClaim, places: list[str]) -> None:
    """Raise InUse while live files of the table are in the place."""
    store = store_for(located, Kind.TABLE)
    current = store.pointers.read(store.load(actor, located))
    files = store.pointers.files(current)
    owns = owned_by(places, files.allowed, files.file_roots)
    if current.metadata_location and owned_by([place.location], files.allowed, files.file_roots)(
        current.metadata_location
    ):
        raise InUse(f"{place.location} holds the table's metadata.", kind=PLACE)
    for file in live_files(files.read_manifest, current.metadata, owns, place.location):
        raise InUse(
            f"{place.location} holds live files of the table, such as {file!r:.300}: rewrite its data and expire the "
            "snapshots that name them, or purge the table.",
            kind=PLACE,
        )


# Reserved places of dropped objects


def reserved_in(actor: Actor, metalake: str, catalog: str) -> list[ReservedPlace]:
    """The reserved places of a catalog that the actor may use: all for its owner, their own for others."""
    located = _catalog(metalake, catalog).permitted(actor)
    rows = ReservedPlace.objects.filter(of_catalog=located.id).order_by("location", "pk")
    return [row for row in rows if reserved_places.may_use(actor, row, located)]


def _catalog(metalake: str, catalog: str) -> Target:
    return Target(Address(metalake=metalake, catalog=catalog), operations.LOAD_CATALOG, Lock.HANGS)


def release_reserved(actor: Actor, metalake: str, catalog: str, place_id: str) -> None:
    """Release a reserved place, so that others can use it.

    Raises NotFound, and Forbidden if a DENY was kept with it that the actor may not lift.
    """
    write_to(actor, _catalog(metalake, catalog), _release_reserved, place_id)


def _release_reserved(write: Write, place_id: str) -> None:
    actor, located = write.actor, write.located
    rows = ReservedPlace.objects.filter(of_catalog=located.id)
    row = next((row for row in rows if str(row.pk) == place_id), None)
    if row is None or not reserved_places.may_use(actor, row, located):
        raise NotFound(f"Reserved place {place_id} does not exist.", kind=PLACE)
    reserved_denies.require_lift(actor, [row], None, f"Releasing {row.location}", PLACE)
    row.delete()
    record(event(actor, "place.released", located, location=row.location, of=row.full_name))


def release_for_operator(by: str, rows: Iterable[ReservedPlace]) -> list[ReservedPlace]:
    """Release the rows whose catalog is dropped, and return them; in an existing catalog only its owner may."""
    released = [row for row in rows if by_id(row.of_catalog) is None]
    with transaction.atomic():
        for row in released:
            who = Actor(NOBODY, by, snapshot.latest())
            name = [row.full_name.partition(".")[0]]
            target = (Kind.CATALOG, row.of_catalog, name, row.of_metalake)
            record(event_of(who, "place.released", *target, location=row.location, of=row.full_name))
        ReservedPlace.objects.filter(pk__in=[row.pk for row in released]).delete()
    return released
