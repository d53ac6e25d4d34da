"""Former places of tables and reserved places, as resources of the native wire. Not part of upstream's wire."""

from __future__ import annotations

from typing import Any

from authz.actor import Actor
from catalogs.services import place_release
from metalake.lineage import Address
from metalake.rest.replies import moment_text
from metalake.rest.views import Endpoint, answers
from metalake.wire import Reply


class TablePlaceReply(Reply):
    """A place of a table, and since when it is a former one; the table writes to the others."""

    id: str
    location: str
    former_since: str | None = None


class ReservedPlaceReply(Reply):
    """A place of what was dropped without purge, by the name that it had."""

    id: str
    location: str
    type: str
    full_name: str
    dropped_at: str


class TablePlaces(Endpoint):
    @answers("release_places", id="listTablePlaces", reply={"places": list[TablePlaceReply]})
    def get(self, actor: Actor, metalake: str, catalog: str, schema: str, table: str) -> dict[str, Any]:
        """List the places of a table, those that it had before too."""
        rows = place_release.places_of(actor, Address(metalake=metalake, catalog=catalog, schema=schema, leaf=table))
        shown: list[dict[str, Any]] = [{"id": str(row.pk), "location": row.location} for row in rows]
        for row, each in zip(rows, shown, strict=True):
            if row.former_since:
                each["formerSince"] = moment_text(row.former_since)
        return {"places": shown}


class TablePlace(Endpoint):
    @answers("release_places", id="releaseTablePlace", reply={"released": bool})
    def delete(
        self, actor: Actor, metalake: str, catalog: str, schema: str, table: str, place_id: str
    ) -> dict[str, Any]:
        """Release a place that a table had before and has no live files in."""
        place_release.release_former(
            actor, Address(metalake=metalake, catalog=catalog, schema=schema, leaf=table), place_id
        )
        return {"released": True}


class ReservedPlaces(Endpoint):
    @answers("load_catalog", id="listReservedPlaces", reply={"places": list[ReservedPlaceReply]})
    def get(self, actor: Actor, metalake: str, catalog: str) -> dict[str, Any]:
        """List the places of what was dropped without purge: all to the catalog's owner, to others what was theirs."""
        return {
            "places": [
                {
                    "id": str(row.pk),
                    "location": row.location,
                    "type": row.kind,
                    "fullName": row.full_name,
                    "droppedAt": moment_text(row.dropped_at),
                }
                for row in place_release.reserved_in(actor, metalake, catalog)
            ]
        }


class ReservedPlace(Endpoint):
    @answers("load_catalog", id="releaseReservedPlace", reply={"released": bool})
    def delete(self, actor: Actor, metalake: str, catalog: str, place_id: str) -> dict[str, Any]:
        """Release a reserved place: the catalog's owner any, others what was theirs."""
        place_release.release_reserved(actor, metalake, catalog, place_id)
        return {"released": True}
