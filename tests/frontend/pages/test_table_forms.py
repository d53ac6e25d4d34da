"""Making a table on a page: rows of columns, partitions and sorting, and each mistake at its row."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from catalogs.services import tables
from frontend.pages import table_forms
from metalake.errors import Conflict, NotFound
from metalake.kinds import Kind
from metalake.lineage import Address
from providers.base import Offer, Storage
from providers.table_shapes import shapes_of
from tests.demo import actor, give
from tests.frontend import hostile
from tests.frontend.conftest import add_outside, find, sign_in
from tests.frontend.test_pages import below, text
from tests.providers.world import World

Ids = dict[str, int]
Rows = list[dict[str, str]]


def typed(
    name: str, columns: Rows, partitioning: Rows | None = None, sorting: Rows | None = None, **more: str
) -> dict[str, str]:
    """What a browser sends of a form with these rows and an empty one in front of each part."""
    body = {"name": name, "comment": "", "properties": "", **more}
    for part, rows in (("columns", columns), ("partitioning", partitioning), ("sorting", sorting)):
        empty = {"how": "identity"} if part == "partitioning" else {"direction": "asc"} if part == "sorting" else {}
        every = [empty, *(rows or [])]
        body |= {f"{part}-TOTAL_FORMS": str(len(every)), f"{part}-INITIAL_FORMS": "0"}
        body |= {f"{part}-{number}-{key}": value for number, row in enumerate(every) for key, value in row.items()}
    return body


def column(name: str, type_: str = "long", **more: str) -> dict[str, str]:
    return {"name": name, "type": type_, **more}


def send(client: Client, path: str, body: dict[str, str]) -> tuple[int, str]:
    answer = client.post(path, body)
    return answer.status_code, answer.content.decode()


def error_at(page: str, field: str) -> str:
    shown = re.search(rf'id="id_{re.escape(field)}_error">([^<]*)<', page)
    assert shown, page
    return shown[1]


def parts_of(name: str, schema: tuple[str, ...] = ("orders", "eu"), catalog: str = "lake") -> dict[str, Any]:
    address = Address(metalake="demo", catalog=catalog, schema=schema, leaf=name)
    return tables.native_parts(tables.load_table(actor("admin"), address))


def test_a_table_is_made_of_rows(admin: Client, ids: Ids) -> None:
    path = f"/objects/{ids['eu']}/tables/new"
    assert f'href="{path}">New table</a>' in text(admin, f"/objects/{ids['eu']}")
    assert text(admin, path).count('name="columns-') == 5 * 4 + 4, "five rows, and the form of their number"
    columns = [
        column("id", required="on", comment="Its number"),
        column("at", "timestamp"),
        column("tags", "list<string>"),
        column("by.name", "map<string, decimal(10,2)>"),
    ]
    body = typed(
        "visits", columns,
        [{"column": "at", "how": "day"}, {"column": "id", "how": "bucket", "number": "8"}],
        [{"column": "id", "direction": "desc", "nulls": "nulls_first"}],
        comment="All visits", properties="owner-team=web",
    )  # fmt: skip
    answer = admin.post(path, body)
    made = find(Address(metalake="demo", catalog="lake", schema=("orders", "eu"), leaf="visits"))
    assert (answer.status_code, answer["Location"]) == (302, f"/objects/{made.id}")
    parts = parts_of("visits")
    assert [(each["name"], each["nullable"], each.get("comment")) for each in parts["columns"]] == [
        ("id", False, "Its number"), ("at", True, None), ("tags", True, None), ("by.name", True, None),
    ]  # fmt: skip
    assert parts["columns"][3]["type"]["valueType"] == "decimal(10,2)"
    assert [each["strategy"] for each in parts["partitioning"]] == ["day", "bucket"]
    assert parts["sortOrders"][0]["direction"] == "desc"
    assert (parts["comment"], parts["properties"]["owner-team"]) == ("All visits", "web")
    page = text(admin, answer["Location"])
    assert "Table visits is made, and you own it." in page


def test_each_mistake_stands_at_its_row_and_nothing_is_lost(admin: Client, ids: Ids) -> None:
    path = f"/objects/{ids['eu']}/tables/new"

    def wrong(field: str, columns: Rows, *more: Rows, name: str = "t", **rest: str) -> str:
        status, page = send(admin, path, typed(name, columns, *more) | {"comment": "Mine"} | rest)
        assert status == 422 and "Mine</textarea>" in page
        assert all(f'value="{row["name"]}"' in page for row in columns if row["name"].isalnum())
        return error_at(page, field)

    good = column("id")
    assert "no type &#x27;lnog&#x27;" in wrong("columns-2-type", [good, column("a", "lnog")])
    assert "precision of a decimal" in wrong("columns-1-type", [column("a", "decimal(99,1)")])
    assert "not JSON" in wrong("columns-1-type", [column("a", "{")])
    assert "Iceberg has no type byte; use integer" in wrong("columns-2-type", [good, column("a", "byte")])
    assert "required" in wrong("columns-1-type", [column("a", "")])
    assert "required" in wrong("columns-1-name", [column("", "long")])
    assert "needs a number" in wrong("partitioning-1-number", [good], [{"column": "id", "how": "bucket"}])
    assert "day cannot be applied" in wrong("partitioning-1-column", [good], [{"column": "id", "how": "day"}]).lower()
    assert "No column &#x27;x&#x27;" in wrong("sorting-1-column", [good], [], [{"column": "x", "direction": "asc"}])
    for body, says in (
        (typed("t", []), "at least one column"),
        (typed("t", [good, good]), "&#x27;id&#x27;"),
        (typed("sales", [good]), "already exists"),
        (typed("t", [good], properties="uuid=1"), "is reserved"),
        (typed("t", [good], properties="no line"), "not of the form"),
        (typed("", [good]), "required"),
        (typed("t", [good]) | {"columns-TOTAL_FORMS": "x"}, "tampered"),
    ):
        status, page = send(admin, path, body)
        assert status == 422 and says in page, (says, page)
    with pytest.raises(NotFound):
        parts_of("t")


def test_more_rows_check_nothing_and_keep_what_was_typed(admin: Client, ids: Ids) -> None:
    body = typed("", [column("only"), column("", "lnog")])
    status, page = send(admin, f"/objects/{ids['eu']}/tables/new", body | {"act": "more-columns"})
    assert status == 200 and 'value="lnog"' in page and "aria-invalid" not in page and "This field" not in page
    assert 'name="columns-TOTAL_FORMS" value="8"' in page and 'name="partitioning-TOTAL_FORMS" value="1"' in page
    huge = body | {"act": "more-columns", "columns-TOTAL_FORMS": "999"}
    page = send(admin, f"/objects/{ids['eu']}/tables/new", huge)[1]
    assert 'name="columns-TOTAL_FORMS" value="130"' in page and "at most 130 rows" in page


def test_hostile_names_of_columns_are_names_or_a_sentence(admin: Client, ids: Ids) -> None:
    path = f"/objects/{ids['eu']}/tables/new"
    status, page = send(admin, path, typed("odd", [column(each, comment=each) for each in hostile.ALL]))
    assert status == 302, page
    assert len(parts_of("odd")["columns"]) == len(hostile.ALL)
    status, page = send(admin, path, typed("odd", [column(each, each) for each in hostile.ALL]))
    assert status == 422 and page.count("There is no type") + page.count("The type is") == len(hostile.ALL)
    assert not any(each in page for each in hostile.PAYLOADS)
    made = find(Address(metalake="demo", catalog="lake", schema=("orders", "eu"), leaf="odd"))
    assert "<script>alert" not in text(admin, f"/objects/{made.id}")


def test_a_table_of_another_system_is_made_there(admin: Client, ids: Ids, world: World) -> None:
    station = add_outside(world)
    below(admin, station.id)
    weather = find(Address(metalake="demo", catalog="station", schema=("weather",)))
    path = f"/objects/{weather.id}/tables/new"
    assert send(admin, path, typed("rain", [column("mm", "double")]))[0] == 302
    assert parts_of("rain", ("weather",), "station")["columns"][0]["type"] == "double"
    world.fail("create_table", "denied")
    status, page = send(admin, path, typed("hail", [column("mm", "double")]))
    assert status == 422 and "Memory knows no such key." in page


@pytest.mark.store
def test_only_who_may_create_tables_makes_one(ids: Ids) -> None:
    path = f"/objects/{ids['eu']}/tables/new"
    rita = sign_in("rita")
    assert "New table" not in text(rita, f"/objects/{ids['eu']}")
    assert rita.get(path).status_code == rita.post(path, typed("t", [column("a")])).status_code == 403
    assert sign_in("mia").get(path).status_code == sign_in("otto").get(path).status_code == 404
    assert sign_in("admin").get(f"/objects/{ids['lake']}/tables/new").status_code == 404
    give("rita", Kind.SCHEMA, "lake.orders:eu", "create_table", role="maker")
    assert send(rita, path, typed("t", [column("a")]))[0] == 302


def test_what_a_store_cannot_do_is_declared_with_the_reason() -> None:
    hive = shapes_of(Offer(storage=Storage.EXTERNAL, formats=frozenset({"hive", "iceberg"})))
    assert list(hive) == ["iceberg", "hive"], "the one that most engines read comes first"
    assert hive["hive"].properties == {"table_type": "hive"} and "required" in hive["hive"].lacks
    database = shapes_of(Offer(storage=Storage.EXTERNAL, formats=frozenset({"postgresql"})))["postgresql"]
    assert {"partitioning", "sorting", "properties", "moving"} == set(database.lacks)
    managed = shapes_of(Offer(storage=Storage.MANAGED, formats=frozenset({"iceberg"})))["iceberg"]
    assert not managed.lacks and not managed.properties


# Altering


def add_wide(admin: Client, ids: Ids) -> str:
    """The page that alters the table `wide`, of the columns a, b and c."""
    rows = [column("a", "integer", comment="first"), column("b", "string"), column("c", "date", required="on")]
    assert send(admin, f"/objects/{ids['eu']}/tables/new", typed("wide", rows))[0] == 302
    wide = find(Address(metalake="demo", catalog="lake", schema=("orders", "eu"), leaf="wide"))
    return f"/objects/{wide.id}/columns/change"


def opened(client: Client, path: str) -> dict[str, str]:
    """The form's fields as a browser would send them untouched."""
    page = text(client, path)
    fields = dict(re.findall(r'<input type="(?:text|number|hidden)" name="([\w-]+)" value="([^"]*)"', page))
    ticked = re.findall(r'<input type="checkbox" name="([\w-]+)"[^>]*checked', page)
    return fields | dict.fromkeys(ticked, "on")


