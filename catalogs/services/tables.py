"""Tables whose truth is a metadata file: the row's pointer is compared and swapped, never locked across storage."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from uuid import UUID, uuid4

from django.db.models import Q, QuerySet
from django.utils import timezone

from authz import operations, policy
from authz.policy import Actor
from authz.writing import Stale, write
from catalogs.hierarchy import check_segment
from catalogs.iceberg import builder, files, locations
from catalogs.iceberg.requirements import check_requirements
from catalogs.lookup import Found, Ident, by_id, does_not_exist, find, nearest
from catalogs.models import Catalog, LocationClaim, Table
from catalogs.providers.iceberg import METADATA, IcebergProvider
from catalogs.services.catalogs import provider_at, provider_of
from catalogs.services.changes import event, event_of, remove, require_enabled
from metalake.errors import AlreadyExists, Conflict, Invalid, NotFound, OutcomeUnknown, Unsupported
from metalake.events import follow_up, record
from metalake.models import AuditInfo, Securable, Slot, new_id
from metalake.names import dotted
from metalake.privileges import Kind, Privilege

PURGE = "table.purge"
COMMIT_ATTEMPTS = 5
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


@dataclass(frozen=True)
class TableRecord:
    """A table as of one metadata file; `location` is None for one that is only staged."""

    found: Found | None
    metadata_location: str | None
    content: bytes

    @cached_property
    def metadata(self) -> dict[str, Any]:
        return files.parse_metadata(self.content)

    @property
    def published(self) -> Found:
        """The table of a record that is not only staged."""
        assert self.found is not None
        return self.found


@dataclass(frozen=True)
class TableDraft:
    """What a creation asks for, in Iceberg's terms."""

    schema: dict[str, Any]
    partition_spec: dict[str, Any] | None
    sort_order: dict[str, Any] | None
    properties: dict[str, str]
    location: str | None = None


def list_tables(actor: Actor, ident: Ident, after: str | None = None, limit: int | None = None) -> list[str]:
    """The names that the actor may load, in order; from behind `after`, at most `limit`."""
    found = find(actor, ident)
    if not policy.sees(actor, found):
        raise policy.unseen(actor, found)
    require_enabled(found)
    rows = Securable.objects.filter(parent_id=found.id, slot=Slot.TABULAR, kind=Kind.TABLE)
    if after is not None:
        rows = rows.filter(name__gt=after)
    return list(policy.visible_tables(actor, found, rows).order_by("name").values_list("name", flat=True)[:limit])


def load_table(actor: Actor, ident: Ident, holding: Iterable[Privilege] = ()) -> TableRecord:
    """One statement beside the caller's identity; the metadata comes from memory where it was read before.

    Raises Forbidden unless each privilege in `holding` is effective on the table, as all are for its owners.
    """
    found = _find_table(actor, ident)
    policy.require(actor, operations.LOAD_TABLE, found)
    for privilege in holding:
        policy.require(actor, _exercise(privilege), found)
    require_enabled(found)
    return _current(found)


def _exercise(privilege: Privilege) -> operations.Operation:
    return replace(operations.LOAD_TABLE, name=f"exercise {privilege}", sufficient=operations.any_of(privilege))


def load_audit(record: TableRecord) -> AuditInfo:
    """Who made a table and changed it last, in one statement."""
    row = Securable.objects.filter(pk=record.published.id).first()
    if row is None:
        raise NotFound(policy.missing(record.published), kind=Kind.TABLE)
    return row


def table_exists(actor: Actor, ident: Ident) -> None:
    """Raise NotFound unless the actor may load the table."""
    found = _find_table(actor, ident)
    if not policy.sees(actor, found):
        raise policy.unseen(actor, found)
    require_enabled(found)


