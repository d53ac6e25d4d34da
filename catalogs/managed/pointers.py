"""Pointers in rows of ours: made, registered and moved in one transaction with the claims of their places."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, ClassVar
from uuid import UUID, uuid4

from django.db import connection
from django.utils import timezone

from authz import policy
from authz.actor import Actor
from authz.callers.accounts import account_of
from authz.locks import Lock, hold
from authz.transactions import write
from catalogs.lookup import refreshed_at
from catalogs.models import Table, Tabular
from catalogs.pointer_stores import D, NewState, Pointed, PointerStore, PreparedCommit, R, discard_on_failure
from catalogs.services import claims, places, reserved_places
from catalogs.services.alterations import event, require_enabled
from catalogs.services.free_names import require_free
from catalogs.services.provider_of import files_of
from catalogs.services.resolution import find_leaf
from catalogs.services.writes import Write, new_in_schema, write_to
from catalogs.table_stores import TableDraft, TablePointers, TableRecord
from formats.iceberg import metadata_json
from formats.iceberg.locations import canonical
from formats.iceberg.table_locations import added_locations, effective_locations, logged_files, owned_by
from metalake.bulk_insert import insert
from metalake.errors import Invalid
from metalake.events import event_of, record, stands
from metalake.hierarchy import check_new_name
from metalake.kinds import Kind
from metalake.lineage import Address, Located, Node
from metalake.models import Securable
from metalake.statements import update_rows
from providers.metadata_files import METADATA, MetadataFiles

Json = dict[str, Any]
LISTED_COMMENT = 1_000  # characters of a table's comment that its row repeats
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Raced(Exception):
    """An object is not in the state any more that its new one was made from, or the new state's file is gone."""