def test_columns_change_all_at_once_after_a_preview(admin: Client, ids: Ids) -> None:
    path = add_wide(admin, ids)
    assert f'href="{path}">Change columns' in text(admin, path.removesuffix("/columns/change"))
    body = opened(admin, path)
    assert (body["columns-0-was"], body["columns-2-required"], body["columns-0-comment"]) == ("a", "on", "first")
    same = send(admin, path, body | {"act": "preview"})[1]
    assert "Nothing differs" in same and 'value="apply"' not in same
    typed_now = {
        "columns-0-name": "id", "columns-0-type": "long", "columns-0-comment": "", "columns-1-drop": "on",
        "columns-2-place": "1", "columns-3-name": "b", "columns-3-type": "map<string,long>", "columns-3-comment": "new",
    }  # fmt: skip
    body |= typed_now
    del body["columns-2-required"]
    status, page = send(admin, path, body | {"act": "preview"})
    said = re.findall(r"<li>([^<]*)</li>", page.partition('class="notes"')[2].partition("</ol>")[0])
    assert status == 200 and said == [
        "Column b is dropped.",
        "Column a is renamed to id.",
        "The type of id changes from integer to long.",
        "The comment of id is removed.",
        "Column c becomes optional.",
        "Column b is added, of type map&lt;string, long&gt;.",
        "Column c moves to the beginning.",
    ]
    assert [each["name"] for each in parts_of("wide")["columns"]] == ["a", "b", "c"], "nothing is made by a look"
    back = send(admin, path, body | {"act": "edit"})[1]
    assert 'name="columns-0-name" value="id"' in back
    assert send(admin, path, body | {"act": "apply"})[0] == 302
    made = [(each["name"], each["type"], each["nullable"]) for each in parts_of("wide")["columns"]]
    assert [each[0] for each in made] == ["c", "id", "b"] and made[1] == ("id", "long", True) and made[0][2]


