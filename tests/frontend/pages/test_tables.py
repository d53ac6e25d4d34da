"""The tabs of a table: its columns, its snapshots and schemas, here and in outside systems."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from catalogs.services import commits, tables
from catalogs.table_stores import TableDraft
from frontend.pages import tables as pages
from metalake.lineage import Address
from tests.demo import actor
from tests.formats.iceberg.table_samples import add, column, list_of, point, schema, snapshot, struct
from tests.frontend.conftest import add_outside, find, sign_in
from tests.frontend.test_pages import below, text
from tests.providers.world import World

Ids = dict[str, int]
HOMES = list_of(3, struct(column(4, "street", "string", doc="with its number"), column(5, "zip", "string")))


def add_wide_table(*columns: dict[str, Any]) -> tuple[Address, int]:
    address = Address(metalake="demo", catalog="lake", schema=("orders", "eu"), leaf="wide")
    tables.create_table(actor("admin"), address, TableDraft(schema(*columns), None, None, {}))
    return address, find(address).id


def test_nested_columns_are_rows_of_their_own(admin: Client, ids: Ids) -> None:
    _, id = add_wide_table(column(1, "id", required=True), column(2, "homes", HOMES))
    page = text(admin, f"/objects/{id}/columns")
    for expected in ("<code>list&lt;struct&gt;</code>", '<span class="hide">homes.</span>street', "with its number"):
        assert expected in page
    assert 'aria-current="page">Columns' in page


def test_many_columns_are_filtered_and_come_in_pages(admin: Client, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "COLUMNS_SHOWN", 10)
    _, id = add_wide_table(*(column(number + 1, f"c{number:02}") for number in range(25)))
    at = f"/objects/{id}/columns"
    first = text(admin, at)
    assert "c09" in first and "c10" not in first and f"{at}?after=10" in first
    last = text(admin, f"{at}?after=20")
    assert "c24" in last and "after=30" not in last
    some = text(admin, f"{at}?q=C1")
    assert "10 columns" in some and "c19" in some and "c20" not in some
    assert "No column has “&lt;b&gt;” in its name." in text(admin, f"{at}?q=%3Cb%3E")
    for query in ("after=x", "after=-1", f"after={'9' * 5000}", "after=999999"):
        text(admin, f"{at}?{query}")


def test_snapshots_and_schemas_of_an_iceberg_table(admin: Client, ids: Ids) -> None:
    address, id = add_wide_table(column(1, "id"))
    page = text(admin, f"/objects/{id}/snapshots")
    assert "It has no snapshot yet" in page
    assert "It has no snapshot yet" in text(admin, f"/objects/{id}")
    summary = {"operation": "append", "added-records": "1200", "total-records": "34567", "total-data-files": "2"}
    first = snapshot(7, sequence=1, summary=summary, **{"timestamp-ms": 1_900_000_000_000})
    second = snapshot(8, sequence=2, parent=7, summary=summary, **{"schema-id": 1, "timestamp-ms": 1_900_000_100_000})
    wider = schema(column(1, "id"), column(2, "<b>"))
    admin_now = actor("admin")
    commits.commit_table(admin_now, address, [], [add(first), point("main", 7)])
    commits.commit_table(admin_now, address, [], [{"action": "add-schema", "schema": wider}])
    commits.commit_table(admin_now, address, [], [add(second), point("main", 8)])
    page = text(admin, f"/objects/{id}")
    for expected in ("34,567", "in 2 files", "its writer did not sum it up", "2030-03-17 17:48"):
        assert expected in page, expected
    assert page.index("Contents</h2>") < page.index("<h2>Columns") < page.index("<h2>About")
    page = text(admin, f"/objects/{id}/snapshots")
    for expected in ("34,567", "+1,200", "append", "<code>8</code>", "after <code>7</code>", "2030-03-17 17:46"):
        assert expected in page, expected
    assert "Schema: added &lt;b&gt; long" in page


def test_a_table_outside_shows_what_its_system_says(admin: Client, ids: Ids, world: World) -> None:
    station = add_outside(world)
    below(admin, station.id)  # which makes the rows
    weather = find(Address(metalake="demo", catalog="station", schema=("weather",)))
    below(admin, weather.id)
    winds = find(Address(metalake="demo", catalog="station", schema=("weather",), leaf="winds"))
    assert "Columns" in text(admin, f"/objects/{winds.id}/columns")
    assert "Only Iceberg tables have snapshots" in text(admin, f"/objects/{winds.id}/snapshots")
    world.fail("load_table", *["denied"] * 9)
    assert "They cannot be read now." in text(admin, f"/objects/{winds.id}/snapshots")


@pytest.mark.parametrize("tab", ["columns", "snapshots"])
def test_tabs_are_for_the_kinds_that_have_them_and_for_who_may_load(admin: Client, ids: Ids, tab: str) -> None:
    missing = text(admin, f"/objects/4611686018427387904/{tab}", 404)
    assert text(admin, f"/objects/{ids['eu']}/{tab}", 404) == missing
    mia = sign_in("mia")
    assert text(mia, f"/objects/{ids['sales']}/{tab}", 404) == text(mia, f"/objects/4611686018427387904/{tab}", 404)