def _find_table(actor: Actor, ident: Ident) -> Found:
    found = find(actor, ident)
    if found.kind != Kind.TABLE:
        if not policy.sees(actor, found.above()):
            raise policy.unseen(actor, found.above())
        raise NotFound(does_not_exist(Kind.TABLE, found.full_name), kind=Kind.TABLE)
    return found


def _current(found: Found) -> TableRecord:
    location = found.metadata_location or ""
    content = METADATA.get(location)
    if content is None:
        content = _store(found).read(location)
    return TableRecord(found, location, content)


def _store(found: Found) -> IcebergProvider:
    provider = provider_at(found)
    if not isinstance(provider, IcebergProvider):
        raise Unsupported(f"{provider.label} catalogs keep no tables here.", kind=Kind.TABLE)
    return provider


def _require_home(actor: Actor, ident: Ident) -> Found:
    """The schema where something may be created. A hidden or missing one is a miss both ways (detail a)."""
    home = find(actor, Ident(ident.metalake, ident.catalog, ident.schema))
    policy.require(actor, operations.CREATE_TABLE, home)
    require_enabled(home)
    return home


def _require_free(home: Found, name: str) -> None:
    taken = Securable.objects.filter(parent_id=home.id, slot=Slot.TABULAR, name=name).values_list("kind", flat=True)
    for kind in taken:
        label = "Table" if kind == Kind.TABLE else "View with same name"
        raise AlreadyExists(f"{label} already exists: {'.'.join((*home.path.segments, name))}", kind=Kind.TABLE)


def create_table(actor: Actor, ident: Ident, draft: TableDraft, *, stage: bool = False) -> TableRecord:
    """The row's unique name decides between racers; a loser's metadata file is removed. Staging keeps nothing."""
    name = ident.leaf or ""
    check_segment(name, Kind.TABLE)
    home = _require_home(actor, ident)
    _require_free(home, name)
    store = _store(home)
    uuid = uuid4()
    metadata = builder.new_table_metadata(
        table_uuid=str(uuid),
        location=store.place(home.path, name, uuid, draft.location),
        schema=draft.schema,
        partition_spec=draft.partition_spec,
        sort_order=draft.sort_order,
        properties=draft.properties,
        now_ms=now_ms(),
    )
    store.check_metadata(metadata)
    if stage:
        return TableRecord(None, None, files.dump(metadata))
    return _insert(actor, ident, store, metadata, "table.created")


def _insert(actor: Actor, ident: Ident, store: IcebergProvider, metadata: dict[str, Any], fact: str) -> TableRecord:
    """Write the first metadata file, then the row that points to it."""
    written, content = store.write(metadata, None)
    found = _or_discard(store, written, lambda: _publish(actor, ident, store, metadata, written, fact))
    return TableRecord(found, written, content)


def _publish(
    actor: Actor, ident: Ident, store: IcebergProvider, metadata: dict[str, Any], metadata_location: str, fact: str
) -> Found:
    """The row with its owner, audit and event."""
    name = ident.leaf or ""

    def act(actor: Actor) -> Found:
        home = _require_home(actor, ident)
        _require_free(home, name)
        row = Table(
            id=new_id(),
            kind=Kind.TABLE,
            slot=Slot.TABULAR,
            name=name,
            parent_id=home.id,
            owner_user_id=actor.id,
            creator=actor.name,
            metadata_location=metadata_location,
            table_uuid=_uuid_of(metadata),
        )
        row.lineage = f"{home.lineage}/{row.id}"
        if Table.objects.filter(table_uuid=row.table_uuid).exists():
            raise Invalid("A table with this uuid is registered already.", kind=Kind.TABLE)
        row.save(force_insert=True)
        _claim(store, row.id, store.claims(metadata))
        full_name = [home.catalog.name, home.path.logical(), name]
        record(event_of(actor, fact, Kind.TABLE, row.id, full_name, home.metalake.id, uuid=metadata["table-uuid"]))
        return find(actor, ident)

    return write(actor, act, kind=Kind.TABLE)