def test_a_table_that_changed_meanwhile_is_refused_with_the_input_kept(admin: Client, ids: Ids) -> None:
    path = add_wide(admin, ids)
    mine, other = opened(admin, path), opened(admin, path)
    assert send(admin, path, other | {"columns-1-name": "bee", "act": "apply"})[0] == 302
    for act in ("preview", "apply"):
        status, page = send(admin, path, mine | {"columns-0-name": "mine", "act": act})
        assert status == 422 and "changed by somebody else" in page and 'value="mine"' in page
    address = Address(metalake="demo", catalog="lake", schema=("orders", "eu"), leaf="wide")
    with pytest.raises(Conflict, match="changed meanwhile"):
        tables.alter_native_table(actor("admin"), address, [], mine["since"])


def test_a_change_that_cannot_be_made_stands_at_its_row(admin: Client, ids: Ids) -> None:
    path = add_wide(admin, ids)
    body = opened(admin, path)

    def wrong(field: str, **more: str) -> str:
        status, page = send(admin, path, body | {"act": "apply"} | {k.replace("_", "-"): v for k, v in more.items()})
        assert status == 422, page
        return error_at(page, field)

    assert "string" in wrong("columns-1-type", columns_1_type="long")
    assert "another column" in wrong("columns-0-name", columns_0_name="b", columns_1_name="a")
    assert "no type" in wrong("columns-3-type", columns_3_name="x", columns_3_type="lnog")
    assert "required" in wrong("columns-3-type", columns_3_name="x")
    assert wrong("columns-1-required", columns_1_required="on")
    for name in hostile.SOME:
        assert send(admin, path, body | {"act": "preview", "columns-0-name": name})[0] == 200
        assert name not in send(admin, path, body | {"act": "preview", "columns-0-name": name})[1]
    chain = {"columns-0-name": "b", "columns-1-name": "z", "act": "apply"}
    assert send(admin, path, body | chain)[0] == 302, "a name that becomes free is free"
    assert [each["name"] for each in parts_of("wide")["columns"]] == ["b", "z", "c"]


