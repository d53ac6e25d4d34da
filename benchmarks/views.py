"""Views for the programs that measure them: a catalog of each storage, and views as real ones are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from authz.actor import Actor

PROVIDERS = "half=tests.providers.half:HalfMemoryProvider"  # it offers no views, so that Metalake stores them
ROWS = "rows"  # the name of its catalog

COLUMNS = [{"name": f"column_{number}", "type": "string"} for number in range(30)]
SQL = f"SELECT {', '.join(column['name'] for column in COLUMNS)} FROM flights WHERE cancelled"


def catalog_of_rows(owner: Actor) -> None:
    """A catalog of the same metalake whose views are rows of our database."""
    from benchmarks.outside import outside_catalog

    outside_catalog(owner, ROWS, "half", world=str(Path(os.environ["METALAKE_HOME"]) / "world.json"))


def schema_in(owner: Actor, catalog: str, name: str) -> int:
    """A new schema; its id."""
    from benchmarks.population import METALAKE
    from catalogs.services import schemas
    from metalake.lineage import Address

    return schemas.create_schema(owner, Address(metalake=METALAKE, catalog=catalog, schema=name), None, {}).row.pk


def create_request(name: str) -> dict[str, Any]:
    """The body that creates a view of thirty columns in two dialects."""
    dialects = [{"type": "sql", "dialect": dialect, "sql": SQL} for dialect in ("spark", "trino")]
    return {"name": name, "columns": COLUMNS, "representations": dialects}


def make_view(owner: Actor, catalog: str, schema: str, name: str, versions: int = 1) -> None:
    """A view that was altered until it has so many versions."""
    from benchmarks.population import METALAKE
    from formats.native.views import CreateViewRequest, ViewUpdatesRequest
    from metalake.kinds import Kind
    from metalake.lineage import Address
    from views_mgmt.services import views

    address = Address(metalake=METALAKE, catalog=catalog, schema=schema, leaf=name, leaf_kind=Kind.VIEW)
    views.create_view(owner, address, CreateViewRequest.model_validate(create_request(name)))
    for number in range(2, versions + 1):
        comment = {"@type": "updateComment", "newComment": f"version {number}"}
        views.alter_view(owner, address, ViewUpdatesRequest.model_validate({"updates": [comment]}).updates)


def fill_with_views(schema_id: int, names: list[str]) -> list[int]:
    """Views with one version each, in bulk, without metadata files; their ids."""
    from authz.models import User
    from benchmarks.population import batches, children
    from formats.native.views import CreateViewRequest
    from metalake.kinds import Kind
    from metalake.models import Securable
    from views_mgmt.models import ViewMeta, ViewVersion

    parent = Securable.objects.get(pk=schema_id)
    ids = children(parent, names, Kind.VIEW, User.objects.get(username="admin"))
    metalake_id, catalog_id = parent.lineage_ids[:2]
    place = {"metalake_id": metalake_id, "catalog_id": catalog_id, "schema_id": schema_id}
    fields = ViewVersion.fields_of(CreateViewRequest.model_validate(create_request("any")).definition())
    for some in batches(zip(ids, names, strict=True), 1000):
        metas = [
            ViewMeta(view_id=pk, view_name=name, engine="metalake", format="metalake", **place) for pk, name in some
        ]
        ViewMeta.objects.bulk_create(metas)
        ViewVersion.objects.bulk_create(ViewVersion(view=meta, version=1, **place, **fields) for meta in metas)
    return ids
