"""Managed schemas: one row for each level."""

from __future__ import annotations

from collections.abc import Callable

from authz import operations, policy
from authz.actor import Actor
from authz.locks import Lock
from catalogs import lookup
from catalogs.leaf_stores import asking_once
from catalogs.models import LEVELS, Schema
from catalogs.services import places, schema_paths
from catalogs.services.alterations import Alteration, event, require_enabled, row_of, save
from catalogs.services.cascade import remove
from catalogs.services.provider_of import provider_at
from catalogs.services.schema_paths import Chain
from catalogs.services.writes import Locks, write_to
from catalogs.stores import SchemaListing, SchemaRecord, SchemaStore, leaf_kinds, store_for
from metalake.errors import NotEmpty
from metalake.events import gone, record
from metalake.kinds import Kind
from metalake.lineage import Address, Located, SchemaName
from metalake.models import Securable
from providers.remote_objects import Levels, Remote


class ManagedSchemas(SchemaStore):
    """Schemas that are rows of our database."""

    def meet(self, actor: Actor, catalog: Located, name: SchemaName) -> bool:
        return False

    def listing(self, actor: Actor, container: Located, *, refresh: bool) -> SchemaListing:
        return SchemaListing()

    def load(
        self,
        actor: Actor,
        schema: Located,
        *,
        refresh: bool = False,
        as_published: bool = False,
        with_folder: bool = False,
    ) -> SchemaRecord:
        row = row_of(Schema, schema, "owner_user", "owner_group")
        folder = store_for(schema, Kind.TABLE).pointers.home_of(actor, schema, row.properties) if with_folder else None
        return SchemaRecord(schema.path, row, folder=folder)

    def require_there(self, actor: Actor, schema: Located) -> None:
        pass

    def levels(self, schema: Located) -> Levels:
        return provider_at(schema).names.levels_of(schema.path)

    def as_remote(self, actor: Actor, schema: Located, *, refresh: bool = False) -> Remote:
        row = row_of(Schema, schema)
        shown = {"comment": row.comment, "properties": row.properties}
        return Remote(LEVELS.join(self.levels(schema)), shown, kind=Kind.SCHEMA)

    def parents_to_lock(self, actor: Actor, catalog: Located, name: SchemaName) -> Locks:
        return [(schema_paths.may_create(actor, catalog, name).parent, Lock.HANGS)]

    def create(
        self,
        actor: Actor,
        address: Address,
        comment: str | None,
        properties: dict[str, str],
        catalog: Located,
        *parents: Located,
    ) -> Callable[[], SchemaRecord]:
        chain = Chain(catalog, schema_paths.path_in(catalog, address.schema or ""), *parents)
        places.check_choice(catalog, chain.path, {}, properties)
        made = SchemaRecord(chain.path, schema_paths.make(actor, chain, comment, properties)[-1])
        return lambda: made

    def alter(
        self, actor: Actor, address: Address, schema: Located, alteration: Alteration
    ) -> tuple[SchemaRecord, dict[str, str]]:
        def locate(actor: Actor) -> Locks:
            fresh = lookup.find(actor, address)
            policy.require(actor, operations.ALTER_SCHEMA, fresh)
            require_enabled(fresh)
            return [(fresh, Lock.CHANGES)]

        def act(actor: Actor, fresh: Located) -> tuple[SchemaRecord, dict[str, str]]:
            row = row_of(Schema, fresh)
            before = dict(row.properties)
            fields = alteration.apply_to(row)
            places.require_choice(actor, fresh, before, row.properties)
            places.check_choice(fresh, fresh.path, before, row.properties)
            if fields:
                save(row, actor, fields)
                changed = sorted(set(before) ^ set(row.properties)) or sorted(fields)
                record(event(actor, "schema.altered", fresh, changed=changed))
            return SchemaRecord(fresh.path, row), before

        return write_to(actor, locate, act, kind=Kind.SCHEMA)

    def drop(self, actor: Actor, address: Address, schema: Located, *, cascade: bool) -> str | None:
        """Drop the schema; a cascade does not drop objects in it that lie in another system."""
        with asking_once():
            for kind in leaf_kinds(schema):
                store_for(schema, kind).listing(actor, schema, refresh=True)
        takes_all = cascade and not store_for(schema, Kind.CATALOG).is_mirrored

        def locate(actor: Actor) -> Locks:
            fresh = lookup.find(actor, address)
            policy.require(actor, operations.DROP_SCHEMA, fresh)
            require_enabled(fresh)
            schema_paths.check_cascade(fresh, cascade)
            return [(fresh, Lock.MOVES)]

        def act(actor: Actor, fresh: Located) -> None:
            if not takes_all and Securable.objects.filter(parent_id=fresh.id).exists():
                raise NotEmpty(f"Schema {fresh.path.logical()} is not empty.", kind=Kind.SCHEMA)
            remove(fresh)
            record(event(actor, "schema.dropped", fresh, [gone(fresh.id)], cascade=cascade))

        write_to(actor, locate, act, kind=Kind.SCHEMA)
        return None
