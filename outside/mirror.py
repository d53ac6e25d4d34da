"""The rows and mirrors (cached copies) of outside tables and views, which grants refer to: create, update, remove."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import QuerySet
from django.utils import timezone

from authz.actor import SERVER, SYSTEM, Actor, system_actor
from authz.transactions import write
from catalogs.models import LEVELS, Mirror
from catalogs.services.provider_of import provider_at
from catalogs.stores import offers_of
from metalake.errors import Invalid, NotFound
from metalake.events import Event, event_of, record, stands
from metalake.full_names import dotted
from metalake.hierarchy import check_segment
from metalake.kinds import Kind, slot_of
from metalake.lineage import Located
from metalake.models import Securable
from outside.stale_names import moving_leaves, stored_here
from outside.stale_names import wire_name as wire_name
from outside.tombstones import remove_dropped
from outside.view_versions import note_all as note_views
from providers.base import listed_together
from providers.remote_objects import Remote

GRACE = timedelta(seconds=60)  # a listing may lack an object created this recently
NO_NAME, A_WRITE_HAS_IT = "it cannot be a name here", "a write of ours has it, or had it just now"
STORED_HERE = "an object that is stored here has its name"


@dataclass
class Tally:
    """Counts of a comparison with the outside system."""

    seen: int = 0
    created: int = 0
    changed: int = 0
    dropped: int = 0
    passed_over: list[str] = field(default_factory=list)  # skipped names with the reason

    def skip(self, container: Located, name: str, why: str) -> None:
        self.passed_over.append(f"{name} in {dotted(container.full_name)}: {why}")

    def counts(self) -> dict[str, int]:
        counts = {name: value for name, value in vars(self).items() if isinstance(value, int)}
        return counts | {"skipped": len(self.passed_over)}


def levels_at(schema_id: int) -> list[str] | None:
    """A schema's levels in its system; None for one that exists only here, as a parent of others."""
    name = Mirror.objects.filter(pk=schema_id).values_list("wire_name", flat=True).first()
    return None if name is None else name.split(LEVELS)


def of_schemas(catalog_id: int) -> QuerySet[Mirror]:
    """The mirrors of a catalog's schemas, selected through the schemas' rows, which are fewer than its mirrors."""
    return Mirror.objects.filter(securable__schema__in_catalog_id=catalog_id)


def of_leaves(schema_id: int, kind: Kind) -> QuerySet[Mirror]:
    """The mirrors of a schema's objects that share a namespace with this kind."""
    return Mirror.objects.filter(securable__parent_id=schema_id, securable__slot=slot_of(kind))


def wire_name_at(securable_id: int) -> str:
    """An object's name in its system. Raises NotFound if its mirror is gone."""
    name = Mirror.objects.filter(pk=securable_id).values_list("wire_name", flat=True).first()
    if name is None:
        raise NotFound("The object was dropped meanwhile.")
    return name


def store_answer(securable_id: int, catalog_id: int, name: str, remote: Remote, taken_at: datetime) -> Mirror:
    """Upsert an object's mirror with the system's latest answer, in one statement."""
    mirror = _mirror(securable_id, catalog_id, name, remote, taken_at)
    Mirror.objects.bulk_create([mirror], update_conflicts=True, update_fields=_ANSWER, unique_fields=["securable"])
    return mirror


_ANSWER = ["in_catalog", "wire_name", "identity", "version", "formats", "definition", "taken_at"]


def _mirror(securable_id: int, catalog_id: int, name: str, remote: Remote, taken_at: datetime) -> Mirror:
    return Mirror(
        securable_id=securable_id,
        in_catalog_id=catalog_id,
        wire_name=name,
        identity=remote.identity,
        version=remote.version,
        formats=remote.formats,
        definition=remote.definition,
        taken_at=taken_at,
    )


