"""Find, read and publish the rows of managed tables and the metadata files that they point to."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Any
from uuid import UUID

from authz import operations, policy
from authz.actor import Actor
from authz.callers.accounts import account_of
from authz.locks import Lock, hold_owner
from authz.operations import Operation
from catalogs.lookup import by_id, find
from catalogs.models import Table
from catalogs.services import finding
from catalogs.services.changes import require_enabled
from catalogs.services.claims import claim, lock_claims
from catalogs.services.free_names import require_free
from catalogs.services.holding import Locks, write_to
from catalogs.services.opening import files_of
from catalogs.table_stores import TableRecord
from metalake.errors import Invalid, OutcomeUnknown
from metalake.events import event_of, record, stands
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from providers.metadata_files import METADATA, MetadataFiles

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def find_table(actor: Actor, ident: Address) -> Located:
    return require_table(actor, find(actor, ident))


def require_table(actor: Actor, located: Located) -> Located:
    """The located object if it is a table. Raises NotFound otherwise."""
    return finding.of_kind(actor, located, Kind.TABLE)


def located_now(table: Located) -> Located:
    """The table, found again by its id, with its present names. Raises NotFound."""
    fresh = by_id(table.id)
    if fresh is None:
        raise table.missing()
    return fresh


def current_record(located: Located) -> TableRecord:
    location = located.metadata_location or ""
    content = METADATA.get(located.catalog.id, location)
    if content is None:
        content = files_of(located).read(location)
    return TableRecord(located, location, content)


def require_home(actor: Actor, ident: Address, asks: Operation = operations.CREATE_TABLE) -> Located:
    """The schema to create something in, after checking the right. A hidden one is answered like a missing one."""
    return _as_home(actor, find(actor, ident.of_schema()), asks)


def _as_home(actor: Actor, home: Located, asks: Operation) -> Located:
    policy.require(actor, asks, home)
    require_enabled(home)
    return home


def meet_home(actor: Actor, ident: Address, asks: Operation = operations.CREATE_TABLE) -> Located:
    """As `require_home`, but a schema without a row is looked up in its own system. Not for use in a transaction."""
    return _as_home(actor, finding.find_schema(actor, ident), asks)


def insert_table(
    actor: Actor,
    ident: Address,
    home: Located,
    own_files: MetadataFiles,
    metadata: dict[str, Any],
    fact: str,
    fresh: Collection[str] = (),
) -> TableRecord:
    """Write the first metadata file, then the row that points to it."""
    written, content = own_files.write(metadata, None)
    publish = partial(publish_table, actor, ident, home, own_files, metadata, written, fact, fresh)
    return TableRecord(publish_or_discard(own_files, written, publish), written, content)


def publish_table(
    actor: Actor,
    ident: Address,
    home: Located,
    own_files: MetadataFiles,
    metadata: dict[str, Any],
    metadata_location: str,
    fact: str,
    fresh: Collection[str] = (),
) -> Located:
    """Insert the row with its owner, audit, claims and event, in the schema that the metadata was made for.

    `fresh` are new places with unique names. Raises NotFound if another schema has the schema's name by now.
    """
    name, home_id = ident.leaf or "", home.id

    def locate(actor: Actor) -> Locks:
        home = require_home(actor, ident)
        if home.id != home_id:
            raise home.missing()
        return [(home, Lock.HANGS)]

    def act(actor: Actor, home: Located) -> Located:
        require_free(home, name)
        row = _insert_row(actor, home, name, metadata, metadata_location)
        claim(actor, own_files, row.id, own_files.claims(metadata), fresh=fresh)
        full_name = [home.catalog.name, home.path.logical(), name]
        details = {"facts": [stands(row)], "uuid": metadata["table-uuid"]}
        record(event_of(actor, fact, Kind.TABLE, row.id, full_name, home.metalake.id, **details))
        return find(actor, ident)

    turn, owner = partial(lock_claims, own_files.catalog_id), partial(hold_owner, actor.id)
    return write_to(actor, locate, act, kind=Kind.TABLE, before=turn, after=owner)


def _insert_row(actor: Actor, home: Located, name: str, metadata: dict[str, Any], metadata_location: str) -> Table:
    """Insert the table's row. Raises Invalid if the metadata has no uuid, or one that is registered already."""
    row = Table.made(
        Kind.TABLE,
        name,
        home,
        owner_user_id=account_of(actor),
        creator=actor.name,
        metadata_location=metadata_location,
        uuid=_uuid_of(metadata),
    )
    if Table.objects.filter(uuid=row.uuid).exists():
        raise Invalid("A table with this uuid is registered already.", kind=Kind.TABLE)
    row.save(force_insert=True)
    return row


def _uuid_of(metadata: dict[str, Any]) -> UUID:
    """The table's uuid, which format version 1 may leave out. Raises Invalid if it is missing or malformed."""
    uuid = metadata.get("table-uuid")
    if not isinstance(uuid, str) or not _UUID.fullmatch(uuid):
        raise Invalid("The metadata must have a table-uuid that is a UUID.", kind="metadata-file")
    return UUID(uuid)


def publish_or_discard(own_files: MetadataFiles, written: str, publish: Callable[[], Any]) -> Any:
    """Run `publish`; if it certainly failed, remove the written file, to which nothing points then."""
    try:
        return publish()
    except OutcomeUnknown:
        raise
    except Exception:
        own_files.discard(written)
        raise


def now_ms() -> int:
    return int(time.time() * 1000)
