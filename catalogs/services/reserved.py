"""Places of what was dropped and not purged: kept from everybody but its former owner and the catalog's owner."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from authz import operations, policy
from authz.actor import Actor
from authz.services.owners import Party
from catalogs.lookup import by_id
from catalogs.models import Catalog, LocationClaim, Mirror, ReservedPlace, Schema
from catalogs.services.opening import kept_provider
from formats.hive.tables import EXTERNAL_TABLE
from formats.iceberg import locations
from metalake.errors import Forbidden, Invalid, MetalakeError
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.models import Securable, below
from metalake.names import dotted


def keep(target: Located) -> list[ReservedPlace]:
    """Reserve the places of what is about to be removed, in its transaction; returns those of what lies in catalogs."""
    gone = Q(pk=target.id) | below(target.lineage)
    of_objects = list(_places_in_catalogs(target, Securable.objects.filter(gone).values("pk")))
    of_catalogs: list[ReservedPlace] = []
    if target.kind in (Kind.METALAKE, Kind.CATALOG):
        catalogs = Catalog.objects.filter(gone)
        of_catalogs = list(_places_of_catalogs(target, catalogs))
        owners = Securable.objects.filter(pk=OuterRef("of_catalog"))
        ReservedPlace.objects.filter(of_catalog__in=catalogs.values("pk")).update(
            catalog_user_id=Subquery(owners.values("owner_user_id")),
            catalog_group_id=Subquery(owners.values("owner_group_id")),
        )
    ReservedPlace.objects.bulk_create([*of_objects, *of_catalogs])
    return of_objects


def _places_in_catalogs(target: Located, ids: QuerySet) -> Iterator[ReservedPlace]:
    held = LocationClaim.objects.filter(securable_id__in=ids).values_list(
        "location",
        "securable__kind",
        "securable__name",
        "securable__lineage",
        "securable__owner_user_id",
        "securable__owner_group_id",
        "securable__parent__schema__physical_name",
    )
    catalogs: dict[int, Catalog] = {}
    for location, kind, name, lineage, user_id, group_id, physical in held:
        metalake_id, catalog_id = (int(part) for part in lineage.split("/")[1:3])
        if catalog_id not in catalogs:
            catalogs[catalog_id] = Catalog.objects.get(pk=catalog_id)
        catalog = catalogs[catalog_id]
        called = catalog.name if target.kind == Kind.METALAKE else target.catalog.name  # as who drops it named it
        path = Schema(physical_name=physical).path
        is_gone = target.kind in (Kind.METALAKE, Kind.CATALOG)
        yield ReservedPlace(
            location=location,
            kind=kind,
            full_name=dotted([called, path.logical(), name])[:2048],
            metalake_name=target.metalake.name,
            of_metalake=metalake_id,
            of_catalog=catalog_id,
            owner_user_id=user_id,
            owner_group_id=group_id,
            catalog_user_id=catalog.owner_user_id if is_gone else None,
            catalog_group_id=catalog.owner_group_id if is_gone else None,
        )


def _places_of_catalogs(target: Located, catalogs: QuerySet[Catalog]) -> Iterator[ReservedPlace]:
    """Those of catalogs that hold anything: what an outside system keeps in them has no claims here."""
    for row in catalogs.filter(Exists(Schema.objects.filter(in_catalog_id=OuterRef("pk")))):
        try:
            places = kept_provider(row.pk, row.provider, row.properties).locations()
        except MetalakeError:
            continue  # its provider is there no more, so nothing told where it lies
        meant = [locations.canonical(locations.real_path(place)) for place in places]  # by whatever link it was named
        for place in dict.fromkeys([*places, *meant]):
            yield ReservedPlace(
                location=place,
                kind=Kind.CATALOG,
                full_name=row.name,
                metalake_name=target.metalake.name,
                of_metalake=target.metalake.id,
                of_catalog=row.pk,
                owner_user_id=row.owner_user_id,
                owner_group_id=row.owner_group_id,
                catalog_user_id=row.owner_user_id,
                catalog_group_id=row.owner_group_id,
            )


def keep_outside(target: Located, *, with_managed: bool = False) -> None:
    """Reserve where tables of an outside system lie that are about to be removed, if a drop leaves their files.

    By what the system last said of them; in the transaction that removes them. `with_managed` says that the files of
    managed tables were left too.
    """
    tables = Mirror.objects.filter(
        Q(pk=target.id) | below(target.lineage, "securable__lineage"), securable__kind=Kind.TABLE
    ).select_related("securable")
    kept = []
    for mirror in tables:
        place = _left_at(mirror.definition, with_managed)
        if place is None:
            continue
        row = mirror.securable
        full_name = target.full_name if row.pk == target.id else [*target.full_name, row.name]
        kept.append(
            ReservedPlace(
                location=place,
                kind=Kind.TABLE,
                full_name=dotted(full_name)[:2048],
                metalake_name=target.metalake.name,
                of_metalake=target.metalake.id,
                of_catalog=target.catalog.id,
                owner_user_id=row.owner_user_id,
                owner_group_id=row.owner_group_id,
            )
        )
    if kept:
        again = ReservedPlace.objects.filter(of_catalog=target.catalog.id, location__in=[row.location for row in kept])
        again.delete()
        ReservedPlace.objects.bulk_create(kept)


def _left_at(definition: dict[str, Any], with_managed: bool) -> str | None:
    """Where the files of a dropped table stay; of a managed one the system deletes them."""
    place, kind = definition.get("location"), (definition.get("table_type") or "").upper()
    is_iceberg = "metadata_location" in (definition.get("parameters") or {})
    if not place or not (with_managed or kind == EXTERNAL_TABLE or is_iceberg):
        return None
    try:
        return locations.canonical(place)
    except Invalid:
        return None  # nobody could name it


def overlaps(places: Collection[str]) -> Q:
    """Rows whose `location` is one of these places, a part of one, or what one is a part of.

    Of local places also by where the links of this machine lead: a link in one table's place may lead into another's.
    """
    condition = Q(pk__in=[])
    for place in dict.fromkeys([*places, *_meant(places)]):
        condition |= Q(location__in=up_to(place)) | Q(location__gt=f"{place}/", location__lt=f"{place}0")
    return condition


def _meant(places: Iterable[str]) -> Iterator[str]:
    for place in places:
        with suppress(Invalid):  # nobody could have named what it leads to
            yield locations.canonical(locations.real_path(place))


def up_to(place: str) -> list[str]:
    """The place and all that hold it, outermost first."""
    levels = place.split("/")
    return ["/".join(levels[:depth]) for depth in range(3, len(levels) + 1)]


def take(actor: Actor, places: Collection[str], kind: Kind, *, but_of: int = 0) -> None:
    """Use places for a new table or catalog: what is reserved in them is not any more.

    What lies in a catalog meets what such objects left, a catalog all that was but what the catalog `but_of` left.
    Raises Forbidden where the actor may not, in words that name nobody.
    """
    rows = list(_met(places, kind).exclude(of_catalog=but_of))
    _require(actor, rows, places, kind)
    alike = [row for row in rows if (row.kind == Kind.CATALOG) == (kind is Kind.CATALOG)]
    whole = [row.pk for row in alike if any(locations.is_under(row.location, p) for p in places)]
    if whole:
        ReservedPlace.objects.filter(pk__in=whole).delete()


def require_open(actor: Actor, places: Collection[str]) -> None:
    """As `take` of a table, taking nothing."""
    _require(actor, _met(places, Kind.TABLE), places, Kind.TABLE)


def _met(places: Collection[str], kind: Kind) -> QuerySet[ReservedPlace]:
    met = ReservedPlace.objects.filter(overlaps(places))
    return met if kind is Kind.CATALOG else met.exclude(kind=Kind.CATALOG)


def _require(actor: Actor, rows: Iterable[ReservedPlace], places: Collection[str], kind: Kind) -> None:
    for row in rows:
        if not may_use(actor, row):
            raise Forbidden(
                f"{', '.join(places)} is reserved: something was dropped there and not purged. Who owned that, or its "
                "catalog, may use the place or release it; where the catalog is gone an operator may.",
                kind=kind,
            )


def is_left_to(actor: Actor, place: str) -> bool:
    """Whether a place is in one that is reserved for the actor as its former owner."""
    mine = Q(owner_user_id=actor.id) | Q(owner_group_id__in=actor.groups)
    left = ReservedPlace.objects.filter(mine, location__in=up_to(locations.canonical(place)))
    return left.exclude(kind=Kind.CATALOG).exists()


def may_use(actor: Actor, row: ReservedPlace, catalog: Located | None = None) -> bool:
    """Its former owner, and who owns the catalog or the metalake now; where the catalog is gone, who owned that."""
    if _is_owner(actor, row.owner_user_id, row.owner_group_id):
        return True
    above = catalog or by_id(row.of_catalog)
    if above is not None:
        return policy.permits(actor, operations.CHOOSE_PLACES, above)
    if _is_owner(actor, row.catalog_user_id, row.catalog_group_id):
        return True
    above = by_id(row.of_metalake)
    return above is not None and policy.permits(actor, operations.ALTER_METALAKE, above)


def _is_owner(actor: Actor, user_id: int | None, group_id: int | None) -> bool:
    return user_id == actor.id if user_id is not None else group_id is not None and group_id in actor.groups


def hand_over(metalake_id: int, was: Party, to: Party) -> None:
    """What is reserved for who leaves a metalake goes where the objects go that they owned."""
    mine = ReservedPlace.objects.filter(of_metalake=metalake_id)
    user_id, group_id = was
    by_owner = mine.filter(owner_user_id=user_id) if user_id else mine.filter(owner_group_id=group_id)
    by_owner.update(owner_user_id=to[0], owner_group_id=to[1])
    by_catalog = mine.filter(catalog_user_id=user_id) if user_id else mine.filter(catalog_group_id=group_id)
    by_catalog.update(catalog_user_id=to[0], catalog_group_id=to[1])
