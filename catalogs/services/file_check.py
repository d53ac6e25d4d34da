"""Check that managed tables and views have their metadata files, for operators after a restore."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from catalogs.lookup import by_id
from catalogs.models import Catalog
from catalogs.services.provider_of import files_in
from catalogs.services.table_files import metadata_at, pointer_models, uuid_in
from catalogs.stores import keeps_tables_here
from formats.iceberg.locations import is_local, real_path
from metalake.errors import MetalakeError
from metalake.full_names import dotted
from metalake.models import below

BATCH = 500


@dataclass(frozen=True)
class Checked:
    """A checked table or view; `wrong` is the problem with its metadata file, or None."""

    object_id: int
    wrong: str | None

    @property
    def full_name(self) -> str:
        located = by_id(self.object_id)
        return dotted(located.full_name) if located else "one that was dropped meanwhile"


def full_name(catalog: Catalog) -> str:
    assert catalog.parent is not None
    return dotted([catalog.parent.name, catalog.name])


def managed_catalogs(metalake: str | None = None, name: str | None = None) -> Iterator[Catalog]:
    """The catalogs with managed tables, by name; no secret is decrypted.

    Skips catalogs whose provider is no longer installed, so that they cannot prevent a server from starting.
    """
    wanted = {key: value for key, value in (("parent__name", metalake), ("name", name)) if value}
    for row in Catalog.objects.filter(**wanted).select_related("parent").order_by("parent__name", "name"):
        if keeps_tables_here(row):
            yield row


def check_tables(catalog: Catalog) -> Iterator[Checked]:
    """Check each table and view of a catalog; metadata files are read from storage, not from the cache."""
    own_files = files_in(catalog)
    for kind, model in pointer_models().items():
        rows = model._default_manager.filter(below(catalog.lineage)).order_by("pk")
        for pk, uuid, location in rows.values_list("pk", "uuid", "metadata_location").iterator(BATCH):
            try:
                is_own = uuid_in(metadata_at(own_files, location, kind), kind) == str(uuid)
                wrong = None if is_own else f"{location} is another {kind}'s."
            except MetalakeError as failure:
                wrong = failure.message
            yield Checked(pk, wrong)


def missing_warehouses() -> Iterator[tuple[str, str]]:
    """Catalogs with tables or views whose warehouse is a local folder that does not exist: full name and folder."""
    for row in managed_catalogs():
        warehouse = row.properties.get("warehouse", "")
        if not is_local(warehouse) or os.path.isdir(folder := real_path(warehouse)):
            continue
        if any(model._default_manager.filter(below(row.lineage)).exists() for model in pointer_models().values()):
            yield full_name(row), folder