def _uuid_of(metadata: dict[str, Any]) -> UUID:
    """What tells the table from all others, though format 1 may leave it out. Raises Invalid where there is none."""
    uuid = metadata.get("table-uuid")
    if not isinstance(uuid, str) or not _UUID.fullmatch(uuid):
        raise Invalid("The metadata must have a table-uuid that is a UUID.", kind="metadata-file")
    return UUID(uuid)


def _or_discard(store: IcebergProvider, written: str, publish: Callable[[], Any]) -> Any:
    """What `publish` returns; where it certainly failed, the file that nothing points to is removed."""
    try:
        return publish()
    except OutcomeUnknown:
        raise
    except Exception:
        store.discard(written)
        raise


def _claim(store: IcebergProvider, table_id: int, places: list[str]) -> None:
    """Raise Invalid where another table has one of these places, or a part of it."""
    # One claim at a time in a catalog, whose places no other catalog has: two could each miss the other's.
    list(Catalog.objects.select_for_update(no_key=True).filter(pk=store.catalog_id).values_list("pk"))
    if _overlapping(places).exclude(table_id=table_id).exists():
        raise Invalid(f"A location of the table overlaps another table's: {', '.join(places)}.", kind=Kind.TABLE)
    LocationClaim.objects.bulk_create(LocationClaim(table_id=table_id, location=place) for place in places)


def _overlapping(places: list[str]) -> QuerySet[LocationClaim]:
    """The claims of one of these places, of a part of one, or of what one is a part of."""
    overlaps = Q(pk__in=[])
    for place in places:
        levels = place.split("/")
        overlaps |= Q(location__in=["/".join(levels[:depth]) for depth in range(3, len(levels) + 1)])
        overlaps |= Q(location__gt=f"{place}/", location__lt=f"{place}0")
    return LocationClaim.objects.filter(overlaps)


def commit_table(
    actor: Actor, ident: Ident, requirements: Sequence[dict[str, Any]], updates: Sequence[dict[str, Any]]
) -> TableRecord:
    """Apply a client's updates; a lost race starts over on the new metadata, at most five times (section 3).

    Raises Conflict where a requirement fails or others keep winning, OutcomeUnknown where the commit's answer is lost.
    """
    if any(isinstance(item, dict) and item.get("type") == "assert-create" for item in requirements):
        return _create_by_commit(actor, ident, list(requirements), list(updates))
    return commit_with(actor, ident, lambda metadata: (list(requirements), list(updates)))


def commit_with(
    actor: Actor, ident: Ident, plan: Callable[[dict[str, Any]], tuple[list[dict[str, Any]], list[dict[str, Any]]]]
) -> TableRecord:
    """Commit what `plan` makes of the current metadata; it is asked again after a lost race."""
    for _ in range(COMMIT_ATTEMPTS):
        found = _find_table(actor, ident)
        policy.require(actor, operations.ALTER_TABLE, found)
        require_enabled(found)
        current = _current(found)
        requirements, updates = plan(current.metadata)
        committed = _commit_once(actor, current, requirements, updates)
        if committed:
            return committed
    raise Conflict(
        f"Requirement failed: others keep committing to {'.'.join((*found.path.segments, ident.leaf or ''))}.",
        kind=Kind.TABLE,
    )


def _commit_once(
    actor: Actor, current: TableRecord, requirements: list[dict[str, Any]], updates: list[dict[str, Any]]
) -> TableRecord | None:
    """The new state, or None where another commit got in between."""
    base, found = current.metadata, current.found
    assert found is not None
    check_requirements(requirements, base)
    metadata = builder.apply_updates(base, updates, now_ms=now_ms(), previous_location=current.metadata_location)
    if metadata is base:
        return current
    store = _store(found)
    store.check_metadata(metadata)
    if metadata.get("table-uuid") != base.get("table-uuid"):
        raise Invalid("A table's uuid cannot change.", kind=Kind.TABLE)
    written, content = store.write(metadata, current.metadata_location)
    swapped = _or_discard(store, written, lambda: _swap(actor, found, store, metadata, written))
    if not swapped:
        store.discard(written)
        return None
    _forget_old_files(store, base, metadata)
    return TableRecord(found, written, content)


