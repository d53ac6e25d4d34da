"""The rows and mirrors of outside tables, which grants refer to: make, change and bury them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import QuerySet
from django.utils import timezone

from authz.actor import Actor
from authz.writing import write
from catalogs.models import LEVELS, Mirror
from metalake.errors import Invalid, NotFound
from metalake.events import Event, event_of, record, stands
from metalake.hierarchy import check_segment
from metalake.kinds import Kind, slot_of
from metalake.lineage import Located
from metalake.models import Securable
from metalake.names import dotted
from outside.calls import SYSTEM, system_actor
from outside.moving import moving_leaves
from outside.moving import wire_name as wire_name
from outside.tombstones import bury
from providers.answers import Remote

GRACE = timedelta(seconds=60)  # for so long a listing may lack an object that was just made
NO_NAME, A_WRITE_HAS_IT = "it cannot be a name here", "a write of ours has it, or had it just now"


@dataclass
class Tally:
    """The counts of a comparison with the outside system."""

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
    """The levels of a schema in its system; None for a schema that exists only here, as a step to others."""
    name = Mirror.objects.filter(pk=schema_id).values_list("wire_name", flat=True).first()
    return None if name is None else name.split(LEVELS)


def of_schemas(catalog_id: int) -> QuerySet[Mirror]:
    """The mirrors of a catalog's schemas, selected by the schemas' rows, which are fewer than its mirrors."""
    return Mirror.objects.filter(securable__schema__in_catalog_id=catalog_id)


def of_tables(schema_id: int) -> QuerySet[Mirror]:
    return of_leaves(schema_id, Kind.TABLE)


def of_leaves(schema_id: int, kind: Kind) -> QuerySet[Mirror]:
    """The mirrors of the objects in a schema that share a name space with this kind."""
    return Mirror.objects.filter(securable__parent_id=schema_id, securable__slot=slot_of(kind))


def wire_name_at(securable_id: int) -> str:
    """The name of an object in its system. Raises NotFound if its mirror is gone."""
    name = Mirror.objects.filter(pk=securable_id).values_list("wire_name", flat=True).first()
    if name is None:
        raise NotFound("The object was dropped meanwhile.")
    return name


def store_answer(securable_id: int, catalog_id: int, name: str, remote: Remote, taken_at: datetime) -> Mirror:
    """Store the system's latest answer about an object in its mirror."""
    mirror, _ = Mirror.objects.update_or_create(
        pk=securable_id,
        defaults={
            "in_catalog_id": catalog_id,
            "wire_name": name,
            "identity": remote.identity,
            "version": remote.version,
            "formats": remote.formats,
            "definition": remote.definition,
            "taken_at": taken_at,
        },
    )
    return mirror


def meet_tables(schema: Located, remotes: Sequence[Remote], asked_at: datetime, *, stamp: bool = False) -> Tally:
    return meet_leaves(Kind.TABLE, schema, remotes, asked_at, stamp=stamp)


def meet_leaves(
    kind: Kind, schema: Located, remotes: Sequence[Remote], asked_at: datetime, *, stamp: bool = False
) -> Tally:
    """Bring the rows of these objects of one kind up to date; rows of others stay as they are.

    An object with another identity is another object, so the old row is buried with its grants, as a table's is if a
    view has its name now. With `stamp`, the time of unchanged objects is updated, too. Rows published since `asked_at`
    are newer and stay. Raises NotFound if the schema is gone.
    """

    def act(actor: Actor) -> Tally:
        tally, fresh, touched = Tally(seen=len(names_of(kind, remotes))), list[Remote](), dict[int, Remote]()
        known = _known_below(kind, schema.id, [remote.name for remote in remotes])
        news = [remote for remote in remotes if _is_news(kind, remote, known.get(remote.name), asked_at, stamp)]
        moving = moving_leaves(kind, schema, {remote.name for remote in news}, asked_at) if news else set()
        for remote in news:
            row = known.get(remote.name)
            if remote.name in moving:
                tally.skip(schema, remote.name, A_WRITE_HAS_IT)
                continue
            if row is None and not _can_be_named(kind, remote.name):
                tally.skip(schema, remote.name, NO_NAME)
                continue
            if row is not None and (remote.kind != kind or is_another(row.identity, remote)):
                bury(row.pk)
                row = None
                tally.dropped += 1
            if remote.kind != kind:
                continue
            if row is None:
                fresh.append(remote)
            else:
                touched[row.pk] = remote
        changed = _update_leaves(schema, touched, asked_at)
        tally.changed, tally.created = len(changed), len(fresh)
        record(*changed, *_insert_leaves(kind, schema, fresh, asked_at))
        return tally

    return write(system_actor(), act, holds=None, kind=kind) if remotes else Tally()


