"""Refresh runs whose listings a job delivers: it crawls the outside system itself and sends the server only the diff.

Parts of a listing may arrive in any order, concurrently and more than once; they are imported like the pages of the
server's own walk. A job that begins while a delivered run is under way resumes it in a new turn (fencing token):
complete listings are skipped, and the previous job is rejected. Only a complete listing may remove objects, and the
server itself first looks up each missing one by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet, Sum
from django.utils import timezone

from authz.actor import Actor, system_actor
from catalogs.models import HarvestedPart, Mirror, RefreshRun
from catalogs.services.provider_of import provider_at
from catalogs.services.writes import Target, Write, write_to
from metalake import leases
from metalake.errors import Conflict, Invalid, NotFound, Unsupported
from metalake.kinds import Kind
from metalake.leases import TakenOver
from metalake.lineage import Located
from metalake.paging import Page
from outside import listing_diff, mirror, refresh
from outside.calls import levels_of
from outside.mirror import Tally
from outside.mirror_schemas import import_schemas
from outside.reads import SKEW
from providers import nul_characters
from providers.base import Provider
from providers.remote_objects import Json, Remote

KNOWN = 5_000  # objects of a page
RESUMED_WITHIN = timedelta(days=1)  # the listings of an older run are stale
WHOLE = ""


@dataclass(frozen=True)
class Delivery:
    """A job's deliveries to a run; `turn` is the run's fencing token since that job began."""

    actor: Actor
    metalake: str
    catalog: str
    run_id: str
    turn: int

    @contextmanager
    def in_its_turn(self) -> Iterator[None]:
        try:
            yield
        except TakenOver:
            raise Conflict(
                f"Refresh {self.run_id} has ended, or another harvest goes on with it.", kind=Kind.CATALOG
            ) from None

    def write(self, act: Callable[[RefreshRun, Located, Provider], None]) -> RefreshRun:
        """Run `act` in a transaction that checks rights and turn; returns the updated run. Raises Conflict."""
        with self.in_its_turn():
            return write_to(self.actor, self._target, self._write, act)

    def _write(self, write: Write, act: Callable[[RefreshRun, Located, Provider], None]) -> RefreshRun:
        run = self.run_in(write.located)
        act(run, write.located, write.provider)
        return run

    def check(self) -> tuple[RefreshRun, Located, Provider]:
        """The same checks outside a transaction, for work that waits for the outside system."""
        located = self._target.permitted(self.actor)
        with self.in_its_turn():
            return self.run_in(located), located, provider_at(located)

    def done(self) -> RefreshRun | None:
        """The run if this turn completed it."""
        run = _run(self._target.permitted(self.actor), self.run_id)
        return run if run.state == RefreshRun.State.DONE and run.fence == self.turn else None

    @property
    def _target(self) -> Target:
        return refresh.to_refresh(self.metalake, self.catalog)

    def run_in(self, catalog: Located) -> RefreshRun:
        run = _run(catalog, self.run_id)
        if run.fence != self.turn or run.state != RefreshRun.State.RUNNING:
            raise TakenOver
        return run


@dataclass(frozen=True)
class Part:
    """A chunk of the listing of a schema or, with `schema` empty, of a catalog's schemas.

    `name` is unique within the listing; `seen` is the number of objects, and `entries` are those that differ from the
    known ones. The listing was requested at `asked_at` or later.
    """

    schema: str
    name: str
    seen: int
    entries: Sequence[Json]
    asked_at: datetime


@dataclass(frozen=True)
class Missing:
    """Known names missing from a complete listing of `listed` objects; `in_all` is the total number missing.

    With `is_last`, no more names follow.
    """

    schema: str
    names: Sequence[str]
    in_all: int
    listed: int
    is_last: bool
    asked_at: datetime


def begin(actor: Actor, metalake: str, catalog: str, *, accept_drops: bool = False) -> RefreshRun:
    """Begin a delivered run, or resume the one under way; its fence is the caller's turn.

    Raises Conflict while the server itself walks the catalog, Unsupported for a catalog that jobs cannot list
    completely, and ProviderUnavailable for one without credentials where the server's own identity may not be used.
    """
    return write_to(actor, refresh.to_refresh(metalake, catalog), _begin, accept_drops)


def _begin(write: Write, accept_drops: bool) -> RefreshRun:
    located, provider = write.located, write.provider
    if not (provider.keeps_outside(Kind.SCHEMA) and provider.keeps_outside(Kind.TABLE)):
        raise Unsupported(f"{provider.label} catalogs are not harvested: refresh this one.", kind=Kind.CATALOG)
    provider.require_identity()  # the job's machine may have ambient credentials, too
    _end_old(located.id)
    run = refresh.begin(located.id, write.actor.name, accept_drops=accept_drops, is_delivered=True)
    if not run.is_delivered:
        message = f"The server itself walks over the catalog (refresh {run.pk}): wait until it has, or stop it."
        raise Conflict(message, kind=Kind.CATALOG)
    return _take(run)


def _end_old(catalog_id: int) -> None:
    """Fail a run that is too old to resume, and delete the parts of all ended runs."""
    runs = RefreshRun.objects.filter(in_catalog_id=catalog_id, is_delivered=True)
    for old in runs.filter(state=RefreshRun.State.RUNNING, started_at__lt=timezone.now() - RESUMED_WITHIN):
        listing_diff.finish(old, RefreshRun.State.FAILED, "Nothing was delivered any more.")
    HarvestedPart.objects.filter(run__in=runs.exclude(state=RefreshRun.State.RUNNING)).delete()


def _take(run: RefreshRun) -> RefreshRun:
    """Begin a new turn, in which only complete listings still count as seen."""
    running = RefreshRun.objects.filter(state=RefreshRun.State.RUNNING)
    if not leases.take(running, run.pk, run.fence, listing_diff.LEASE):
        raise Conflict("Another harvest of this catalog begins; try again.", kind=Kind.CATALOG)
    parts = HarvestedPart.objects.filter(run=run)
    parts.exclude(schema__in=parts.filter(name=WHOLE).values("schema")).delete()
    seen = parts.aggregate(seen=Sum("seen"))["seen"] or 0
    running.filter(pk=run.pk).update(seen=seen)
    run.refresh_from_db()
    return run


@dataclass(frozen=True)
class Known:
    """A page of the known objects of a schema, or of a catalog's schemas, with the token of the next page.

    A listing requested after `asked_at` is newer. `is_there` is false for a schema without a row here; `is_whole` says
    that the run has the complete listing already.
    """

    asked_at: datetime
    is_there: bool
    is_whole: bool
    objects: list[tuple[str, str, str]]  # name, identity, version
    next_page: str | None


def known(delivery: Delivery, schema: str, page_token: str | None) -> Known:
    """A page of at most KNOWN objects. Raises Invalid for a page token of another query, Conflict."""
    asked_at = timezone.now()
    run, located, provider = delivery.check()
    page = Page(KNOWN, page_token, "harvest", delivery.actor.id, run.pk, schema)
    rows = _known(located, provider, schema)
    is_whole = HarvestedPart.objects.filter(run=run, schema=schema, name=WHOLE).exists()
    if rows is None or is_whole:
        return Known(asked_at, rows is not None, is_whole, [], None)
    rows = rows.filter(pk__gt=int(page.after or 0)).order_by("pk")
    some, following = page.cut(
        rows.values_list("pk", "wire_name", "identity", "version")[: KNOWN + 1], lambda row: str(row[0])
    )
    return Known(asked_at, True, False, [(name, identity, version) for _, name, identity, version in some], following)


def deliver(delivery: Delivery, part: Part) -> RefreshRun:
    """Import a part's entries; idempotent. Raises Invalid for a malformed entry, Conflict."""

    def act(run: RefreshRun, located: Located, provider: Provider) -> None:
        asked_at = _moment(run, part.asked_at)
        _, is_new = HarvestedPart.objects.get_or_create(
            run=run, schema=part.schema, name=part.name, defaults={"seen": part.seen}
        )
        tally = _meet(located, provider, part, asked_at)
        tally.seen = part.seen
        listing_diff.count(run, tally, without=frozenset() if is_new else frozenset({"seen", "skipped"}))

    if part.name == WHOLE:
        raise Invalid("part: a part of a listing has a name.", kind=Kind.CATALOG)
    return delivery.write(act)