def test_a_wide_table_changes_page_by_page(admin: Client, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    path = add_wide(admin, ids)
    monkeypatch.setattr(table_forms, "AT_ONCE", 2)
    assert 'value="b"' in text(admin, path) and 'value="c"' not in text(admin, path)
    body = opened(admin, f"{path}?after=2")
    assert body["columns-0-was"] == "c" and "moved over the APIs" in text(admin, path)
    assert send(admin, f"{path}?after=2", body | {"columns-0-name": "see", "act": "apply"})[0] == 302
    assert [each["name"] for each in parts_of("wide")["columns"]] == ["a", "b", "see"]


def test_columns_of_another_system_change_there(admin: Client, ids: Ids, world: World) -> None:
    station = add_outside(world)
    below(admin, station.id)
    below(admin, find(Address(metalake="demo", catalog="station", schema=("weather",))).id)
    winds = find(Address(metalake="demo", catalog="station", schema=("weather",), leaf="winds"))
    path = f"/objects/{winds.id}/columns/change"
    body = opened(admin, path)
    status, page = send(admin, path, body | {"columns-0-comment": "in knots", "act": "apply"})
    assert status == 422 and "Memory cannot change that." in page and 'value="in knots"' in page
    assert send(admin, path, body | {"columns-0-name": "knots", "act": "apply"})[0] == 302
    assert parts_of("winds", ("weather",), "station")["columns"][0]["name"] == "knots"
    status, page = send(admin, path, body | {"columns-0-name": "again", "act": "apply"})
    assert status == 422 and "changed by somebody else" in page


@pytest.mark.store
def test_only_who_may_alter_a_table_changes_its_columns(ids: Ids) -> None:
    path = f"/objects/{ids['sales']}/columns/change"
    rita = sign_in("rita")
    assert "Change columns" not in text(rita, f"/objects/{ids['sales']}")
    assert rita.get(path).status_code == rita.post(path, {"act": "apply"}).status_code == 403
    assert sign_in("mia").get(path).status_code == sign_in("otto").get(path).status_code == 404
    assert sign_in("admin").get(f"/objects/{ids['eu']}/columns/change").status_code == 404
