"""Tables on the native wire."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Any

from authz.actor import Actor
from catalogs.replies import Identifier, TableReply, as_sent, identifiers, table_reply
from catalogs.services import tables
from catalogs.table_stores import TableRecord
from formats.native.tables import CreateTableRequest, RenameTable, TableUpdatesRequest
from metalake.errors import Invalid, NotFound
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.privileges import Privilege
from metalake.rest.views import Endpoint, answers
from metalake.wire import known_privilege


def shown(record: TableRecord) -> dict[str, Any]:
    parts, audit = tables.native_parts(record), tables.load_audit(record)
    return table_reply(record.published.nodes[-1].name, parts, audit)


class Tables(Endpoint):
    @answers("list_tables", reply={"identifiers": list[Identifier]}, query=("refresh",), looks_up=attrgetter("address"))
    def get(self, actor: Actor, metalake: str, catalog: str, schema: str) -> dict[str, Any]:
        """List the tables of a schema; with refresh, an outside catalog is asked whatever it said lately."""
        listed = tables.list_tables(actor, self.address, refresh=self.flag("refresh"))
        self.taken_at = listed.taken_at
        return {"identifiers": identifiers([metalake, catalog, schema], listed.names)}

    @answers("create_table", body=CreateTableRequest, reply={"table": TableReply})
    def post(self, actor: Actor, metalake: str, catalog: str, schema: str, body: CreateTableRequest) -> dict[str, Any]:
        """Create a table; its property `location` chooses where it lies.

        Its properties are answered as they were sent; loading it shows those that it got.
        """
        made = tables.create_native_table(
            actor, Address(metalake=metalake, catalog=catalog, schema=schema, leaf=body.name), body
        )
        return {"table": as_sent(shown(made), body.properties)}


class Table(Endpoint):
    @answers(
        "load_table",
        reply={"table": TableReply},
        query=("privileges", "refresh"),
        looks_up=attrgetter("address"),
    )
    def get(self, actor: Actor, metalake: str, catalog: str, schema: str, table: str) -> dict[str, Any]:
        """Load a table, if the caller holds every privilege that is asked for."""
        record = tables.load_table(actor, self.address, holding=self._asked_privileges(), refresh=self.flag("refresh"))
        self.taken_at = record.taken_at
        return {"table": shown(record)}

    def _asked_privileges(self) -> list[Privilege]:
        names = [name.strip() for name in (self.text("privileges") or "").split(",")]
        return [known_privilege(name) for name in names if name]

    @answers("alter_table", body=TableUpdatesRequest, reply={"table": TableReply})
    def put(
        self, actor: Actor, metalake: str, catalog: str, schema: str, table: str, body: TableUpdatesRequest
    ) -> dict[str, Any]:
        """Change a table, all of it or nothing; a rename comes alone."""
        ident = Address(metalake=metalake, catalog=catalog, schema=schema, leaf=table)
        if any(isinstance(update, RenameTable) for update in body.updates):
            return {"table": shown(_renamed(actor, ident, body))}
        return {"table": shown(tables.alter_native_table(actor, ident, body.updates))}

    @answers("drop_table", reply={"dropped": bool}, query=("purge",))
    def delete(self, actor: Actor, metalake: str, catalog: str, schema: str, table: str) -> dict[str, Any]:
        """Drop a table; with purge, its files are deleted in the background.

        X-Metalake-Files-Kept says why a metastore was not told to delete the files of a managed table.
        """
        try:
            self.files_kept = tables.drop_table(
                actor, Address(metalake=metalake, catalog=catalog, schema=schema, leaf=table), purge=self.flag("purge")
            )
        except NotFound as miss:
            if miss.kind != Kind.TABLE:
                raise
            return {"dropped": False}
        return {"dropped": True}


def _renamed(actor: Actor, ident: Address, body: TableUpdatesRequest) -> TableRecord:
    """The name is in our database and the rest in a file: two stores cannot be changed as one."""
    if len(body.updates) > 1:
        raise Invalid("updates: a rename cannot be combined with other changes", kind="table")
    (rename,) = body.updates
    assert isinstance(rename, RenameTable)
    target = replace(ident, schema=rename.new_schema_name or ident.schema, leaf=rename.new_name)
    return tables.rename_native_table(actor, ident, target)
