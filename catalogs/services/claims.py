"""Claims of places by tables and views: each place belongs to one of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from authz import operations, policy
from authz.actor import Actor
from authz.services.ownership_rules import party_of
from catalogs.models import Catalog, LocationClaim
from catalogs.services import reserved_places, storage_identity
from catalogs.services.provider_of import provider_with_locations
from formats.iceberg import locations
from metalake.bulk_insert import Into, insert
from metalake.errors import Forbidden, Invalid
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.statements import fetch
from providers.base import Provider
from providers.metadata_files import MetadataFiles

MOST_FORMER = 16
_TOO_MANY_FORMER = {
    Kind.TABLE: "release one that contains none of its files any more: DELETE .../tables/{table}/places/{id} of the "
    "native API"
}


def lock_claims(catalog_id: int) -> None:
    """Lock the catalog for claims, so that concurrent claims see each other; other catalogs have other places.

    To be called before rows of schemas and tables are locked, if there will be a claim. On SQLite this does nothing: a
    write has the whole database to itself.
    """
    if not connection.features.has_select_for_update:
        return
    list(Catalog.objects.select_for_update(no_key=True).filter(pk=catalog_id).values_list("pk"))


def to_claim(
    actor: Actor,
    own_files: MetadataFiles,
    securable_id: int,
    places: list[str],
    home: Located,
    *,
    kind: Kind = Kind.TABLE,
    fresh: Collection[str] = (),
) -> Into:
    """The rows that give an object these places.

    `home` is what it will lie in, or itself. Raises Invalid if one overlaps another's, Forbidden as `reserved.take`.

    The caller has called `lock_claims`. `fresh` are new folders with unique names, which are not compared with
    reservations.
    """
    _require_apart(places, kind, own_files.catalog_id, but_of=securable_id)
    # After comparing the claims: a table dropped in the meantime has reserved its places by now.
    if named := [place for place in places if place not in fresh]:
        reserved_places.take(actor, named, kind, home)
    return LocationClaim, [LocationClaim(securable_id=securable_id, location=place) for place in places]


def require_claimable(actor: Actor, places: Collection[str], home: Located, *, fresh: Collection[str] = ()) -> None:
    """Dry run of `to_claim` for a new table: raises what it would, claims nothing."""
    _require_apart(places, Kind.TABLE, home.catalog.id)
    if named := [place for place in places if place not in fresh]:
        reserved_places.require_open(actor, named, home)


def _require_apart(places: Collection[str], kind: Kind, catalog_id: int, *, but_of: int = 0) -> None:
    spans = reserved_places.spans(places)
    if not spans:
        return
    one_of = [
        f"location IN ({', '.join(['%s'] * len(around))}) OR (location > %s AND location < %s)" for around, _ in spans
    ]
    parameters = [text for around, inside in spans for text in (*around, *inside)]
    statement = f"SELECT 1 FROM catalogs_locationclaim WHERE ({' OR '.join(one_of)}) AND table_id <> %s LIMIT 1"  # noqa: S608
    meets = fetch(statement, [*parameters, but_of])  # usually none, so one statement suffices
    if meets and any(claim.securable_id != but_of for claim in overlapping(places, catalog_id)):
        raise Invalid(f"A location of the {kind} overlaps another table's or view's: {', '.join(places)}.", kind=kind)


def move(actor: Actor, own_files: MetadataFiles, located: Located, places: list[str]) -> None:
    """Change the places that a table or view writes to. Former ones stay claimed, since live files may be in them.

    Raises Invalid for too many former places, and what `to_claim` and `require_giver` raise. One statement if nothing
    changes.
    """
    claimed: dict[str, Any] = dict(fetch(_CLAIMED, [located.id]))
    if sorted(place for place, since in claimed.items() if since is None) == places:
        return
    mine = LocationClaim.objects.filter(securable_id=located.id)
    if new := [place for place in places if place not in claimed]:
        require_giver(actor, located, [place for place in new if not _lies_in(place, claimed)])
        lock_claims(own_files.catalog_id)
        insert(to_claim(actor, own_files, located.id, new, located, kind=located.kind))
    mine.filter(location__in=places).update(former_since=None)
    left = [place for place, since in claimed.items() if since is None and place not in places]
    covered = [place for place in left if _lies_in(place, {*places, *claimed} - {place})]
    mine.filter(location__in=covered).delete()
    mine.filter(location__in=set(left) - set(covered)).update(former_since=timezone.now())
    if mine.filter(former_since__isnull=False).count() > MOST_FORMER:
        raise Invalid(
            f"{located.kind.capitalize()} {'.'.join(located.full_name)} has {MOST_FORMER} former locations, which "
            f"stay reserved for it; {_TOO_MANY_FORMER.get(located.kind, 'choose one of those')}.",
            kind=located.kind,
        )


def require_giver(actor: Actor, located: Located, new: Collection[str]) -> None:
    """Raise Forbidden unless the actor may give a table or view places that are new to it: its owner, or one above."""
    if new and not policy.permits(actor, operations.OPERATIONS[f"move_{located.kind}"], located):
        raise Forbidden(
            f"{actor.name} may not change the location of {located.kind} {'.'.join(located.full_name)} to "
            f"{min(new)!r:.200}: only its owner or the owner of an object above it may.",
            kind=located.kind,
        )


def _lies_in(place: str, others: Collection[str]) -> bool:
    return any(locations.is_under(place, other) for other in others)


_CLAIMED = "SELECT location, former_since FROM catalogs_locationclaim WHERE table_id = %s"


def require_unclaimed(provider: Provider, *places: str | None) -> None:
    """Raise Invalid for a place that only an outside system names, if it is claimed, or reserved for others than the
    catalog's owner, or is a local one of another owner's catalog: this server reads local files with its own rights.
    """
    for place in places:
        if not place or provider.is_named(place):
            continue
        try:
            place = locations.canonical(place)
        except Invalid:
            continue  # a malformed place is never opened
        if _is_anothers(place, Catalog.objects.get(pk=provider.catalog_id)):
            raise Invalid(f"Location {place!r:.200} is not usable: this catalog does not allow it.", kind="location")


def _is_anothers(place: str, catalog: Catalog) -> bool:
    if any(overlapping([place], catalog.pk)) or reserved_places.is_anothers(place, catalog):
        return True
    if not locations.is_local(place):
        return False
    return any(
        locations.may_meet(place, theirs)
        for other in Catalog.objects.exclude(pk=catalog.pk)
        if party_of(other) != party_of(catalog)
        for theirs in provider_with_locations(other.pk, other.provider, other.properties).locations()
    )


def overlapping(places: Collection[str], catalog_id: int) -> Iterator[LocationClaim]:
    """The claims that overlap one of these places of a catalog, in its storage."""
    return _in_storage_of(catalog_id, LocationClaim.objects.filter(reserved_places.overlaps(places)))


def _in_storage_of(catalog_id: int, claims: QuerySet[LocationClaim]) -> Iterator[LocationClaim]:
    words_of = cache(storage_identity.of_catalog)
    for claim in claims.select_related("securable").iterator():
        other = claim.securable.lineage_ids[1]
        is_near = other == catalog_id or locations.is_local(claim.location)  # no need to compare storages
        if is_near or storage_identity.may_be_same(claim.location, words_of(catalog_id), words_of(other)):
            yield claim


def claim_around(place: str, catalog_id: int) -> str | None:
    """A claimed place that is this one of a catalog, or contains it."""
    around = _in_storage_of(catalog_id, LocationClaim.objects.filter(location__in=reserved_places.up_to(place)))
    return next((claim.location for claim in around), None)


def of_others(places: Collection[str], reservations: Collection[int], catalog_id: int) -> list[str]:
    """Places of others inside these places of a dropped table: claims, and reservations that lie inside one of them.

    `reservations` are the ids of the dropped table's own, which do not count.
    """
    rows = (row for row in reserved_places.inside(places, catalog_id) if row.pk not in reservations)
    inside = [row.location for row in rows if not _hold(row.location, places)]
    return [*(claim.location for claim in overlapping(places, catalog_id)), *inside]


def _hold(place: str, others: Collection[str]) -> bool:
    return any(locations.is_inside(other, place) for other in others)