def table_names(remotes: Iterable[Remote]) -> set[str]:
    """The names of the tables among these objects; views have no rows here."""
    return names_of(Kind.TABLE, remotes)


def names_of(kind: Kind, remotes: Iterable[Remote]) -> set[str]:
    """The names of those of this kind."""
    return {remote.name for remote in remotes if remote.kind == kind}


class _Known(NamedTuple):
    """The fields of a mirror that a comparison needs; a listing reads thousands of them."""

    pk: int
    identity: str
    version: str
    taken_at: datetime


def _is_news(kind: Kind, remote: Remote, row: _Known | None, asked_at: datetime, stamp: bool) -> bool:
    """Whether the system's answer changes the row."""
    if row is None:
        return remote.kind == kind
    if row.taken_at > asked_at:
        return False  # a later answer is stored already
    if remote.kind != kind:
        return True
    return is_another(row.identity, remote) or bool(remote.version and (stamp or row.version != remote.version))


def _known_below(kind: Kind, schema_id: int, names: list[str]) -> dict[str, _Known]:
    rows = of_leaves(schema_id, kind)
    if len(names) <= 500:
        rows = rows.filter(wire_name__in=names)
    values = rows.values_list("wire_name", "pk", "identity", "version", "taken_at")
    return {name: _Known(pk, identity, version, taken_at) for name, pk, identity, version, taken_at in values}


def _update_leaves(schema: Located, remotes: dict[int, Remote], taken_at: datetime) -> list[Event]:
    """Store the answers about existing objects; the events of those that changed."""
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


def _can_be_named(kind: Kind, name: str) -> bool:
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
    return event_of(system_actor(), f"{row.kind}.changed_outside", row.kind, row.id, full_name, container.metalake.id)


def _insert_leaves(kind: Kind, schema: Located, remotes: list[Remote], taken_at: datetime) -> list[Event]:
    """Insert rows and mirrors of new objects in two statements, owned by the catalog's owner; their events."""
    if remotes:
        require_there(schema)
    owner = owner_of(schema)
    rows = [Securable.made(kind, remote.name, schema, creator=SYSTEM, **owner) for remote in remotes]
    Securable.objects.bulk_create(rows)
    Mirror.objects.bulk_create(
        Mirror(
            securable_id=row.id,
            in_catalog_id=schema.catalog.id,
            wire_name=remote.name,
            identity=remote.identity,
            version=remote.version,
            formats=remote.formats,
            definition=remote.definition,
            taken_at=taken_at,
        )
        for row, remote in zip(rows, remotes, strict=True)
    )
    actor = system_actor()
    return [
        event_of(
            *(actor, f"{kind}.found_outside", kind, row.id, [*schema.full_name, row.name], schema.metalake.id),
            facts=[stands(row)],
        )
        for row in rows
    ]


def provider_levels(remote: Remote) -> list[str]:
    """A schema's levels in its system; a nested one's are joined in its name."""
    return remote.name.split(LEVELS)


def owner_of(below: Located) -> dict[str, int | None]:
    """The owner of objects found outside: the catalog's owner."""
    return {"owner_user_id": below.catalog.owner_user_id, "owner_group_id": below.catalog.owner_group_id}


def just_made(known: QuerySet[Mirror], asked_at: datetime) -> set[str]:
    """Names that a listing may lack: made here within GRACE, or seen under that name since it was asked for."""
    names = known.values_list("wire_name", flat=True)
    made = names.filter(securable__create_time__gte=timezone.now() - GRACE).exclude(securable__creator=SYSTEM)
    return {*made, *names.filter(taken_at__gt=asked_at)}  # two statements: an OR over two tables uses no index
