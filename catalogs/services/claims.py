"""Claims of places by tables and views: each place belongs to one of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from authz.actor import Actor
from catalogs.models import Catalog, LocationClaim, ReservedPlace
from catalogs.services import reserved
from formats.iceberg import locations
from metalake.errors import Invalid
from metalake.inserting import Into, insert
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.statements import fetch
from providers.base import Provider
from providers.metadata_files import MetadataFiles

MOST_FORMER = 16
_TOO_MANY_FORMER = {
    Kind.TABLE: "release one that holds none of its files any more: DELETE .../tables/{table}/places/{id} on the "
    "native wire"
}


def lock_claims(catalog_id: int) -> None:
    """Lock the catalog for claims, so that two claims cannot miss each other; other catalogs have other places.

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
    *,
    kind: Kind = Kind.TABLE,
    fresh: Collection[str] = (),
) -> Into:
    """The rows that give an object these places.

    Raises Invalid if one overlaps another's, Forbidden for a reserved one.

    The caller has called `lock_claims`. `fresh` are new folders with unique names, which are not compared with
    reservations.
    """
    _require_apart(places, kind, but_of=securable_id)
    # After the claims are compared: a table dropped in between has reserved its places by now.
    if named := [place for place in places if place not in fresh]:
        reserved.take(actor, named, kind)
    return LocationClaim, [LocationClaim(securable_id=securable_id, location=place) for place in places]


def require_claimable(actor: Actor, places: Collection[str], *, fresh: Collection[str] = ()) -> None:
    """Raise what `claim` would raise for a new table; nothing is claimed."""
    _require_apart(places, Kind.TABLE)
    if named := [place for place in places if place not in fresh]:
        reserved.require_open(actor, named)


def _require_apart(places: Collection[str], kind: Kind, *, but_of: int = 0) -> None:
    spans = reserved.spans(places)
    if not spans:
        return
    one_of = [
        f"location IN ({', '.join(['%s'] * len(around))}) OR (location > %s AND location < %s)" for around, _ in spans
    ]
    parameters = [text for around, inside in spans for text in (*around, *inside)]
    statement = f"SELECT 1 FROM catalogs_locationclaim WHERE ({' OR '.join(one_of)}) AND table_id <> %s LIMIT 1"  # noqa: S608
    if fetch(statement, [*parameters, but_of]):
        raise Invalid(f"A location of the {kind} overlaps another table's or view's: {', '.join(places)}.", kind=kind)


def move(actor: Actor, own_files: MetadataFiles, located: Located, places: list[str]) -> None:
    """Change the places that a table or view writes to. Former ones stay claimed, since live files may be in them.

    Raises Invalid for too many former places, and what `to_claim` raises. One statement if nothing changes.
    """
    claimed: dict[str, Any] = dict(fetch(_CLAIMED, [located.id]))
    if sorted(place for place, since in claimed.items() if since is None) == places:
        return
    mine = LocationClaim.objects.filter(securable_id=located.id)
    if new := [place for place in places if place not in claimed]:
        lock_claims(own_files.catalog_id)
        insert(to_claim(actor, own_files, located.id, new, kind=located.kind))
    mine.filter(location__in=places).update(former_since=None)
    left = [place for place, since in claimed.items() if since is None and place not in places]
    covered = [place for place in left if any(locations.is_under(place, other) for other in places)]
    mine.filter(location__in=covered).delete()
    mine.filter(location__in=set(left) - set(covered)).update(former_since=timezone.now())
    if mine.filter(former_since__isnull=False).count() > MOST_FORMER:
        raise Invalid(
            f"{located.kind.capitalize()} {'.'.join(located.full_name)} had {MOST_FORMER} other places before, which "
            f"are kept for it; {_TOO_MANY_FORMER.get(located.kind, 'choose one of those')}.",
            kind=located.kind,
        )


_CLAIMED = "SELECT location, former_since FROM catalogs_locationclaim WHERE table_id = %s"


def require_unclaimed(provider: Provider, *places: str | None) -> None:
    """Raise Invalid if a managed table has claimed one of these places, which only an outside system names."""
    for place in places:
        if not place or provider.is_named(place):
            continue
        try:
            place = locations.canonical(place)
        except Invalid:
            continue  # a malformed place is never opened
        above = overlapping([place]).values_list("securable__lineage", flat=True)
        owners = Catalog.objects.filter(
            pk__in={int(level) for lineage in above for level in lineage.split("/") if level}
        )
        if any(_storage(row.properties, place) == _storage(provider.properties, place) for row in owners):
            raise Invalid(f"Location {place!r:.200} is not usable: this catalog does not allow it.", kind="location")


def _storage(properties: dict[str, str], place: str) -> str:
    """The storage of a bucket: two storages may have buckets of the same name."""
    return properties.get("s3.endpoint", "").rstrip("/") if place.startswith("s3") else ""


def overlapping(places: Collection[str]) -> QuerySet[LocationClaim]:
    """The claims of places that overlap one of these."""
    return LocationClaim.objects.filter(reserved.overlaps(places))


def claim_around(place: str) -> str | None:
    """A claimed place that is this one or contains it."""
    rows = LocationClaim.objects.filter(location__in=reserved.up_to(place))
    return rows.values_list("location", flat=True).first()


def of_others(places: Collection[str], reservations: Collection[int]) -> list[str]:
    """Places of others inside these places of a dropped table: claims, and reservations that lie inside one of them.

    `reservations` are the ids of the dropped table's own, which do not count.
    """
    rows = (
        ReservedPlace.objects.filter(reserved.overlaps(places)).exclude(kind=Kind.CATALOG).exclude(pk__in=reservations)
    )
    inside = (row for row in rows.values_list("location", flat=True) if not _hold(row, places))
    return [*overlapping(places).values_list("location", flat=True), *inside]


def _hold(place: str, others: Collection[str]) -> bool:
    return any(locations.is_inside(other, place) for other in others)
