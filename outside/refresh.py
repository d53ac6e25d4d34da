"""Walk a whole outside catalog and bring its rows up to date.

A run compares schema by schema and page by page, one transaction per page, and stores the last finished schema as a
checkpoint for another process to resume from. How pages are counted and missing objects removed: listing_diff.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.db import IntegrityError, connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from authz import operations, policy
from authz.actor import SYSTEM, Actor, system_actor
from authz.locks import Lock
from catalogs.lookup import by_id, find
from catalogs.models import Catalog, Mirror, RefreshRun, Schema
from catalogs.services.alterations import require_enabled
from catalogs.services.provider_of import provider_at
from catalogs.services.writes import Target, Write, write_to
from catalogs.stores import catalog_store_by, store_for
from metalake import leases
from metalake.errors import Conflict, MetalakeError, NotFound, Unsupported
from metalake.events import follow_up
from metalake.kinds import Kind
from metalake.leases import TakenOver
from metalake.lineage import Address, Located
from outside import listing_diff, mirror
from outside.calls import levels_of, pages
from outside.mirror import Tally
from outside.mirror_schemas import import_schemas
from providers.base import Provider
from providers.registry import provider_for

log = logging.getLogger(__name__)

TOPIC = "catalog.refresh"


def start(actor: Actor, metalake: str, catalog: str, *, accept_drops: bool = False) -> RefreshRun:
    """Start a run, which a worker or a server thread picks up at once; returns the one under way if there is one."""
    return write_to(actor, to_refresh(metalake, catalog), _start, accept_drops)


def _start(write: Write, accept_drops: bool) -> RefreshRun:
    return begin(write.located.id, write.actor.name, accept_drops=accept_drops)


def to_refresh(metalake: str, catalog: str) -> Target:
    """The catalog to refresh, as a write target whose check raises Unsupported for a managed one."""
    address = Address(metalake=metalake, catalog=catalog)
    return Target(address, operations.REFRESH_CATALOG, Lock.HANGS, check=_require_mirrored)


def _require_mirrored(actor: Actor, catalog: Located) -> None:
    if not store_for(catalog, Kind.CATALOG).is_mirrored:
        raise Unsupported("This catalog is kept here; there is nothing to refresh.", kind=Kind.CATALOG)


def begin(
    catalog_id: int,
    requested_by: str = SYSTEM,
    *,
    accept_drops: bool = False,
    here: bool = False,
    is_delivered: bool = False,
) -> RefreshRun:
    """Insert a run; the outbox starts it, unless the caller carries it on `here` or delivers its listings.

    Returns the run under way if there is one. Raises NotFound if the catalog is gone, Conflict if runs end too fast.
    """
    known = Mirror.objects.filter(in_catalog_id=catalog_id).count()
    for _ in range(2):  # the run under way may end before it is read
        try:
            with transaction.atomic():
                run = RefreshRun.objects.create(
                    in_catalog_id=catalog_id,
                    requested_by=requested_by,
                    accept_drops=accept_drops,
                    is_delivered=is_delivered,
                    expected=known,
                    lease_until=timezone.now(),
                )
                if not (here or is_delivered):
                    follow_up(TOPIC, [{"run": run.pk}])
            return run
        except IntegrityError:
            if there := _running(catalog_id, accept_drops, is_delivered):
                return there
            if not Catalog.objects.filter(pk=catalog_id).exists():
                raise NotFound("The catalog was dropped.", kind=Kind.CATALOG) from None
    raise Conflict("Refreshes of this catalog end as fast as they begin; try again.", kind=Kind.CATALOG)


def _running(catalog_id: int, accept_drops: bool, is_delivered: bool) -> RefreshRun | None:
    """The run under way; a delivered one whose job fell silent fails, to make room for the server's own walk."""
    running = RefreshRun.objects.filter(in_catalog_id=catalog_id, state=RefreshRun.State.RUNNING)
    run = running.first()
    if run is not None and run.is_delivered and run.is_left_alone and not is_delivered:
        listing_diff.finish(run, RefreshRun.State.FAILED, "Nothing was delivered any more, and another refresh began.")
        return None
    if accept_drops:
        running.update(accept_drops=True)
    return run