def _meet(catalog: Located, provider: Provider, part: Part, asked_at: datetime) -> Tally:
    if not part.schema:
        return import_schemas(catalog, provider, _remotes(provider, Kind.SCHEMA, part.entries), asked_at)
    schema = refresh.schema_named(catalog, provider, part.schema)
    if schema is None or levels_of(schema) is None:
        return Tally()  # gone since it was listed
    return mirror.import_leaves(Kind.TABLE, schema, _remotes(provider, Kind.TABLE, part.entries), asked_at)


def _remotes(provider: Provider, kind: Kind, entries: Sequence[Json]) -> list[Remote]:
    """The entries as remote objects, in the form in which the system's answers are stored."""
    store = provider.schemas if kind == Kind.SCHEMA else provider.tables
    return [
        Remote(**nul_characters.as_stored(store.delivered(nul_characters.as_sent(entry)).as_json()))
        for entry in entries
    ]


def lack(delivery: Delivery, missing: Missing) -> RefreshRun:
    """Remove missing objects that are really gone; the last batch of names completes the listing.

    As in the server's own walk, nothing is removed if too much is missing; the run's `held_back` counts it. Raises
    Conflict, and what the outside system raises when objects are looked up.
    """
    if not missing.schema and (done := delivery.done()):
        return done  # a repeat of the request that ended the run
    run, located, provider = delivery.check()
    asked_at = _moment(run, missing.asked_at)
    rows, container = _known(located, provider, missing.schema), _container(located, provider, missing.schema)
    if rows is None or container is None or _is_delivered(run, missing.schema):
        return _delivered(delivery, missing, held_back=0)
    there = listing_diff.long_known(rows)
    in_all = max(missing.in_all, len(missing.names))
    if listing_diff.is_in_doubt(run, container, missing=in_all, known=there.count(), listed=missing.listed):
        return _delivered(delivery, missing, held_back=in_all)
    gone = there.filter(wire_name__in=missing.names, taken_at__lte=asked_at).values_list("pk", flat=True)
    with delivery.in_its_turn():
        listing_diff.remove_missing(run, system_actor(), container, provider, list(gone))
    return _delivered(delivery, missing, held_back=0) if missing.is_last else delivery.check()[0]


