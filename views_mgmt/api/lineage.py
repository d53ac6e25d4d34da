"""What views read, and who reads an object. Not part of upstream's wire."""

from __future__ import annotations

from typing import Any, Literal

from authz.actor import Actor
from metalake.full_names import dotted
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.rest.views import Endpoint, answers
from metalake.wire import Reply
from views_mgmt.api.views import address_of
from views_mgmt.services import lineage
from views_mgmt.services.lineage import Link


class ColumnLink(Reply):
    """A column of the view, and a column of the object that it is made of."""

    column: str
    made_of: str


class LinkReply(Reply):
    """That a view reads an object; `level` is 1 for the object of the request, and one more for each view between.

    `type` and `fullName` are null for what does not exist or may not be loaded; `names` are what the SQL calls it.
    """

    view: str
    names: list[str]
    type: Literal["table", "view"] | None
    full_name: str | None
    level: int
    dialects: list[str]
    columns: list[ColumnLink]


class ViewLineage(Endpoint):
    @answers("load_view", reply={"reads": list[LinkReply], "readBy": list[LinkReply]}, id="load_view_lineage")
    def get(self, actor: Actor, metalake: str, catalog: str, schema: str, view: str) -> dict[str, Any]:
        """The tables and views that a view reads, and the views that read it, directly or by others."""
        address = address_of(metalake, catalog, schema, view)
        return {
            "reads": _replies(lineage.read_by(actor, address)),
            "readBy": _replies(lineage.readers_of(actor, address)),
        }


class TableLineage(Endpoint):
    @answers("load_table", reply={"readBy": list[LinkReply]}, id="load_table_lineage")
    def get(self, actor: Actor, metalake: str, catalog: str, schema: str, table: str) -> dict[str, Any]:
        """The views that read a table, directly or by others."""
        address = Address(metalake=metalake, catalog=catalog, schema=schema, leaf=table, leaf_kind=Kind.TABLE)
        return {"readBy": _replies(lineage.readers_of(actor, address))}


def _replies(links: list[Link]) -> list[dict[str, Any]]:
    return [
        {
            "view": dotted(each.view.full_name),
            "names": [each.names[0], HierarchicalSchema.from_physical(each.names[1]).logical(), each.names[2]],
            "type": None if each.target is None else each.target.kind,
            "fullName": None if each.target is None else dotted(each.target.full_name),
            "level": each.level,
            "dialects": list(each.dialects),
            "columns": [{"column": one, "madeOf": other} for one, other in each.columns],
        }
        for each in links
    ]