def can_refresh(row: Catalog) -> bool:
    """Whether a catalog has an outside system to walk. Raises Unsupported if its provider is not installed."""
    return catalog_store_by(provider_for(row.provider, row.pk, row.properties)).is_mirrored


def speed(run: RefreshRun) -> tuple[float, int | None]:
    """Objects per second so far, and the estimated seconds left, None if unknown."""
    seconds = ((run.ended_at or timezone.now()) - run.started_at).total_seconds()
    rate = run.seen / seconds if seconds > 0 else 0.0
    left = run.expected - run.seen
    if run.state != RefreshRun.State.RUNNING or run.is_left_alone or left <= 0 or rate <= 0:
        return rate, None
    return rate, round(left / rate)


def runs_of(actor: Actor, metalake: str, catalog: str, limit: int = 20) -> list[RefreshRun]:
    """A catalog's runs, newest first. Raises NotFound, Forbidden."""
    located = find(actor, Address(metalake=metalake, catalog=catalog))
    policy.require(actor, operations.REFRESH_CATALOG, located)
    return list(RefreshRun.objects.filter(in_catalog_id=located.id).order_by("-started_at")[:limit])


def run_of(actor: Actor, metalake: str, catalog: str, run_id: str) -> RefreshRun:
    """A run of a catalog. Raises NotFound, Forbidden."""
    located = find(actor, Address(metalake=metalake, catalog=catalog))
    policy.require(actor, operations.REFRESH_CATALOG, located)
    run = RefreshRun.objects.filter(in_catalog_id=located.id, pk=run_id).first() if run_id.isdecimal() else None
    if run is None:
        raise NotFound(f"Catalog {catalog} has no refresh {run_id}.")
    return run


def cancel(actor: Actor, metalake: str, catalog: str, run_id: str) -> RefreshRun:
    """Stop a run; what it has updated so far stays. Raises NotFound, Forbidden."""
    run = run_of(actor, metalake, catalog, run_id)
    listing_diff.finish(run, RefreshRun.State.FAILED, f"Stopped by {actor.name}.", any_fence=True)
    run.refresh_from_db()
    return run


def carry_on(run_id: int, report: Callable[[RefreshRun], None] | None = None) -> RefreshRun | None:
    """Lease a run and finish it; None if another process has it, or if it has ended.

    `report` is called after each page. Errors of the outside system are stored in the run, not raised.
    """
    run = _take(run_id)
    if run is None:
        return None
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA mmap_size=0")  # a walk reads every page of the file, which would all stay mapped
    try:
        _walk(run, report or (lambda run: None))
        listing_diff.finish(run, RefreshRun.State.DONE, "")
    except TakenOver:
        log.info("refresh %s was stopped, or another process goes on with it", run_id)
    except KeyboardInterrupt:
        leases.give_back(run)
        raise
    except MetalakeError as failure:
        listing_diff.finish(run, RefreshRun.State.FAILED, failure.message)
    except Exception as failure:
        reason = f"The server failed ({type(failure).__name__}); its log says more."
        listing_diff.finish(run, RefreshRun.State.FAILED, reason)
        raise
    return RefreshRun.objects.filter(pk=run_id).first() or run  # the row is gone if its catalog was dropped


def abandoned() -> list[int]:
    """The ids of runs whose process died or that none began, at most 10."""
    now = timezone.now()
    begun, never_begun = Q(fence__gt=0, lease_until__lt=now), Q(lease_until__lt=now - listing_diff.LEASE)
    dead = RefreshRun.objects.filter(begun | never_begun, state=RefreshRun.State.RUNNING, is_delivered=False)
    return list(dead.values_list("pk", flat=True)[:10])


def _take(run_id: int) -> RefreshRun | None:
    walks = RefreshRun.objects.filter(state=RefreshRun.State.RUNNING, is_delivered=False)
    free = walks.filter(lease_until__lte=timezone.now())
    run = free.filter(pk=run_id).first()
    if run is None or not leases.take(free, run.pk, run.fence, listing_diff.LEASE):
        return None
    run.fence += 1
    return run