def _swap(actor: Actor, found: Found, store: IcebergProvider, metadata: dict[str, Any], written: str) -> bool:
    """Move the pointer if it still is where it was read; rights are asked again in the same transaction."""
    claims = store.claims(metadata)

    def act(actor: Actor) -> bool:
        fresh = _again(found)
        policy.require(actor, operations.ALTER_TABLE, fresh)
        require_enabled(fresh)
        pointer = Table.objects.filter(pk=found.id, metadata_location=found.metadata_location)
        if not pointer.update(metadata_location=written):
            return False
        claimed = LocationClaim.objects.filter(table_id=found.id)
        if sorted(claimed.values_list("location", flat=True)) != claims:
            claimed.delete()
            _claim(store, found.id, claims)
        Securable.objects.filter(pk=found.id).update(last_modifier=actor.name, last_modified_time=timezone.now())
        record(event(actor, "table.committed", fresh, metadata_location=written))
        return True

    return write(actor, act, kind=Kind.TABLE)


def _again(found: Found) -> Found:
    """The same table as it is now, whatever it is called by now."""
    fresh = by_id(found.id)
    if fresh is None:
        raise NotFound(policy.missing(found), kind=Kind.TABLE)
    return fresh


def _forget_old_files(store: IcebergProvider, base: dict[str, Any], metadata: dict[str, Any]) -> None:
    """Delete the log entries that fell off, where the table asks for it; never data files."""
    if metadata.get("properties", {}).get("write.metadata.delete-after-commit.enabled", "").lower() != "true":
        return
    kept = _logged_files(metadata)
    fell_off = [file for file in _logged_files(base) if file not in kept]
    owns = locations.owned_by(metadata, store.allowed, store.file_roots)
    store.discard(*filter(owns, fell_off))


def _logged_files(metadata: dict[str, Any]) -> list[str]:
    """The older metadata files that the log names; the log of a registered table may hold anything."""
    named = (entry.get("metadata-file") for entry in metadata.get("metadata-log") or ())
    return [file for file in named if isinstance(file, str)]


def _create_by_commit(actor: Actor, ident: Ident, requirements: list, updates: list) -> TableRecord:
    """The second half of a staged creation."""
    name = ident.leaf or ""
    check_segment(name, Kind.TABLE)
    home = _require_home(actor, ident)
    there = nearest(ident)
    if there is not None and there.kind in (Kind.TABLE, Kind.VIEW):
        raise Conflict("Requirement failed: table already exists", kind=Kind.TABLE)
    check_requirements(requirements, None)
    metadata = builder.apply_updates(None, updates, now_ms=now_ms())
    store = _store(home)
    store.check_metadata(metadata)
    try:
        return _insert(actor, ident, store, metadata, "table.created")
    except AlreadyExists:
        raise Conflict("Requirement failed: table already exists", kind=Kind.TABLE) from None


def register_table(actor: Actor, ident: Ident, metadata_location: str, *, overwrite: bool = False) -> TableRecord:
    """Take over a table whose metadata file is there already: in an allowed place, claimed by no other table."""
    if overwrite:
        raise Unsupported("Registering over an existing table is not supported; drop it first.", kind=Kind.TABLE)
    check_segment(ident.leaf or "", Kind.TABLE)
    home = _require_home(actor, ident)
    _require_free(home, ident.leaf or "")
    store = _store(home)
    if _overlapping([store.allowed_place(metadata_location)]).exists():
        raise Invalid("The metadata file lies in a place of another table.", kind=Kind.TABLE)
    content = store.read_foreign(metadata_location)
    metadata = files.parse_metadata(content)
    store.check_metadata(metadata)
    found = _publish(actor, ident, store, metadata, metadata_location, "table.registered")
    return TableRecord(found, metadata_location, content)


