"""Check that managed tables have their metadata files, for operators after a restore."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from catalogs.lookup import by_id
from catalogs.models import Catalog, Table
from catalogs.services.opening import files_in
from catalogs.stores import keeps_tables_here
from formats.iceberg import files, metadata_json
from formats.iceberg.locations import is_local, real_path
from metalake.errors import MetalakeError
from metalake.models import below
from metalake.names import dotted

BATCH = 500


@dataclass(frozen=True)
class Checked:
    """A checked table; `wrong` says what is wrong with its metadata file, None if nothing is."""

    table_id: int
    wrong: str | None

    @property
    def full_name(self) -> str:
        located = by_id(self.table_id)
        return dotted(located.full_name) if located else "a table that was dropped meanwhile"


def full_name(catalog: Catalog) -> str:
    assert catalog.parent is not None
    return dotted([catalog.parent.name, catalog.name])


def managed_catalogs(metalake: str | None = None, name: str | None = None) -> Iterator[Catalog]:
    """The catalogs with managed tables, in order of name; no secret is opened.

    Catalogs whose provider is not installed any more are left out, so that they do not keep a server from starting.
    """
    wanted = {key: value for key, value in (("parent__name", metalake), ("name", name)) if value}
    for row in Catalog.objects.filter(**wanted).select_related("parent").order_by("parent__name", "name"):
        if keeps_tables_here(row):
            yield row


def check_tables(catalog: Catalog) -> Iterator[Checked]:
    """Check each table of a catalog; its metadata file is read from the storage, not from the cache."""
    own_files = files_in(catalog)
    tables = Table.objects.filter(below(catalog.lineage)).order_by("pk")
    for pk, uuid, location in tables.values_list("pk", "uuid", "metadata_location").iterator(BATCH):
        try:
            metadata = metadata_json.parse_metadata(files.read_metadata(own_files.io, location))
            wrong = None if metadata.get("table-uuid") == str(uuid) else f"{location} is another table's."
        except MetalakeError as failure:
            wrong = failure.message
        yield Checked(pk, wrong)


def missing_warehouses() -> Iterator[tuple[str, str]]:
    """Catalogs with tables whose warehouse is a local folder that does not exist: full name and folder."""
    for row in managed_catalogs():
        warehouse = row.properties.get("warehouse", "")
        if not is_local(warehouse) or os.path.isdir(folder := real_path(warehouse)):
            continue
        if Table.objects.filter(below(row.lineage)).exists():
            yield full_name(row), folder
