"""Tables whose truth is a metadata file: listed, loaded, created, registered, renamed and dropped."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.utils import timezone

from authz import operations, policy, snapshot
from authz.locks import Lock
from authz.policy import Actor
from catalogs import vault
from catalogs.lookup import by_id, find
from catalogs.models import Catalog, ReservedPlace, Table
from catalogs.secrets import require_values
from catalogs.services import claims, commits, places, reserved, shared_folders
from catalogs.services.changes import event, keeping, remove, require_enabled
from catalogs.services.free_names import require_free, require_free_for_rename
from catalogs.services.holding import Held, write_to
from catalogs.services.opening import provider_of, store_of
from catalogs.services.pointers import (
    TableDraft,
    TableRecord,
    a_table,
    current_record,
    find_table,
    insert_table,
    meet_home,
    now_ms,
    publish_table,
)
from formats.iceberg import builder, files
from formats.iceberg.alterations import updates_for
from formats.iceberg.locations import canonical, effective_locations
from formats.iceberg.purge import Purged
from formats.iceberg.translate import from_iceberg, to_iceberg
from formats.native.tables import CreateTableRequest
from metalake.blocking import all_of
from metalake.errors import Invalid, Unsupported
from metalake.events import event_of, follow_up, gone, record, stands
from metalake.hierarchy import check_segment
from metalake.kinds import Kind, Slot
from metalake.lineage import Address, Located
from metalake.models import AuditInfo, Securable
from metalake.names import dotted
from metalake.outbox import NotHere
from metalake.privileges import Privilege
from outside import finding
from outside import iceberg as external_iceberg
from outside import tables as external
from outside.calls import is_external
from outside.reading import or_namesake
from outside.tables import ExternalTable
from providers.iceberg.provider import IcebergProvider

log = logging.getLogger(__name__)

PURGE = "table.purge"


@dataclass(frozen=True)
class TableList:
    """Names in order; `taken_at` says when an outside system was asked for them."""

    names: list[str]
    taken_at: datetime | None = None


def list_tables(
    actor: Actor,
    ident: Address,
    after: str | None = None,
    limit: int | None = None,
    *,
    refresh: bool = False,
    iceberg: bool = False,
) -> TableList:
    """The names that the actor may load, in order; from behind `after`, at most `limit`.

    With `iceberg`, those of an outside catalog that are in another format are left out.
    """
    found = finding.find(actor, ident)
    if not policy.sees(actor, found):
        raise policy.unseen(actor, found)
    require_enabled(found)
    there: Collection[str] | None = None
    taken_at = None
    if is_external(found):
        there, taken_at = external.take_list(actor, found, force=refresh, iceberg=iceberg)
    rows = Securable.objects.filter(parent_id=found.id, slot=Slot.TABULAR, kind=Kind.TABLE)
    if after is not None:
        rows = rows.filter(name__gt=after)
    names = policy.visible_leaves(actor, found, rows, Kind.TABLE).order_by("name").values_list("name", flat=True)
    if there is None:
        return TableList(all_of(names[:limit]), taken_at)
    return TableList([name for name in all_of(names) if name in there][:limit], taken_at)


def load_table(
    actor: Actor,
    ident: Address,
    holding: Iterable[Privilege] = (),
    *,
    refresh: bool = False,
    as_published: bool = False,
) -> TableRecord | ExternalTable:
    """One statement beside the caller's identity; the metadata comes from memory where it was read before.

    Raises Forbidden unless each privilege in `holding` is effective on the table, as all are for its owners.
    With `as_published`, right after a write, no outside system is asked what it has just said.
    """
    found = _find(actor, ident)
    wanted = [operations.LOAD_TABLE, *map(_exercise, holding)]

    def allow(found: Located) -> None:
        for operation in wanted:
            policy.require(actor, operation, found)
        require_enabled(found)

    if is_external(found):
        read = partial(external.loaded, actor, force=refresh, as_published=as_published)
        return or_namesake(ident, found, allow, read)
    allow(found)
    return current_record(found)


def load_iceberg_table(actor: Actor, ident: Address, *, refresh: bool = False) -> TableRecord:
    """A table with its Iceberg metadata. Raises NotFound for one that is in another format."""
    record = load_table(actor, ident, refresh=refresh)
    return external_iceberg.record_of(record) if isinstance(record, ExternalTable) else record


def _find(actor: Actor, ident: Address) -> Located:
    return a_table(actor, finding.find(actor, ident))


def _exercise(privilege: Privilege) -> operations.Operation:
    return replace(operations.LOAD_TABLE, name=f"exercise {privilege}", sufficient=operations.any_of(privilege))


def load_audit(record: TableRecord | ExternalTable) -> AuditInfo:
    """Who made a table and changed it last, in one statement."""
    row = Securable.objects.filter(pk=record.published.id).first()
    if row is None:
        raise record.published.missing()
    return row


def table_exists(actor: Actor, ident: Address, *, iceberg: bool = False) -> None:
    """Raise NotFound unless the actor may load the table; with `iceberg`, of one in another format, too."""
    found = _find(actor, ident)

    def allow(found: Located) -> None:
        if not policy.sees(actor, found):
            raise policy.unseen(actor, found)
        require_enabled(found)

    if is_external(found):
        or_namesake(ident, found, allow, partial(external.loaded, actor, iceberg=iceberg))
    else:
        allow(found)


def create_native_table(actor: Actor, ident: Address, asked: CreateTableRequest) -> TableRecord | ExternalTable:
    """A table as the native wire describes it, wherever its catalog keeps tables."""
    require_values(asked.properties, kind=Kind.TABLE)
    home = meet_home(actor, ident)
    if is_external(home):
        return external.loaded(actor, external.create(actor, ident, home, asked), as_published=True)
    schema, spec, order, properties = to_iceberg(asked)
    location = properties.pop("location", None)
    return create_table(actor, ident, TableDraft(schema, spec, order, properties, location))


def alter_native_table(actor: Actor, ident: Address, updates: Sequence[Any]) -> TableRecord | ExternalTable:
    """The native wire's changes, all or none."""
    found = _find(actor, ident)
    if is_external(found):
        policy.require(actor, operations.ALTER_TABLE, found)
        table = external.loaded(actor, found, force=True)
        if table.provider.metadata_location(table.definition) is None:
            external.alter(actor, found, updates)
        else:  # the truth is its metadata, wherever its pointer is kept
            external_iceberg.commit(actor, found, _plan(updates, table), seen=table)
        return external.loaded(actor, found, as_published=True)
    return commits.commit_with(actor, ident, _plan(updates))