def rename_table(actor: Actor, source: Ident, target: Ident) -> None:
    """In its schema by whoever may alter it; to another schema by its owner, who may create there (detail g)."""
    name = target.leaf or ""
    check_segment(name, Kind.TABLE)
    if (source.metalake, source.catalog) != (target.metalake, target.catalog):
        raise Unsupported("A table cannot move to another catalog.", kind=Kind.TABLE)

    def act(actor: Actor) -> None:
        found = _find_table(actor, source)
        # Before the target is looked for, so that whether it exists is told only to who may move the table.
        moves = source.schema != target.schema
        policy.require(actor, operations.own(Kind.TABLE) if moves else operations.ALTER_TABLE, found)
        require_enabled(found)
        home = find(actor, Ident(target.metalake, target.catalog, target.schema))
        if moves:
            policy.require(actor, operations.CREATE_TABLE, home)
            policy.require_no_escape(actor, found, home)
        _require_free_for_rename(found, home, name)
        moved = Securable.objects.filter(pk=found.id, parent_id=found.nodes[-2].id, name=source.leaf).update(
            name=name,
            parent_id=home.id,
            lineage=f"{home.lineage}/{found.id}",
            last_modifier=actor.name,
            last_modified_time=timezone.now(),
        )
        if not moved:
            raise Stale
        was = dotted(found.full_name)
        full_name = [home.catalog.name, home.path.logical(), name]
        record(event_of(actor, "table.renamed", Kind.TABLE, found.id, full_name, home.metalake.id, was=was))

    write(actor, act, kind=Kind.TABLE)


def _require_free_for_rename(found: Found, home: Found, name: str) -> None:
    try:
        _require_free(home, name)
    except AlreadyExists as taken:
        old = ".".join((*found.path.segments, found.nodes[-1].name))
        new = ".".join((*home.path.segments, name))
        kind = taken.message.split(" ", 1)[0]
        raise AlreadyExists(f"Cannot rename {old} to {new}. {kind} already exists", kind=Kind.TABLE) from None


def drop_table(actor: Actor, ident: Ident, *, purge: bool = False) -> None:
    """The pointer goes now; with purge, the files it reaches follow in the background."""

    def act(actor: Actor) -> None:
        found = _find_table(actor, ident)
        policy.require(actor, operations.DROP_TABLE, found)
        require_enabled(found)
        uuid = _hold_pointer(found)
        remove(found)
        record(event(actor, "table.dropped", found, purge=purge))
        if purge:
            follow_up(PURGE, [_purge_of(found, uuid)])

    write(actor, act, kind=Kind.TABLE)


def _hold_pointer(found: Found) -> UUID:
    """Lock a table as it was read, so that what a commit adds meanwhile is not left behind; its uuid.

    Raises Stale if it moved.
    """
    pointer = Table.objects.select_for_update().filter(pk=found.id, metadata_location=found.metadata_location)
    for uuid in pointer.values_list("table_uuid", flat=True):
        return uuid
    raise Stale


def _purge_of(found: Found, uuid: UUID) -> dict[str, Any]:
    return {"catalog_id": found.catalog.id, "metadata_location": found.metadata_location, "table_uuid": str(uuid)}


def purge_table(payload: dict[str, Any]) -> int:
    """Delete the files of a dropped table; safe to run again. One that was registered anew, at any of its metadata
    files, keeps them.
    """
    catalog = Catalog.objects.filter(pk=payload["catalog_id"]).first()
    if catalog is None or Table.objects.filter(table_uuid=payload["table_uuid"]).exists():
        return 0
    store = provider_of(catalog)
    assert isinstance(store, IcebergProvider)
    return store.purge(payload["metadata_location"])


def now_ms() -> int:
    return int(time.time() * 1000)
