"""Places of dropped, unpurged objects: reserved for the former owner of the object and the owner of the catalog."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from authz import operations, policy, snapshot
from authz.actor import Actor
from authz.services.ownership_rules import Party, is_party, party_of
from catalogs.lookup import by_id
from catalogs.models import Catalog, LocationClaim, Mirror, ReservedPlace, Schema
from catalogs.services import reserved_denies, storage_identity
from catalogs.services.provider_of import provider_with_locations
from catalogs.services.reserved_denies import Denies
from formats.hive.tables import EXTERNAL_TABLE
from formats.iceberg import locations
from metalake.errors import Forbidden, Invalid, MetalakeError
from metalake.full_names import dotted
from metalake.kinds import LEAVES, Kind
from metalake.lineage import Located, Node
from metalake.models import Securable, below


class OfOthers(Forbidden):
    """The place is reserved for other owners, whom the message does not name."""


def keep(target: Located) -> list[ReservedPlace]:
    """Reserve the places of an object that is about to be removed, and of all below it, in that transaction.

    Returns the reservations of objects inside catalogs, without those of whole catalogs.
    """
    gone = Q(pk=target.id) | below(target.lineage)
    denies = reserved_denies.denies_at(target, timezone.now())
    of_objects = list(_places_in_catalogs(target, Securable.objects.filter(gone).values("pk"), denies))
    of_catalogs: list[ReservedPlace] = []
    if target.kind in (Kind.METALAKE, Kind.CATALOG):
        catalogs = Catalog.objects.filter(gone)
        of_catalogs = list(_places_of_catalogs(target, catalogs, denies))
        owners = Securable.objects.filter(pk=OuterRef("of_catalog"))
        ReservedPlace.objects.filter(of_catalog__in=catalogs.values("pk")).update(
            catalog_user_id=Subquery(owners.values("owner_user_id")),
            catalog_group_id=Subquery(owners.values("owner_group_id")),
        )
    ReservedPlace.objects.bulk_create([*of_objects, *of_catalogs])
    return of_objects


def keep_left(table: Located, place: str) -> None:
    """Reserve a place that a table gives up if DENYs must be retained with it; in the same transaction."""
    denies = reserved_denies.denies_at(table, timezone.now())
    rows = _places_in_catalogs(table, Securable.objects.filter(pk=table.id).values("pk"), denies)
    ReservedPlace.objects.bulk_create(row for row in rows if row.location == place and row.denied)


def _places_in_catalogs(target: Located, ids: QuerySet, denies: Denies) -> Iterator[ReservedPlace]:
    claims = LocationClaim.objects.filter(securable_id__in=ids).values_list(
        "location",
        "securable__kind",
        "securable__name",
        "securable__lineage",
        "securable__owner_user_id",
        "securable__owner_group_id",
        "securable__parent__schema__physical_name",
    )
    catalogs: dict[int, Catalog | Node] = {} if target.kind == Kind.METALAKE else {target.catalog.id: target.catalog}
    storages_of = cache(storage_identity.of_catalog)
    for location, kind, name, lineage, user_id, group_id, physical in claims:
        metalake_id, catalog_id = (int(part) for part in lineage.split("/")[1:3])
        if catalog_id not in catalogs:
            catalogs[catalog_id] = Catalog.objects.get(pk=catalog_id)
        catalog = catalogs[catalog_id]
        called = catalog.name if target.kind == Kind.METALAKE else target.catalog.name  # as the request spelled it
        path = Schema(physical_name=physical).path
        is_gone = target.kind in (Kind.METALAKE, Kind.CATALOG)
        yield ReservedPlace(
            location=location,
            storages=None if locations.is_local(location) else storages_of(catalog_id),
            kind=kind,
            full_name=dotted([called, path.logical(), name])[:2048],
            metalake_name=target.metalake.name,
            of_metalake=metalake_id,
            of_catalog=catalog_id,
            owner_user_id=user_id,
            owner_group_id=group_id,
            catalog_user_id=catalog.owner_user_id if is_gone else None,
            catalog_group_id=catalog.owner_group_id if is_gone else None,
            denied=reserved_denies.on_lineage(denies, lineage),
        )


def _places_of_catalogs(target: Located, catalogs: QuerySet[Catalog], denies: Denies) -> Iterator[ReservedPlace]:
    """The places of catalogs that have schemas: outside tables in them have no claims of their own."""
    for row in catalogs.filter(Exists(Schema.objects.filter(in_catalog_id=OuterRef("pk")))):
        try:
            places = provider_with_locations(row.pk, row.provider, row.properties).locations()
        except MetalakeError:
            continue  # its provider is not installed any more, so its places are not known
        real_places = [locations.canonical(locations.real_path(place)) for place in places]  # with links followed
        for place in dict.fromkeys([*places, *real_places]):
            yield ReservedPlace(
                location=place,
                storages=storage_identity.of(row),
                kind=Kind.CATALOG,
                full_name=row.name,
                metalake_name=target.metalake.name,
                of_metalake=target.metalake.id,
                of_catalog=row.pk,
                owner_user_id=row.owner_user_id,
                owner_group_id=row.owner_group_id,
                catalog_user_id=row.owner_user_id,
                catalog_group_id=row.owner_group_id,
                denied=reserved_denies.on_lineage(denies, row.lineage),
            )


def keep_outside(target: Located, *, with_managed: bool = False) -> None:
    """Reserve the places of outside objects that are about to be removed, if the drop leaves their files.

    The places are those of their mirrors; one that the catalog does not name is reserved in that catalog alone, since
    a metastore is untrusted. Call it in the transaction that removes them. `with_managed`: the files of
    managed tables were left too.
    """
    catalog = Catalog.objects.get(pk=target.catalog.id)
    provider = provider_with_locations(catalog.pk, catalog.provider, catalog.properties)
    gone = Q(pk=target.id) | below(target.lineage, "securable__lineage")
    mirrors = Mirror.objects.filter(gone, securable__kind__in=LEAVES).select_related("securable")
    schemas = Mirror.objects.filter(gone | Q(pk__in=[node.id for node in target.nodes]), securable__kind=Kind.SCHEMA)
    described = schemas.exclude(definition={}).values_list("pk", "definition")
    linked = {pk for pk, definition in described if provider.target_of(definition) is not None}
    reserved: list[ReservedPlace] = []
    denies = reserved_denies.denies_at(target, timezone.now())
    for mirror in mirrors:
        place = _left_at(mirror.definition, with_managed)
        row = mirror.securable
        if place is None or row.parent_id in linked or provider.target_of(mirror.definition) is not None:
            continue  # the files behind a link are not this catalog's
        full_name = target.full_name if row.pk == target.id else [*target.full_name, row.name]
        reserved.append(
            ReservedPlace(
                location=place,
                storages=storage_identity.of(catalog),
                is_named=provider.is_named(place),
                kind=row.kind,
                full_name=dotted(full_name)[:2048],
                metalake_name=target.metalake.name,
                of_metalake=target.metalake.id,
                of_catalog=target.catalog.id,
                owner_user_id=row.owner_user_id,
                owner_group_id=row.owner_group_id,
                denied=reserved_denies.on_lineage(denies, row.lineage),
            )
        )
    _store_again(catalog.pk, reserved)


def _store_again(catalog_id: int, rows: list[ReservedPlace]) -> None:
    """Store reservations, replacing the catalog's former ones of the same places.

    One with other DENYs stays until a caller who may lift them releases it.
    """
    denied_at = {row.location: row.denied for row in rows}
    former = ReservedPlace.objects.filter(of_catalog=catalog_id, location__in=denied_at)
    stored = former.values_list("pk", "location", "denied")
    same = [pk for pk, place, denied in stored if denied is None or denied == denied_at[place]]
    ReservedPlace.objects.filter(pk__in=same).delete()
    ReservedPlace.objects.bulk_create(rows)


def _left_at(definition: dict[str, Any], with_managed: bool) -> str | None:
    """The place where a dropped table's files stay; None if the system deletes them with the table."""
    place, kind = definition.get("location"), (definition.get("table_type") or "").upper()
    is_iceberg = "metadata_location" in (definition.get("parameters") or {})
    if not place or not (with_managed or kind == EXTERNAL_TABLE or is_iceberg):
        return None
    try:
        return locations.canonical(place)
    except Invalid:
        return None  # malformed, so no new table can use it either