def _plan(updates: Sequence[Any], outside: ExternalTable | None = None) -> external_iceberg.Plan:
    """What the native wire's changes are to an Iceberg table, which it shows with what its entry outside says."""

    def plan(metadata: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        entry = outside.shown()["properties"] if outside else {}
        meant = keeping(updates, lambda: from_iceberg(metadata)["properties"] | entry)
        return updates_for(meant, metadata)[:2]

    return plan


def create_table(actor: Actor, ident: Address, draft: TableDraft, *, stage: bool = False) -> TableRecord:
    """The row's unique name decides between racers; a loser's metadata file is removed.

    Staging keeps nothing but empty folders on this machine's disks, where its client writes before the commit.
    """
    name = ident.leaf or ""
    check_segment(name, Kind.TABLE)
    home = meet_home(actor, ident)
    if is_external(home):
        return external_iceberg.create(actor, ident, home, draft, stage=stage)
    require_free(home, name)
    store = store_of(home)
    lies = places.folder_of(home, store)
    uuid = uuid4()
    metadata = builder.new_table_metadata(
        table_uuid=str(uuid),
        location=store.place(lies.folder, name, uuid, draft.location),
        schema=draft.schema,
        partition_spec=draft.partition_spec,
        sort_order=draft.sort_order,
        properties=draft.properties,
        now_ms=now_ms(),
    )
    store.check_metadata(metadata)
    places.require_ground(actor, home, lies.ground, effective_locations(metadata))
    fresh = [] if draft.location else [canonical(metadata["location"])]
    if stage:
        claims.require_claimable(actor, store.claims(metadata), fresh=fresh)
        store.make_folders(*effective_locations(metadata))
        return TableRecord(None, None, files.dump(metadata))
    return insert_table(actor, ident, home, store, metadata, "table.created", fresh)


def register_table(actor: Actor, ident: Address, metadata_location: str, *, overwrite: bool = False) -> TableRecord:
    """Take over a table whose metadata file is there already: in an allowed place, claimed by no other table."""
    if overwrite:
        raise Unsupported("Registering over an existing table is not supported; drop it first.", kind=Kind.TABLE)
    check_segment(ident.leaf or "", Kind.TABLE)
    home = meet_home(actor, ident, operations.REGISTER_TABLE)
    if is_external(home):
        return external_iceberg.register(actor, ident, home, metadata_location)
    require_free(home, ident.leaf or "")
    store = store_of(home)
    ground = places.folder_of(home, store).ground
    place = store.allowed_place(metadata_location)
    places.require_ground(actor, home, ground, [place])
    if claims.overlapping([place]).exists():
        raise Invalid("The metadata file lies in a place of another table.", kind=Kind.TABLE)
    reserved.require_open(actor, [place])
    content = store.read_foreign(metadata_location)
    metadata = files.parse_metadata(content)
    store.check_metadata(metadata)
    places.require_ground(actor, home, ground, effective_locations(metadata))
    found = publish_table(actor, ident, home, store, metadata, metadata_location, "table.registered")
    return TableRecord(found, metadata_location, content)


def rename_table(actor: Actor, source: Address, target: Address, *, iceberg: bool = False) -> Located:
    """In its schema by whoever may alter it; to another schema by its owner, who may create there (detail g).

    With `iceberg`, an outside table in another format is none. Returns the table as it is called then.
    """
    name = target.leaf or ""
    check_segment(name, Kind.TABLE)
    if (source.metalake, source.catalog) != (target.metalake, target.catalog):
        raise Unsupported("A table cannot move to another catalog.", kind=Kind.TABLE)
    found = _find(actor, source)
    if is_external(found):
        external.rename(actor, found, target, iceberg=iceberg)
        return _as_called_now(found)

    moves = source.schema != target.schema

    def look(actor: Actor) -> Held:
        found = find_table(actor, source)
        # Before the target is looked for, so that whether it exists is told only to who may move the table.
        policy.require(actor, operations.MOVE_TABLE if moves else operations.ALTER_TABLE, found)
        require_enabled(found)
        home = find(actor, target.of_schema())
        if moves:
            policy.require(actor, operations.CREATE_TABLE, home)
        return [(home, Lock.HANGS), (found, Lock.MOVES)]

    def act(actor: Actor, home: Located, found: Located) -> Located:
        if moves:
            policy.require_no_escape(actor, found, home)
        require_free_for_rename(found, home, name)
        Securable.objects.filter(pk=found.id).update(
            name=name,
            parent_id=home.id,
            lineage=f"{home.lineage}/{found.id}",
            last_modifier=actor.name,
            last_modified_time=timezone.now(),
        )
        was = dotted(found.full_name)
        full_name = [home.catalog.name, home.path.logical(), name]
        facts = [stands(Securable.objects.get(pk=found.id))]
        record(event_of(actor, "table.renamed", Kind.TABLE, found.id, full_name, home.metalake.id, facts, was=was))
        return _as_called_now(found)

    return write_to(actor, look, act, kind=Kind.TABLE)


def _as_called_now(found: Located) -> Located:
    fresh = by_id(found.id)
    if fresh is None:
        raise found.missing()
    return fresh


def rename_native_table(actor: Actor, source: Address, target: Address) -> TableRecord | ExternalTable:
    """The same, and the table as it was then: no right is asked for that again, which may be lost meanwhile."""
    found = rename_table(actor, source, target)
    return external.loaded(actor, found, as_published=True) if is_external(found) else current_record(found)


def drop_table(actor: Actor, ident: Address, *, purge: bool = False, iceberg: bool = False) -> str | None:
    """The pointer goes now; with purge, the files it reaches follow in the background.

    With `iceberg`, an outside table in another format is none. Returns why an outside system was not told to delete
    files that go with the table there.
    """
    found = _find(actor, ident)
    policy.require(actor, operations.DROP_TABLE, found)
    if is_external(found):
        return external.drop(actor, found, purge=purge, iceberg=iceberg)
    if purge and found.metadata_location:
        shared_folders.mark(found.metadata_location)

    def look(actor: Actor) -> Held:
        found = find_table(actor, ident)
        policy.require(actor, operations.DROP_TABLE, found)
        require_enabled(found)
        return [(found, Lock.MOVES)]

    def act(actor: Actor, found: Located) -> None:
        uuid = Table.objects.values_list("table_uuid", flat=True).get(pk=found.id)
        kept = remove(found)
        record(event(actor, "table.dropped", found, [gone(found.id)], purge=purge))
        if purge:
            follow_up(PURGE, [_purge_of(actor, found, uuid, kept)])

    write_to(actor, look, act, kind=Kind.TABLE)
    return None


def _purge_of(actor: Actor, found: Located, uuid: UUID, kept: Sequence[ReservedPlace]) -> dict[str, Any]:
    """What is to be deleted: the table's files in the places that it has, or had before."""
    return {
        "catalog_id": found.catalog.id,
        "metadata_location": found.metadata_location,
        "table_uuid": str(uuid),
        "places": [row.location for row in kept],
        "reserved": [row.pk for row in kept],
        "table": {"id": found.id, "full_name": found.full_name, "metalake_id": found.metalake.id, "by": actor.name},
    }


def purge_table(payload: dict[str, Any]) -> int:
    """Delete the files of a dropped table; safe to run again. One that was registered anew, at any of its metadata
    files, keeps them. Its places are free once no file of its own is left.

    Raises NotHere where this process does not reach the folder that the files lie in or cannot open the catalog's
    secrets, ProviderUnavailable where nobody reaches the bucket.
    """
    catalog = Catalog.objects.filter(pk=payload["catalog_id"]).first()
    if catalog is None or Table.objects.filter(table_uuid=payload["table_uuid"]).exists():
        return 0
    if reason := vault.lacks_key_of(catalog.pk):
        raise NotHere(reason)
    provider = provider_of(catalog)
    assert isinstance(provider, IcebergProvider)
    own, kept = payload.get("places"), payload.get("reserved") or []  # an older message has neither
    shared_folders.require_here([payload["metadata_location"], *(own or [])], provider.allowed)
    purged = provider.files.purge(payload["metadata_location"], own, claims.of_others(own or [], kept))
    if "table" in payload:
        _note_purge(payload["table"], purged, kept)
    return purged.deleted


def _note_purge(table: dict[str, Any], purged: Purged, kept: Sequence[int]) -> None:
    """Also what the purge leaves: files that are not the table's, and its own that it could not or must not delete."""
    log.info("Purged %s: %s", dotted(table["full_name"]), purged)
    by = Actor(policy.NOBODY, table["by"], snapshot.latest())
    with transaction.atomic():
        if not purged.kept:
            ReservedPlace.objects.filter(pk__in=kept).delete()
        name, metalake_id = table["full_name"], table["metalake_id"]
        record(event_of(by, "table.purged", Kind.TABLE, table["id"], name, metalake_id, **asdict(purged)))