class RowPointers(PointerStore[R, D]):
    """Objects whose pointer is a column of their row; each kind says what else it stores of them.

    If two race for a name, the unique row decides, and the loser's metadata file is removed.
    """

    commits_together = True
    model: ClassVar[type[Tabular]]
    kind: ClassVar[Kind]

    # What differs by kind

    @abstractmethod
    def record_of(self, located: Located, content: bytes) -> R:
        """The object with the content of the metadata file that its row points to."""

    @abstractmethod
    def parse(self, content: bytes) -> Json:
        """The metadata in a file. Raises Invalid."""

    @abstractmethod
    def move(self, actor: Actor, fresh: Located, commit: PreparedCommit[R]) -> Located:
        """Move the pointer, with its event, in the caller's transaction; the object after that. Raises Raced."""

    def require_may_make(self, actor: Actor, home: Located, metadata: Json) -> None:
        """Refuse a new object of this metadata, before its file is written."""

    def note_made(self, actor: Actor, made: Located, metadata: Json, *, is_new: bool) -> None:
        """Store what else the kind has of a new or registered object, in the transaction that makes it."""

    # Creation

    def create(self, actor: Actor, address: Address, home: Located, draft: D) -> R:
        files, metadata, fresh = self.drafted(actor, address, home, draft)
        self.require_may_make(actor, home, metadata)
        return self._make(actor, address, home, files, metadata, fresh, is_new=True)

    def drafted(
        self, actor: Actor, address: Address, home: Located, draft: D
    ) -> tuple[MetadataFiles, Json, Sequence[str]]:
        """The files and first metadata of a draft's object, and its place, if that is new and has a unique name."""
        name = address.leaf or ""
        check_new_name(name, self.kind)
        require_free(home, name, self.kind)
        files = files_of(home)
        lies, uuid = places.folder_of(home, files), uuid4()
        metadata = draft.metadata(uuid, files.place(lies.folder, name, uuid, draft.location))
        files.check_metadata(metadata)
        places.require_ground(actor, home, lies.ground, effective_locations(metadata))
        return files, metadata, [] if draft.location else [canonical(metadata["location"])]

    def create_from(self, actor: Actor, address: Address, home: Located, metadata: Json) -> R:
        files = files_of(home)
        files.check_metadata(metadata)
        places.require_ground(actor, home, places.folder_of(home, files).ground, effective_locations(metadata))
        return self._make(actor, address, home, files, metadata)

    def _make(
        self,
        actor: Actor,
        address: Address,
        home: Located,
        files: MetadataFiles,
        metadata: Json,
        fresh: Collection[str] = (),
        *,
        is_new: bool = False,
    ) -> R:
        """Write the first metadata file, then the row that points to it."""
        new = NewState(files, metadata, *files.write(metadata, None))
        with discard_on_failure([new]):
            return self.publish(actor, address, home, new, "created", fresh, is_new=is_new)

    def register(self, actor: Actor, address: Address, home: Located, location: str) -> R:
        """Register an object whose metadata file lies in an allowed place that no other object claims."""
        require_free(home, address.leaf or "", self.kind)
        new = self._open_foreign(actor, home, location)
        self.require_may_make(actor, home, new.metadata)
        return self.publish(actor, address, home, new, "registered")

    def _open_foreign(self, actor: Actor, home: Located, location: str) -> NewState:
        """The metadata file that a caller wants to register.

        Raises Invalid or Forbidden unless it lies in an allowed place that no other object claims.
        """
        files = files_of(home)
        ground = places.folder_of(home, files).ground
        place = files.allowed_place(location)
        places.require_ground(actor, home, ground, [place])
        if any(claims.overlapping([place], home.catalog.id)):
            raise Invalid("The metadata file is inside a location of another table or view.", kind=self.kind)
        reserved_places.require_open(actor, [place], home)
        content = files.read_foreign(location)
        metadata = self.parse(content)
        files.check_metadata(metadata)
        places.require_ground(actor, home, ground, effective_locations(metadata))
        return NewState(files, metadata, location, content)

    def publish(
        self,
        actor: Actor,
        address: Address,
        home: Located,
        new: NewState,
        fact: str,
        fresh: Collection[str] = (),
        *,
        is_new: bool = False,
    ) -> R:
        """Insert the row with its owner, audit, claims and event, in the schema that the metadata was made for.

        `fact` is the last part of the event's name, `fresh` are new places with unique names; `is_new` says that the
        uuid is, too. Raises NotFound if another schema has the schema's name by now.
        """
        turn = partial(claims.lock_claims, new.files.catalog_id)
        target = replace(new_in_schema(address, self.kind, home), first=turn, ahead=address)
        made = write_to(actor, target, self._insert, address.leaf or "", new, fact, fresh, is_new)
        return self.record_of(made, new.content)

    def _insert(
        self, write: Write, name: str, new: NewState, fact: str, fresh: Collection[str], is_new: bool
    ) -> Located:
        actor, home = write.actor, write.home
        require_free(home, name, self.kind)
        row = self._row_of(actor, home, name, new, is_new=is_new)
        locations = new.files.claims(new.metadata)
        claimed = claims.to_claim(actor, new.files, row.id, locations, home, kind=self.kind, fresh=fresh)
        insert((Securable, [row]), (self.model, [row]), claimed)
        full_name = [home.catalog.name, home.path.logical(), name]
        details = {"facts": [stands(row)], "uuid": new.metadata[f"{self.kind}-uuid"]}
        record(event_of(actor, f"{self.kind}.{fact}", self.kind, row.id, full_name, home.metalake.id, **details))
        made = home.below(Node(row.id, self.kind, name, row.owner_user_id, None))
        made = replace(made, metadata_location=new.location)
        self.note_made(actor, made, new.metadata, is_new=is_new)
        return made

    def _row_of(self, actor: Actor, home: Located, name: str, new: NewState, *, is_new: bool) -> Tabular:
        """The object's row. Raises Invalid if the metadata has no uuid, or one that is registered already."""
        row = self.model.made(
            self.kind,
            name,
            home,
            owner_user_id=account_of(actor),
            creator=actor.name,
            metadata_location=new.location,
            uuid=_uuid_of(new.metadata, self.kind),
            comment=listed_comment(new.metadata),
        )
        if not is_new and self.model._default_manager.filter(uuid=row.uuid).exists():
            raise Invalid(f"A {self.kind} with this uuid is registered already.", kind=self.kind)
        return row

    # Commits

    def current(self, actor: Actor, located: Located) -> R:
        """The object with its metadata file, from memory if that was read before."""
        location = located.metadata_location or ""
        content = METADATA.get(located.catalog.id, location)
        return self.record_of(located, files_of(located).read(location) if content is None else content)

    def files(self, record: R) -> MetadataFiles:
        return files_of(record.published)

    def require_allowed(self, actor: Actor, current: R, files: MetadataFiles, metadata: Json) -> None:
        if added := added_locations(current.metadata, metadata):
            places.require_ground_of(actor, current.published, files, added)

    def swap(self, actor: Actor, commit: PreparedCommit[R]) -> R | None:
        swapped = self.swap_all(actor, [commit])
        return swapped[0] if swapped else None

    def swap_all(self, actor: Actor, commits: Sequence[PreparedCommit[R]]) -> list[R] | None:
        try:
            with discard_on_failure([commit.new for commit in commits]):
                moved = self.move_all(actor, commits)
        except Raced:
            return None
        for commit in commits:
            _forget_old_files(commit.new.files, commit.current.metadata, commit.new.metadata)
        return [self.record_of(located, commit.new.content) for located, commit in zip(moved, commits, strict=True)]

    def move_all(self, actor: Actor, commits: Sequence[PreparedCommit[R]]) -> list[Located]:
        """Move the pointers if the objects still have their names and still point to the metadata that was read.

        Finds each again under its row lock, though it was found, and the rights checked, when it was read. Raises
        Raced, which undoes all.
        """
        alone = partial(refreshed_at, commits[0].address) if len(commits) == 1 else None
        move_each = partial(self._move_each, commits=commits)
        return write(actor, move_each, holds=partial(_hold, commits), kind=self.kind, refresh=alone)

    def _move_each(self, actor: Actor, commits: Sequence[PreparedCommit[R]]) -> list[Located]:
        return [self.move(actor, self._changeable(actor, commit), commit) for commit in commits]

    def _changeable(self, actor: Actor, commit: PreparedCommit[R]) -> Located:
        fresh = self.find_again(actor, commit)
        policy.require(actor, commit.change.operation, fresh)
        require_enabled(fresh)
        return fresh

    def find_again(self, actor: Actor, commit: PreparedCommit[R]) -> Located:
        return find_leaf(actor, commit.address, self.kind)


