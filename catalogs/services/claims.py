"""Places that tables have: each one table's alone."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from catalogs.iceberg import locations
from catalogs.models import Catalog, LocationClaim
from catalogs.providers.external import ExternalProvider
from catalogs.providers.metadata_files import MetadataFiles
from metalake.errors import Invalid
from metalake.privileges import Kind


def claim(store: MetadataFiles, table_id: int, places: list[str]) -> None:
    """Raise Invalid where another table has one of these places, or a part of it."""
    # One claim at a time in a catalog, whose places no other catalog has: two could each miss the other's.
    list(Catalog.objects.select_for_update(no_key=True).filter(pk=store.catalog_id).values_list("pk"))
    if overlapping(places).exclude(table_id=table_id).exists():
        raise Invalid(f"A location of the table overlaps another table's: {', '.join(places)}.", kind=Kind.TABLE)
    LocationClaim.objects.bulk_create(LocationClaim(table_id=table_id, location=place) for place in places)


def require_unclaimed(provider: ExternalProvider, *places: str | None) -> None:
    """Raise Invalid where a catalog keeps a table here in one of these places, which only an outside system names."""
    for place in places:
        if not place or provider.is_named(place):
            continue
        try:
            place = locations.canonical(place)
        except Invalid:
            continue  # a place that nobody could name opens nothing
        above = overlapping([place]).values_list("table__lineage", flat=True)
        owners = Catalog.objects.filter(
            pk__in={int(level) for lineage in above for level in lineage.split("/") if level}
        )
        if any(_storage(row.properties, place) == _storage(provider.properties, place) for row in owners):
            raise Invalid(f"Location {place!r:.200} is not usable: this catalog does not allow it.", kind="location")


def _storage(properties: dict[str, str], place: str) -> str:
    """Who keeps the bucket: names of buckets are each storage's own."""
    return properties.get("s3.endpoint", "").rstrip("/") if place.startswith("s3") else ""


def overlapping(places: list[str]) -> QuerySet[LocationClaim]:
    """The claims of one of these places, of a part of one, or of what one is a part of."""
    overlaps = Q(pk__in=[])
    for place in places:
        overlaps |= Q(location__in=_up_to(place))
        overlaps |= Q(location__gt=f"{place}/", location__lt=f"{place}0")
    return LocationClaim.objects.filter(overlaps)


def around(place: str) -> str | None:
    """The place of a table that is this one or holds it."""
    held = LocationClaim.objects.filter(location__in=_up_to(place)).values_list("location", flat=True)
    return held.first()


def _up_to(place: str) -> list[str]:
    levels = place.split("/")
    return ["/".join(levels[:depth]) for depth in range(3, len(levels) + 1)]