def overlaps(places: Collection[str]) -> Q:
    """Rows whose `location` overlaps one of these places: equals, contains or is inside it.

    Local places are also compared with symbolic links resolved: a link in one table's place may lead into another's.
    """
    condition = Q(pk__in=[])
    for around, (after, before) in spans(places):
        condition |= Q(location__in=around) | Q(location__gt=after, location__lt=before)
    return condition


def spans(places: Collection[str]) -> list[tuple[list[str], tuple[str, str]]]:
    """For each place, and what its links resolve to: itself with its ancestors, and the range of all below it."""
    every = dict.fromkeys([*places, *_real_places(places)])
    return [(up_to(place), (f"{place}/", f"{place}0")) for place in every]


def _real_places(places: Iterable[str]) -> Iterator[str]:
    for place in places:
        with suppress(Invalid):  # a malformed place overlaps no other
            yield locations.canonical(locations.real_path(place))


def up_to(place: str) -> list[str]:
    """The place and its ancestors, outermost first."""
    levels = place.split("/")
    return ["/".join(levels[:depth]) for depth in range(3, len(levels) + 1)]


def take(
    actor: Actor, places: Collection[str], kind: Kind, home: Located, words: storage_identity.Words = None
) -> None:
    """Use places for a new table or catalog, and delete the reservations inside them.

    A table or view is checked against reservations of tables and views, a catalog against all except its own. `home` is
    the container, or the object itself if it exists or is a catalog; `words` are the storages of an unsaved catalog.
    Raises OfOthers, and Forbidden if a DENY retained with a place would be bypassed.
    """
    catalog_id = home.catalog.id
    rows = ReservedPlace.objects.filter(overlaps(places))
    rows = rows.exclude(of_catalog=catalog_id) if kind is Kind.CATALOG else rows.exclude(kind=Kind.CATALOG)
    overlapping = list(_meeting(rows, catalog_id, words))
    _require(actor, overlapping, places, kind, home)
    alike = [row for row in overlapping if (row.kind == Kind.CATALOG) == (kind is Kind.CATALOG)]
    whole = [row.pk for row in alike if any(locations.is_under(row.location, p) for p in places)]
    if whole:
        ReservedPlace.objects.filter(pk__in=whole).delete()