def import_leaves(
    kind: Kind, schema: Located, remotes: Sequence[Remote], asked_at: datetime, *, stamp: bool = False
) -> Tally:
    """Import these objects, of this kind and those listed with it; other kinds get no rows.

    An object whose identity or kind differs is another object, so the old row is removed with its grants. With
    `stamp`, the time of unchanged objects is updated, too. Rows published since `asked_at` are newer and stay. Raises
    NotFound if the schema is gone.
    """

    def act(actor: Actor) -> Tally:
        return _Meeting(schema, listed_kinds(schema, kind), asked_at, stamp).discover(remotes)

    return write(system_actor(), act, holds=None, kind=kind) if remotes else Tally()


def listed_kinds(schema: Located, kind: Kind) -> tuple[Kind, ...]:
    """The kinds that get rows from the same listing as this one; the first one names its verbs."""
    return listed_together(offers_of(schema), kind)


def names_of(kinds: Collection[Kind], remotes: Iterable[Remote]) -> set[str]:
    """The names of the objects of these kinds."""
    return {remote.name for remote in remotes if remote.kind in kinds}


class _Known(NamedTuple):
    """The mirror fields that a comparison needs; a listing reads thousands of them."""

    pk: int
    kind: str
    identity: str
    version: str
    taken_at: datetime


class _Meeting:
    """The import of one listing's objects into a schema's rows, in a transaction."""

    def __init__(self, schema: Located, kinds: Collection[Kind], asked_at: datetime, stamp: bool) -> None:
        self.schema, self.kinds, self.asked_at, self.stamp = schema, kinds, asked_at, stamp
        self.slot, self.provider = slot_of(next(iter(kinds))), provider_at(schema)
        self.tally = Tally()

    def discover(self, remotes: Sequence[Remote]) -> Tally:
        self.tally.seen = sum(remote.kind in self.kinds for remote in remotes)
        known = self._known([remote.name for remote in remotes])
        news = [remote for remote in remotes if self._is_news(remote, known.get(remote.name))]
        reasons = self._reasons_to_skip({remote.name for remote in news}, known)
        fresh, touched = list[Remote](), dict[int, Remote]()
        for remote in news:
            row = known.get(remote.name)
            if reason := reasons.get(remote.name):
                self.tally.skip(self.schema, remote.name, reason)
                continue
            if row is not None and (row.kind != remote.kind or is_another(row.identity, remote)):
                remove_dropped(row.pk)
                row = None
                self.tally.dropped += 1
            if row is None and not self._gets_row(remote):
                continue
            if row is None:
                fresh.append(remote)
            else:
                touched[row.pk] = remote
        events = _update_leaves(self.schema, touched, self.asked_at)
        rows = _insert_leaves(self.schema, fresh, self.asked_at)
        note_views(self.schema, [*touched.items(), *((row.id, one) for row, one in zip(rows, fresh, strict=True))])
        self.tally.changed, self.tally.created = len(events), len(fresh)
        record(*events, *(_discovery(self.schema, row) for row in rows))
        return self.tally

    def _known(self, names: list[str]) -> dict[str, _Known]:
        rows = Mirror.objects.filter(securable__parent_id=self.schema.id, securable__slot=self.slot)
        if len(names) <= 500:
            rows = rows.filter(wire_name__in=names)
        fields = ("pk", "securable__kind", "identity", "version", "taken_at")
        return {name: _Known(*values) for name, *values in rows.values_list("wire_name", *fields)}

    def _gets_row(self, remote: Remote) -> bool:
        """Whether a new object gets a row: it is of these kinds, and no table that the catalog's settings hide."""
        return remote.kind in self.kinds and (remote.kind != Kind.TABLE or self.provider.tables.shows(remote))

    def _is_news(self, remote: Remote, row: _Known | None) -> bool:
        """Whether the system's answer changes the row."""
        if row is None:
            return self._gets_row(remote)
        if row.taken_at > self.asked_at:
            return False  # a newer answer is stored already
        if row.kind != remote.kind or is_another(row.identity, remote):
            return True
        return bool(remote.version and (self.stamp or row.version != remote.version))

    def _reasons_to_skip(self, names: set[str], known: Collection[str]) -> dict[str, str]:
        """The names to skip, with the reasons."""
        new = names.difference(known)
        unnameable = {name for name in new if not _can_be_named(name, self.slot)}
        moving = moving_leaves(self.slot, self.schema, names, self.asked_at) if names else set()
        return {
            **dict.fromkeys(unnameable, NO_NAME),
            **dict.fromkeys(stored_here(self.slot, self.schema, new), STORED_HERE),
            **dict.fromkeys(moving, A_WRITE_HAS_IT),
        }


