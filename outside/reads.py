"""Read outside objects, reuse fresh cached copies, and remove objects that are gone."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from django.db import IntegrityError
from django.db.models import Q, QuerySet
from django.utils import timezone

from authz.actor import Actor, system_actor
from authz.transactions import write
from catalogs.models import Catalog, Listing, Mirror, RefreshRun, Reservation
from metalake.errors import NotFound
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.models import Securable
from outside import mirror
from outside.calls import levels_of, load_leaf, load_schema
from outside.mirror_schemas import import_schemas
from outside.tombstones import remove_dropped
from providers.base import Provider
from providers.remote_objects import Remote

SKEW = timedelta(minutes=1)  # between the clocks of two processes, at most
LOOKS = 10  # look-ups per request, at most, of objects missing from a listing
MANY = 1_000  # missing rows, at most, from which those are picked


def catalog_of(located: Located) -> Located:
    while located.kind != Kind.CATALOG:
        located = located.above()
    return located


def listed_since(container_id: int, catalog_id: int, provider: Provider, force: bool) -> datetime | None:
    """When the names below were last listed, if that is fresh enough to answer from the rows; else None."""
    if force or not provider.freshness:
        return None
    oldest = _oldest(catalog_id, provider)
    listings = Listing.objects.filter(pk=container_id, taken_at__gte=oldest)
    moments = [*listings.values_list("taken_at", flat=True), _walked_since(catalog_id, oldest)]
    return max((moment for moment in moments if moment), default=None)


def _oldest(catalog_id: int, provider: Provider) -> datetime:
    """The oldest time of a fresh answer; answers from before the catalog was altered may be from another system."""
    oldest = timezone.now() - timedelta(seconds=provider.freshness)
    altered = Catalog.objects.filter(pk=catalog_id).values_list("last_modified_time", flat=True).first()
    return max(oldest, altered) if altered else oldest


def forget_answers(catalog_id: int, because: str) -> None:
    """Expire all cached answers of a catalog and fail its walks, since it points to another system now.

    Call in the transaction that alters the catalog. The newest timestamps are moved back by SKEW, since they may come
    from processes whose clocks are ahead.
    """
    now = timezone.now()
    Listing.objects.filter(Q(pk=catalog_id) | Q(container__schema__in_catalog_id=catalog_id)).delete()
    Mirror.objects.filter(in_catalog_id=catalog_id, taken_at__gt=now - SKEW).update(taken_at=now - SKEW)
    walks = RefreshRun.objects.filter(in_catalog_id=catalog_id, state=RefreshRun.State.RUNNING)
    walks.update(state=RefreshRun.State.FAILED, error=because, ended_at=now)


def _walked_since(catalog_id: int, oldest: datetime) -> datetime | None:
    """When the last complete walk began, if not before `oldest`: it brought all mirrors up to date."""
    runs = RefreshRun.objects.filter(in_catalog_id=catalog_id, state=RefreshRun.State.DONE, started_at__gte=oldest)
    return runs.order_by("-started_at").values_list("started_at", flat=True).first()


def names_to_show(
    actor: Actor, container: Located, provider: Provider, listed: set[str], kind: Kind, taken_at: datetime
) -> set[str]:
    """The names to show: the listed ones, missing ones that exist after all, and those just created.

    The listing counts as fresh only if there are no other rows, since answers from the rows show all of them.
    """
    is_of_schemas = kind == Kind.SCHEMA
    known = mirror.of_schemas(container.catalog.id) if is_of_schemas else mirror.of_leaves(container.id, kind)
    names = listed | _bury_missing(actor, container, provider, known, listed)
    names |= mirror.just_made(known, taken_at)
    if provider.freshness:
        is_whole = names.issuperset(known.values_list("wire_name", flat=True))
        _note_listing(container.id, taken_at if is_whole else None)
    return names


def _note_listing(container_id: int, taken_at: datetime | None) -> None:
    if taken_at is None:
        Listing.objects.filter(pk=container_id).delete()
        return
    with suppress(IntegrityError):  # the container was dropped meanwhile
        Listing.objects.update_or_create(pk=container_id, defaults={"taken_at": taken_at})


def mirror_of(located: Located) -> Mirror:
    """The mirror of an object. Raises NotFound if it was dropped meanwhile."""
    mirrored = Mirror.objects.select_related("securable").filter(pk=located.id).first()
    if mirrored is None:
        raise located.missing()
    return mirrored


def current(
    actor: Actor, located: Located, provider: Provider, *, force: bool = False, known: Mirror | None = None
) -> Mirror:
    """An object's up-to-date mirror; its system is read unless the cached copy is fresh.

    `known` is its mirror if the caller has read it (`mirror_of`). Raises NotFound if it is gone there, after removing
    it here.
    """
    mirrored = known or mirror_of(located)
    if not force and provider.freshness and mirrored.version:
        oldest = _oldest(located.catalog.id, provider)
        walked = _walked_since(located.catalog.id, oldest)
        is_link = provider.target_of(mirrored.definition) is not None  # a walk sees only its name
        if walked and walked > mirrored.taken_at and not is_link:
            mirrored.taken_at = walked
        if mirrored.taken_at >= oldest:
            return mirrored
    taken_at = timezone.now()
    remote = fetch(actor, located, provider, mirrored)
    if provider.freshness or (remote.identity, remote.version) != (mirrored.identity, mirrored.version):
        if located.kind == Kind.SCHEMA:
            import_schemas(catalog_of(located), provider, [remote], taken_at, stamp=True)
        else:
            mirror.import_leaves(located.kind, located.above(), [remote], taken_at, stamp=True)
        here = Mirror.objects.filter(pk=located.id).values_list("identity", flat=True).first()
        if here is None or mirror.is_another(here, remote):  # another object has its name now, imported or not
            raise located.missing()
    mirrored.identity, mirrored.version, mirrored.definition, mirrored.taken_at = (
        *(remote.identity, remote.version, remote.definition),
        taken_at,
    )
    return mirrored


def fetch(actor: Actor, located: Located, provider: Provider, mirrored: Mirror) -> Remote:
    """The object as its system has it now. Raises NotFound if it is gone, after removing it here."""
    asked_at = timezone.now()
    try:
        if located.kind == Kind.SCHEMA:
            return load_schema(actor, located, provider, mirrored.levels)
        return _load_leaf(actor, located.above(), provider, located.kind, mirrored.wire_name)
    except NotFound:
        _remove_dropped(mirrored.securable, provider, asked_at)
        raise located.missing() from None


def _load_leaf(actor: Actor, schema: Located, provider: Provider, kind: Kind, name: str) -> Remote:
    """A schema's object as its system has it now. Raises NotFound if it is gone, or of another kind by now."""
    listing = mirror.listed_kinds(schema, kind)[0]
    remote = load_leaf(actor, schema, provider, listing, levels_of(schema) or [], name)
    if remote.kind != kind:
        raise NotFound(f"{name} is a {remote.kind} in its own system, not a {kind}.", kind=kind)
    return remote