def require_open(actor: Actor, places: Collection[str], home: Located) -> None:
    """Raise Forbidden as `take` does for a table; changes nothing."""
    _require(actor, list(inside(places, home.catalog.id)), places, Kind.TABLE, home)


def _meeting(
    rows: QuerySet[ReservedPlace], catalog_id: int, words: storage_identity.Words = None
) -> Iterator[ReservedPlace]:
    """Those that apply to a catalog: its own, and others' in the same storage that their catalog had named."""
    for row in rows.filter(Q(is_named=True) | Q(of_catalog=catalog_id)):
        if row.of_catalog != catalog_id and not locations.is_local(row.location):
            words = storage_identity.of_catalog(catalog_id) if words is None else words
            if not storage_identity.may_be_same(row.location, words, row.storages):
                continue
        yield row


def inside(places: Collection[str], catalog_id: int) -> Iterator[ReservedPlace]:
    """Reservations of tables and views that apply to the catalog and overlap one of these places."""
    return _meeting(ReservedPlace.objects.filter(overlaps(places)).exclude(kind=Kind.CATALOG), catalog_id)


def _require(actor: Actor, rows: Sequence[ReservedPlace], places: Collection[str], kind: Kind, home: Located) -> None:
    for row in rows:
        if not may_use(actor, row):
            raise OfOthers(
                f"{', '.join(places)} is reserved for a dropped, unpurged object. Its former owner or the owner of its "
                "catalog may use or release the location; if the catalog was dropped too, an operator may.",
                kind=kind,
            )
    reserved_denies.require_lift(actor, rows, home, f"Using {', '.join(places)}", kind)


def is_left_to(actor: Actor, place: str, catalog_id: int) -> bool:
    """Whether a place of the catalog is inside one reserved for the actor as the former owner."""
    mine = Q(owner_user_id=actor.id) | Q(owner_group_id__in=actor.groups)
    left = ReservedPlace.objects.filter(mine, location__in=up_to(locations.canonical(place)))
    return any(_meeting(left.exclude(kind=Kind.CATALOG), catalog_id))


def is_anothers(place: str, catalog: Catalog) -> bool:
    """Whether a place that only the catalog's system names is reserved by another catalog, for others than its owner.

    Its owner, not the caller: the entry would expose the place to everyone who may load it.
    """
    rows = ReservedPlace.objects.filter(overlaps([place])).exclude(of_catalog=catalog.pk)
    mine = {party_of(catalog)}
    if catalog.owner_user_id is not None:
        mine.update((None, group) for group in snapshot.latest().groups_of(catalog.owner_user_id))
    return any(mine.isdisjoint(_may_use(row)) for row in _meeting(rows, catalog.pk))


def _may_use(row: ReservedPlace) -> set[Party]:
    """The former owner, the owners of the existing catalog and metalake, and the former one of a dropped catalog."""
    catalog = by_id(row.of_catalog)
    above = catalog or by_id(row.of_metalake)
    former = set() if catalog else {(row.catalog_user_id, row.catalog_group_id)}
    owners = {party_of(node) for node in above.nodes} if above else set()
    return {party_of(row), *former, *owners} - {(None, None)}


def may_use(actor: Actor, row: ReservedPlace, catalog: Located | None = None) -> bool:
    """Whether the actor is the former owner, or owns the metalake or catalog, or owned the dropped catalog."""
    if is_party(actor, party_of(row)):
        return True
    above = catalog or by_id(row.of_catalog)
    if above is not None:
        return policy.permits(actor, operations.CHOOSE_PLACES, above)
    if is_party(actor, (row.catalog_user_id, row.catalog_group_id)):
        return True
    above = by_id(row.of_metalake)
    return above is not None and policy.permits(actor, operations.ALTER_METALAKE, above)


def hand_over(metalake_id: int, was: Party, to: Party) -> None:
    """Transfer the reservations of a party that leaves a metalake to the new owner of its objects."""
    mine = ReservedPlace.objects.filter(of_metalake=metalake_id)
    user_id, group_id = was
    by_owner = mine.filter(owner_user_id=user_id) if user_id else mine.filter(owner_group_id=group_id)
    by_owner.update(owner_user_id=to[0], owner_group_id=to[1])
    by_catalog = mine.filter(catalog_user_id=user_id) if user_id else mine.filter(catalog_group_id=group_id)
    by_catalog.update(catalog_user_id=to[0], catalog_group_id=to[1])


def belong_to(group_id: int) -> bool:
    """Whether any place is reserved for a group."""
    return ReservedPlace.objects.filter(Q(owner_group_id=group_id) | Q(catalog_group_id=group_id)).exists()