def _update_leaves(schema: Located, remotes: dict[int, Remote], taken_at: datetime) -> list[Event]:
    """Update the mirrors of existing objects; returns the events of those that changed."""
    if not remotes:
        return []
    mirrors, events = Mirror.objects.filter(pk__in=remotes).select_related("securable").defer("definition"), []
    for mirror in mirrors:
        remote = remotes[mirror.pk]
        if mirror.version and mirror.version != remote.version:  # without a version, only its name was known so far
            events.append(changed(mirror, schema))
        take_over(mirror, remote, taken_at)
    Mirror.objects.bulk_update(mirrors, ["identity", "version", "formats", "definition", "taken_at"])
    return events


def _can_be_named(name: str, kind: str) -> bool:
    try:
        check_segment(name, kind)
    except Invalid:
        return False
    return True


def require_there(container: Located) -> None:
    """Raise NotFound if the container of new rows is gone."""
    if not Securable.objects.filter(pk=container.id).exists():
        raise container.missing()


def is_another(identity: str, remote: Remote) -> bool:
    return bool(identity and remote.identity and identity != remote.identity)


def take_over(mirror: Mirror, remote: Remote, taken_at: datetime) -> None:
    mirror.identity, mirror.version = remote.identity, remote.version
    mirror.formats, mirror.definition, mirror.taken_at = remote.formats, remote.definition, taken_at


def changed(mirror: Mirror, container: Located) -> Event:
    row = mirror.securable
    full_name = [*container.full_name, row.name]
    return event_of(SERVER, f"{row.kind}.changed_outside", row.kind, row.id, full_name, container.metalake.id)


def _insert_leaves(schema: Located, remotes: list[Remote], taken_at: datetime) -> list[Securable]:
    """Insert rows and mirrors of new objects, owned by the catalog's owner, in two statements; returns the rows."""
    if remotes:
        require_there(schema)
    owner = owner_of(schema)
    rows = [Securable.made(Kind(remote.kind), remote.name, schema, creator=SYSTEM, **owner) for remote in remotes]
    Securable.objects.bulk_create(rows)
    Mirror.objects.bulk_create(
        _mirror(row.id, schema.catalog.id, remote.name, remote, taken_at)
        for row, remote in zip(rows, remotes, strict=True)
    )
    return rows


def _discovery(schema: Located, row: Securable) -> Event:
    full_name, facts = [*schema.full_name, row.name], [stands(row)]
    return event_of(SERVER, f"{row.kind}.found_outside", row.kind, row.id, full_name, schema.metalake.id, facts)


def provider_levels(remote: Remote) -> list[str]:
    """A schema's levels in its system, split from its name, which joins them."""
    return remote.name.split(LEVELS)


def owner_of(below: Located) -> dict[str, int | None]:
    """The owner of imported objects: the catalog's owner."""
    return {"owner_user_id": below.catalog.owner_user_id, "owner_group_id": below.catalog.owner_group_id}


def just_made(known: QuerySet[Mirror], asked_at: datetime) -> set[str]:
    """Names that a listing may lack: created here within GRACE, or seen under that name since its request."""
    names = known.values_list("wire_name", flat=True)
    made = names.filter(securable__create_time__gte=timezone.now() - GRACE).exclude(securable__creator=SYSTEM)
    return {*made, *names.filter(taken_at__gt=asked_at)}  # two statements: an OR over two tables uses no index
