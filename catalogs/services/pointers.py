"""Find, read and publish the rows of managed tables and views, and the metadata files that they point to."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils import timezone

from authz import operations, policy
from authz.actor import Actor
from authz.callers.accounts import account_of
from authz.locks import Lock, hold_owner
from authz.operations import Operation
from catalogs.lookup import by_id, find
from catalogs.models import Tabular
from catalogs.services import claims, places, reserved_places, resolution
from catalogs.services.alterations import require_enabled
from catalogs.services.creation_hooks import check_home
from catalogs.services.free_names import require_free
from catalogs.services.provider_of import files_of
from catalogs.services.writes import Locks, write_located
from catalogs.table_stores import NewState, Prepared, TableRecord
from formats.iceberg.table_locations import effective_locations
from metalake.bulk_insert import insert
from metalake.errors import Invalid, OutcomeUnknown
from metalake.events import event_of, record, stands
from metalake.kinds import Kind
from metalake.lineage import Address, Located, Node
from metalake.models import Securable
from metalake.statements import update_rows
from providers.metadata_files import METADATA, MetadataFiles

Json = dict[str, Any]
LISTED_COMMENT = 1_000  # characters of a table's comment that its row repeats
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def find_table(actor: Actor, ident: Address) -> Located:
    return require_table(actor, find(actor, ident))


def require_table(actor: Actor, located: Located) -> Located:
    """The located object if it is a table. Raises NotFound otherwise."""
    return resolution.of_kind(actor, located, Kind.TABLE)


def located_now(table: Located) -> Located:
    """The table, found again by its id, with its present names. Raises NotFound."""
    fresh = by_id(table.id)
    if fresh is None:
        raise table.missing()
    return fresh


def current_record(located: Located) -> TableRecord:
    return TableRecord(located, located.metadata_location or "", current_content(located))


def current_content(located: Located) -> bytes:
    """The metadata file of a table or view, from memory if it was read before."""
    location = located.metadata_location or ""
    content = METADATA.get(located.catalog.id, location)
    return files_of(located).read(location) if content is None else content


def require_home(actor: Actor, ident: Address, asks: Operation = operations.CREATE_TABLE) -> Located:
    """The schema to create something in, after checking the right. A hidden one is answered like a missing one."""
    return as_home(actor, find(actor, ident.of_schema()), asks)


def as_home(actor: Actor, home: Located, asks: Operation) -> Located:
    """The schema, after checking that the actor may make something in it, or move it there."""
    policy.require(actor, asks, home)
    require_enabled(home)
    check_home(actor, home)
    return home


def meet_home(actor: Actor, ident: Address, asks: Operation = operations.CREATE_TABLE) -> Located:
    """As `require_home`, but a schema without a row is looked up in its own system. Not for use in a transaction."""
    return as_home(actor, resolution.find_schema(actor, ident), asks)


@dataclass(frozen=True)
class NewPointer:
    """A table or view that is to be made, by its metadata.

    `event` is recorded, and `then` called with the new object, in the transaction that makes it. `fresh` are new places
    with unique names; `is_new` says that the uuid is, too.
    """

    model: type[Tabular]
    files: MetadataFiles
    metadata: Json
    event: str
    fresh: Collection[str] = ()
    is_new: bool = False
    then: Callable[[Actor, Located], object] | None = None

    @property
    def kind(self) -> Kind:
        assert self.model.row_kind is not None
        return self.model.row_kind


def make(actor: Actor, address: Address, home: Located, new: NewPointer) -> tuple[Located, bytes]:
    """Write the first metadata file, then the row that points to it; the object and the file's content."""
    written, content = new.files.write(new.metadata, None)
    made = publish_or_discard(new.files, written, partial(publish, actor, address, home, new, written))
    return made, content


def publish(actor: Actor, address: Address, home: Located, new: NewPointer, metadata_location: str) -> Located:
    """Insert the row with its owner, audit, claims and event, in the schema that the metadata was made for.

    Raises NotFound if another schema has the schema's name by now.
    """
    name, home_id = address.leaf or "", home.id

    def locate(actor: Actor) -> Locks:
        home = require_home(actor, address, operations.OPERATIONS[f"create_{new.kind}"])
        if home.id != home_id:
            raise home.missing()
        return [(home, Lock.HANGS)]

    def act(actor: Actor, home: Located) -> Located:
        require_free(home, name, new.kind)
        row = _row_of(actor, home, name, new, metadata_location)
        places = new.files.claims(new.metadata)
        claimed = claims.to_claim(actor, new.files, row.id, places, home, kind=new.kind, fresh=new.fresh)
        insert((Securable, [row]), (new.model, [row]), claimed)
        full_name = [home.catalog.name, home.path.logical(), name]
        details = {"facts": [stands(row)], "uuid": new.metadata[f"{new.kind}-uuid"]}
        record(event_of(actor, new.event, new.kind, row.id, full_name, home.metalake.id, **details))
        made = replace(
            home.below(Node(row.id, new.kind, name, row.owner_user_id, None)), metadata_location=metadata_location
        )
        if new.then is not None:
            new.then(actor, made)
        return made

    turn, owner = partial(claims.lock_claims, new.files.catalog_id), partial(hold_owner, actor.id)
    return write_located(actor, locate, act, kind=new.kind, before=turn, after=owner, at=address)