class ManagedPointers(RowPointers[TableRecord, TableDraft], TablePointers):
    """Tables, which store nothing besides the pointer."""

    model, kind = Table, Kind.TABLE

    def record_of(self, located: Located, content: bytes) -> TableRecord:
        return TableRecord(located, located.metadata_location or "", content)

    def parse(self, content: bytes) -> Json:
        return metadata_json.parse_metadata(content)

    def move(self, actor: Actor, fresh: Located, commit: PreparedCommit[TableRecord]) -> Located:
        move_pointer(actor, Table, fresh, commit.current, commit.new)
        now = connection.ops.adapt_datetimefield_value(timezone.now())
        update_rows(_SAYS, [listed_comment(commit.new.metadata), actor.name, now, fresh.id])
        record(event(actor, commit.change.event, fresh, metadata_location=commit.new.location))
        return replace(fresh, metadata_location=commit.new.location)

    def stage(self, actor: Actor, address: Address, home: Located, draft: TableDraft) -> TableRecord:
        """Staging only creates empty local folders, which the client writes to before it commits."""
        files, metadata, fresh = self.drafted(actor, address, home, draft)
        claims.require_claimable(actor, files.claims(metadata), home, fresh=fresh)
        files.make_folders(*effective_locations(metadata))
        return TableRecord(None, None, metadata_json.dump(metadata))

    def read(self, record: TableRecord) -> TableRecord:
        return record

    def home_of(self, actor: Actor, schema: Located, properties: Mapping[str, str]) -> str | None:
        return places.folder_of(schema, files_of(schema), properties).folder

    def require_claims(self, table: Located) -> None:
        pass


def _hold(commits: Sequence[PreparedCommit[Any]]) -> None:
    if any(adds_places(commit) for commit in commits):
        claims.lock_claims(commits[0].new.files.catalog_id)
    hold(Lock.CHANGES, *(commit.current.published.id for commit in commits))


def move_pointer(actor: Actor, model: type[Tabular], fresh: Located, current: Pointed, new: NewState) -> None:
    """Compare-and-swap an object's metadata pointer; the caller updates the copied columns of its row.

    The caller has locked the object, and the catalog's claims if the new metadata names a new place. Raises Raced
    unless `fresh` is the object that was read and points to the same file still, or if the vacuum removed the new file
    as an orphan before.
    """
    was = current.metadata_location
    is_same = fresh.id == current.published.id
    if not is_same or not update_rows(_moved(model._meta.db_table), [new.location, fresh.id, was]):
        raise Raced
    # Under the row lock that the vacuum also takes: this process may have been paused for days since writing the file.
    if not new.files.is_there(new.location):
        raise Raced
    claims.move(actor, new.files, fresh, new.files.claims(new.metadata))
    if was:
        new.files.forget(was)


_SAYS = "UPDATE metalake_securable SET comment = %s, last_modifier = %s, last_modified_time = %s WHERE id = %s"


@cache
def _moved(table: str) -> str:
    return f'UPDATE "{table}" SET metadata_location = %s WHERE securable_ptr_id = %s AND metadata_location = %s'  # noqa: S608


def adds_places(commit: PreparedCommit[Any]) -> bool:
    return bool(added_locations(commit.current.metadata, commit.new.metadata))


def _forget_old_files(own_files: MetadataFiles, base: Json, metadata: Json) -> None:
    """Delete the metadata files no longer in the log, if the table's properties enable it; never data files."""
    if metadata.get("properties", {}).get("write.metadata.delete-after-commit.enabled", "").lower() != "true":
        return
    logged = logged_files(metadata)
    fell_off = [file for file in logged_files(base) if file not in logged]
    owns = owned_by(effective_locations(metadata), own_files.allowed, own_files.file_roots)
    own_files.discard(*filter(owns, fell_off))


def _uuid_of(metadata: Json, kind: Kind) -> UUID:
    """The object's uuid, which tables of version 1 may leave out. Raises Invalid if it is missing or malformed."""
    uuid = metadata.get(f"{kind}-uuid")
    if not isinstance(uuid, str) or not _UUID.fullmatch(uuid):
        raise Invalid(f"The metadata must have a {kind}-uuid that is a UUID.", kind="metadata-file")
    return UUID(uuid)


def listed_comment(metadata: Json) -> str | None:
    """The start of a table's comment, copied to its row so that listing tables reads no metadata files."""
    comment = (metadata.get("properties") or {}).get("comment")
    return str(comment).replace("\x00", "")[:LISTED_COMMENT] if comment else None
