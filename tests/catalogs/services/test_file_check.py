"""After a restore: which tables have no metadata file where the store says, and which folders are missing."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.management import CommandError, call_command

from catalogs.models import Catalog, Table
from catalogs.services import shared_folders
from catalogs.services.file_check import managed_catalogs, missing_warehouses
from server.management.commands.serve import missing_folders
from tests.catalogs.callers import Caller

COLUMNS = [{"name": "id", "type": "long"}]
pytestmark = [pytest.mark.store, pytest.mark.django_db]


@pytest.fixture
def folder(admin: Caller, settings: Any, tmp_path: Path) -> Path:
    """The warehouses of a catalog with two tables and of one that has none."""
    settings.METALAKE_WAREHOUSE = f"file://{tmp_path / 'warehouse'}"
    at = "metalakes/demo/catalogs"
    for name in ("store", "empty"):
        admin.post(at, {"name": name, "type": "RELATIONAL", "provider": "lakehouse-iceberg", "properties": {}})[
            "catalog"
        ]
    admin.post(f"{at}/store/schemas", {"name": "sales"})["schema"]
    for name in ("orders", "returns"):
        admin.post(f"{at}/store/schemas/sales/tables", {"name": name, "columns": COLUMNS})["table"]
    return tmp_path / "warehouse"


def file_of(name: str) -> Path:
    return Path(urlsplit(Table.objects.get(name=name).metadata_location).path)


def checked(*arguments: str) -> str:
    out = StringIO()
    call_command("check_tables", *arguments, stdout=out)
    return out.getvalue()


def test_a_whole_store_is_said_to_be_whole(folder: Path) -> None:
    assert "demo.store: 2 tables and views, 0 that cannot be read" in checked()
    assert "Every table and view can be read." in checked("demo", "store")
    with pytest.raises(CommandError, match="no such catalog"):
        checked("demo", "nowhere")


def test_tables_without_their_files_are_named(folder: Path) -> None:
    file_of("orders").unlink()
    file_of("returns").write_text("{}")
    out = StringIO()
    with pytest.raises(CommandError, match=r"^2 tables or views cannot be read"):
        call_command("check_tables", stdout=out)
    assert "  store.sales.orders: Failed to open input stream" in out.getvalue()
    assert "  store.sales.returns: " in out.getvalue()


def test_a_start_names_the_folders_that_are_missing(folder: Path) -> None:
    assert list(missing_warehouses()) == []
    folder.rename(folder.with_name("moved"))
    (told,) = missing_folders()
    assert told.startswith("The tables of demo.store are in ")
    folder.symlink_to(folder.with_name("moved"))
    assert list(missing_warehouses()) == []
    assert "Every table and view can be read." in checked()


def test_a_catalog_whose_provider_is_not_here_any_more_keeps_no_server_from_starting(folder: Path) -> None:
    Catalog.objects.filter(name="empty").update(provider="gone")
    assert [row.name for row in managed_catalogs("demo")] == ["lake", "store"]
    assert list(missing_folders()) == []
    shared_folders.mark_used()