def _walk(run: RefreshRun, report: Callable[[RefreshRun], None]) -> None:
    catalog = by_id(run.in_catalog_id)
    if catalog is None:
        raise NotFound("The catalog was dropped.", kind=Kind.CATALOG)
    require_enabled(catalog)
    actor, provider = system_actor(), provider_at(catalog)
    run.seen = run.counted
    listing_diff.save(run, seen=run.seen)
    listed: set[str] = set()
    if provider.keeps_outside(Kind.SCHEMA):
        listed = _schemas(run, actor, catalog, provider, report)
    for name in _names_to_compare(catalog, provider, listed):
        if name > run.after:
            _leaves(run, actor, schema_named(catalog, provider, name), provider, report)
            run.after, run.counted = name, run.seen
            listing_diff.save(run, after=run.after, counted=run.counted)
    if provider.keeps_outside(Kind.SCHEMA):
        _drop_missing(run, actor, catalog, provider, mirror.of_schemas(catalog.id), listed)


def _schemas(
    run: RefreshRun, actor: Actor, catalog: Located, provider: Provider, report: Callable[[RefreshRun], None]
) -> set[str]:
    """Import the schemas; returns their names in the system."""
    listed: set[str] = set()
    asked_at = timezone.now()
    for page in pages(actor, catalog, provider, "list_schemas"):
        tally = import_schemas(catalog, provider, page, asked_at)
        listed |= {schema.name for schema in page}
        _count(run, tally, report, again=bool(run.after))
    return listed


def _names_to_compare(catalog: Located, provider: Provider, listed: set[str]) -> list[str]:
    """The sorted names of the schemas whose tables are compared, as `schema_named` takes them."""
    if not provider.keeps_outside(Kind.TABLE):
        return []
    if not provider.keeps_outside(Kind.SCHEMA):
        listed = set(Schema.objects.filter(in_catalog_id=catalog.id).values_list("physical_name", flat=True))
    return sorted(listed)


def schema_named(catalog: Located, provider: Provider, name: str) -> Located | None:
    """The schema with this name in the system or, where schemas are managed, this physical name; or None."""
    schemas = Schema.objects.filter(in_catalog_id=catalog.id)
    its_name = "mirror__wire_name" if provider.keeps_outside(Kind.SCHEMA) else "physical_name"
    schema_id = schemas.filter(**{its_name: name}).values_list("pk", flat=True).first()
    return None if schema_id is None else by_id(schema_id)


def _leaves(
    run: RefreshRun,
    actor: Actor,
    schema: Located | None,
    provider: Provider,
    report: Callable[[RefreshRun], None],
) -> None:
    """Compare a schema's tables, and the kinds listed with them.

    Skips a schema that has no row here or is gone since it was listed.
    """
    levels = levels_of(schema) if schema is not None else None
    if schema is None or levels is None:
        return
    names, kinds = set[str](), mirror.listed_kinds(schema, Kind.TABLE)
    asked_at = timezone.now()
    try:
        for page in pages(actor, schema, provider, "list_tables", schema=levels, whole=True):
            names |= mirror.names_of(kinds, page)
            _count(run, mirror.import_leaves(Kind.TABLE, schema, page, asked_at), report)
    except NotFound:
        return
    known = mirror.of_leaves(schema.id, Kind.TABLE)
    _drop_missing(run, actor, schema, provider, known, names)


def _drop_missing(
    run: RefreshRun,
    actor: Actor,
    container: Located,
    provider: Provider,
    known: QuerySet[Mirror],
    names: set[str],
) -> None:
    there = list(listing_diff.long_known(known).values_list("pk", "wire_name"))
    missing = [pk for pk, name in there if name not in names]
    if listing_diff.is_in_doubt(run, container, missing=len(missing), known=len(there), listed=len(names)):
        listing_diff.add(run, {"held_back": len(missing)})
    else:
        listing_diff.remove_missing(run, actor, container, provider, missing)


def _count(run: RefreshRun, tally: Tally, report: Callable[[RefreshRun], None], *, again: bool = False) -> None:
    """Add a page's counts to the run; a page read `again` after a resume adds only its changes."""
    listing_diff.count(run, tally, without=frozenset({"seen", "skipped"}) if again else frozenset())
    report(run)