def _bury_missing(
    actor: Actor, container: Located, provider: Provider, known: QuerySet[Mirror], names: set[str]
) -> set[str]:
    """Look up objects missing from a listing one by one, and remove those that are gone; the names of the others."""
    missing = [pk for pk, name in known.values_list("pk", "wire_name") if name not in names][:MANY]
    rows = Mirror.objects.select_related("securable").defer("definition").filter(pk__in=missing)
    rows = rows.filter(securable__create_time__lt=timezone.now() - mirror.GRACE)[:LOOKS] if missing else rows.none()
    return {row.wire_name for row in rows if not remove_if_dropped(actor, container, provider, row)}


def remove_if_dropped(actor: Actor, container: Located, provider: Provider, row: Mirror) -> bool:
    """Look an object up by name, and remove it if it is gone; whether it was removed."""
    asked_at = timezone.now()
    try:
        if row.securable.kind == Kind.SCHEMA:
            load_schema(actor, container, provider, row.levels)
        else:
            _load_leaf(actor, container, provider, Kind(row.securable.kind), row.wire_name)
    except NotFound:
        return _remove_dropped(row.securable, provider, asked_at)
    return False


def _remove_dropped(row: Securable, provider: Provider, asked_at: datetime) -> bool:
    def act(actor: Actor) -> bool:
        if not Mirror.objects.filter(pk=row.pk, taken_at__lte=asked_at).exists():
            return False  # renamed or seen since the request
        here = Securable.objects.filter(pk=row.pk).first()
        if here is None or here.parent_id is None:
            return False
        if Reservation.objects.filter(scope_id=here.parent_id, slot=here.slot, name=here.name).exists():
            return False  # a write of ours has reserved this name
        return remove_dropped(here.pk, steps_stay=provider.names.nests_here) > 0

    return write(system_actor(), act, holds=None, kind=row.kind)