def _delivered(delivery: Delivery, missing: Missing, *, held_back: int) -> RefreshRun:
    """Mark a listing as complete; the listing of the schemas ends the run."""

    def act(run: RefreshRun, located: Located, provider: Provider) -> None:
        _, is_new = HarvestedPart.objects.get_or_create(run=run, schema=missing.schema, name=WHOLE)
        listing_diff.add(run, {"held_back": held_back} if is_new else {})
        if not missing.schema:
            listing_diff.finish(run, RefreshRun.State.DONE, "")
            HarvestedPart.objects.filter(run=run).delete()
            run.refresh_from_db()

    return delivery.write(act)


def _is_delivered(run: RefreshRun, schema: str) -> bool:
    return HarvestedPart.objects.filter(run=run, schema=schema, name=WHOLE).exists()


def _known(catalog: Located, provider: Provider, schema: str) -> QuerySet[Mirror] | None:
    """The mirrors of a schema's objects or, without a name, of the schemas; None if the schema has no row."""
    container = _container(catalog, provider, schema)
    if container is None:
        return None
    return mirror.of_leaves(container.id, Kind.TABLE) if schema else mirror.of_schemas(catalog.id)


def _container(catalog: Located, provider: Provider, schema: str) -> Located | None:
    return refresh.schema_named(catalog, provider, schema) if schema else catalog


def _run(catalog: Located, run_id: str) -> RefreshRun:
    runs = RefreshRun.objects.filter(in_catalog_id=catalog.id, is_delivered=True)
    run = runs.filter(pk=run_id).first() if run_id.isdecimal() else None
    if run is None:
        raise NotFound(f"Catalog {catalog.name} has no harvest {run_id}.")
    return run


def _moment(run: RefreshRun, asked_at: datetime) -> datetime:
    """When a listing was requested, capped at this server's now. Raises Invalid for a time before the run."""
    if asked_at < run.started_at - SKEW:
        raise Invalid("askedAt: this was listed before the run began; ask what is known, and list anew.")
    return min(asked_at, timezone.now())