def _row_of(actor: Actor, home: Located, name: str, new: NewPointer, metadata_location: str) -> Tabular:
    """The object's row. Raises Invalid if the metadata has no uuid, or one that is registered already."""
    row = new.model.made(
        new.kind,
        name,
        home,
        owner_user_id=account_of(actor),
        creator=actor.name,
        metadata_location=metadata_location,
        uuid=_uuid_of(new),
        comment=listed_comment(new.metadata),
    )
    if not new.is_new and new.model._default_manager.filter(uuid=row.uuid).exists():
        raise Invalid(f"A {new.kind} with this uuid is registered already.", kind=new.kind)
    return row


def _uuid_of(new: NewPointer) -> UUID:
    """The object's uuid, which tables of version 1 may leave out. Raises Invalid if it is missing or malformed."""
    uuid = new.metadata.get(f"{new.kind}-uuid")
    if not isinstance(uuid, str) or not _UUID.fullmatch(uuid):
        raise Invalid(f"The metadata must have a {new.kind}-uuid that is a UUID.", kind="metadata-file")
    return UUID(uuid)


def open_foreign(
    actor: Actor, home: Located, location: str, parse: Callable[[bytes], Json], kind: Kind
) -> tuple[MetadataFiles, bytes, Json]:
    """The metadata file that a caller wants to register in a schema: the catalog's files, its content, its metadata.

    Raises Invalid or Forbidden unless it lies in an allowed place that no other object claims.
    """
    own_files = files_of(home)
    ground = places.folder_of(home, own_files).ground
    place = own_files.allowed_place(location)
    places.require_ground(actor, home, ground, [place])
    if any(claims.overlapping([place], home.catalog.id)):
        raise Invalid("The metadata file lies in a place of another table or view.", kind=kind)
    reserved_places.require_open(actor, [place], home)
    content = own_files.read_foreign(location)
    metadata = parse(content)
    own_files.check_metadata(metadata)
    places.require_ground(actor, home, ground, effective_locations(metadata))
    return own_files, content, metadata


class FileGone(Exception):
    """The vacuum removed the metadata file as an orphan before the pointer moved to it."""


def move_pointer(actor: Actor, model: type[Tabular], located: Located, was: str | None, new: NewState) -> bool:
    """Point an object to its new metadata if it still points to the file `was`; whether it did.

    The caller has locked the object, and the catalog's claims if the new metadata names a new place. Raises FileGone.
    """
    if not update_rows(_moved(model._meta.db_table), [new.location, located.id, was]):
        return False
    # Under the row lock that the vacuum takes too: this process may have paused for days since it wrote the file.
    if not new.files.is_there(new.location):
        raise FileGone
    claims.move(actor, new.files, located, new.files.claims(new.metadata))
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    update_rows(_SAYS, [listed_comment(new.metadata), actor.name, now, located.id])
    if was:
        new.files.forget(was)
    return True


_SAYS = "UPDATE metalake_securable SET comment = %s, last_modifier = %s, last_modified_time = %s WHERE id = %s"


@cache
def _moved(table: str) -> str:
    return f'UPDATE "{table}" SET metadata_location = %s WHERE securable_ptr_id = %s AND metadata_location = %s'  # noqa: S608


def publish_or_discard(own_files: MetadataFiles, written: str, publish: Callable[[], Any]) -> Any:
    """Run `publish`; if it certainly failed, remove the written file, to which nothing points then."""
    try:
        return publish()
    except OutcomeUnknown:
        raise
    except Exception:
        own_files.discard(written)
        raise


def publish_or_discard_all(states: Sequence[Prepared], publish: Callable[[], Any]) -> Any:
    """The same for the files of several tables, all or none of which are pointed to."""
    try:
        return publish()
    except OutcomeUnknown:
        raise
    except Exception:
        for state in states:
            state.new.files.discard(state.new.location)
        raise


def listed_comment(metadata: dict[str, Any]) -> str | None:
    """The beginning of a table's comment, which its row repeats so that a list of tables reads no metadata files."""
    comment = (metadata.get("properties") or {}).get("comment")
    return str(comment).replace("\x00", "")[:LISTED_COMMENT] if comment else None


def now_ms() -> int:
    return int(time.time() * 1000)
