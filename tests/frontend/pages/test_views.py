"""The pages of views: how one runs, its dialects, its versions, and making one."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from catalogs.services import schemas
from frontend import highlighting
from frontend.pages import view_versions
from frontend.version_diff import lines_of
from metalake.errors import Unsupported
from metalake.kinds import Kind
from metalake.lineage import Address
from providers import registry
from tests.demo import actor, add_member, give
from tests.frontend.conftest import add_outside, add_view, find, sign_in
from tests.frontend.test_pages import below, names, text
from tests.providers.world import World
from views_mgmt import versions
from views_mgmt.managed.views import ManagedViews
from views_mgmt.models import ViewVersion
from views_mgmt.services import lineage
from views_mgmt.services.lineage import Link

Ids = dict[str, int]
HX = {"HX-Request": "true"}
MISSING = 4611686018427387904


def latest(name: str = "totals") -> Any:
    address = Address(metalake="demo", catalog="notes", schema="eu", leaf=name, leaf_kind=Kind.VIEW)
    return versions.current(find(address))


@pytest.fixture
def notes(ids: Ids, world: World, monkeypatch: pytest.MonkeyPatch) -> int:
    """The schema eu of a catalog whose views Metalake stores itself, so that they have every part of a view."""
    monkeypatch.setitem(registry.PROVIDERS, "half", "tests.providers.half:HalfMemoryProvider")
    add_outside(world, "notes", "half")
    address = Address(metalake="demo", catalog="notes", schema="eu")
    schemas.create_schema(actor("admin"), address, None, {})
    return find(address).id


@pytest.fixture
def totals(notes: int) -> int:
    """A view that runs with the rights of whoever reads it, which rita may load; ina may alter it."""
    id = add_view("eu", "totals", catalog="notes", securityMode="INVOKER", comment="All of them")
    give("rita", Kind.CATALOG, "notes", "use_catalog")
    give("rita", Kind.SCHEMA, "notes.eu", "use_schema")
    give("rita", Kind.VIEW, "notes.eu.totals", "select_view")
    add_member("ina")
    give("ina", Kind.CATALOG, "notes", "use_catalog")
    give("ina", Kind.SCHEMA, "notes.eu", "use_schema")
    give("ina", Kind.VIEW, "notes.eu.totals", "alter_view")
    return id


def send(client: Client, id: int, sql: str, dialect: str = "trino", at: str = "", **fields: Any) -> Any:
    """Send the form of a dialect; `at` is the dialect that it was opened for."""
    sent = {"dialect": dialect, "sql": sql, "default_catalog": "", "default_schema": "", "since": 1, **fields}
    headers = fields.pop("headers", {})
    return client.post(f"/objects/{id}/dialects/change{f'?dialect={at}' if at else ''}", sent, headers=headers)


# The tree and the overview


def test_views_stand_in_the_tree_and_among_the_children(admin: Client, ids: Ids) -> None:
    id = add_view("orders", "eu", "totals", comment="All of them")
    assert names(below(admin, ids["eu"])) == ["sales", "totals"]
    assert 'href="#icon-view"' in below(admin, ids["eu"])
    page = text(admin, f"/objects/{ids['eu']}")
    assert "All of them" in page and f'href="/objects/{id}"' in page and "New view" in page
    rita = sign_in("rita")
    assert names(below(rita, ids["eu"])) == ["sales"]
    give("rita", Kind.VIEW, "lake.orders:eu.totals", "select_view")
    assert names(below(rita, ids["eu"])) == ["sales", "totals"]
    assert "New view" not in text(rita, f"/objects/{ids['eu']}")


def test_the_overview_says_how_a_view_runs(admin: Client, totals: int) -> None:
    page = text(admin, f"/objects/{totals}")
    for expected in (
        "INVOKER",
        "with the rights of whoever reads it",
        "spark",
        "amount",
        "All of them",
        "Last changed",
    ):
        assert (expected in page) == (expected != "Last changed"), expected
    definer = text(admin, f"/objects/{add_view('eu', 'owned', catalog='notes', securityMode='DEFINER')}")
    assert "DEFINER" in definer and "Only its owner may change its SQL" in definer


def test_a_view_that_cannot_be_read_says_what_is_wrong(
    admin: Client, totals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(*_: Any, **__: Any) -> Any:
        raise Unsupported("The view is written as <b> broken base64.")

    monkeypatch.setattr(ManagedViews, "load", unreadable)
    monkeypatch.setattr(ManagedViews, "describe", unreadable)
    for tab in ("", "/columns", "/dialects", "/dialects/change", "/versions", "/versions/compare"):
        assert "The view is written as &lt;b&gt; broken base64." in text(admin, f"/objects/{totals}{tab}"), tab
    assert "broken base64" in text(admin, f"/objects/{totals}/versions/roll-back?version=1")


def test_earlier_versions_of_a_view_that_cannot_be_read_are_shown(
    admin: Client, changed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(*_: Any, **__: Any) -> Any:
        raise Unsupported("The view is written as broken base64.")

    monkeypatch.setattr(ManagedViews, "load", unreadable)
    listed = text(admin, f"/objects/{changed}/versions")
    assert "broken base64" in listed and "It was made." in listed
    assert ">current<" not in listed and "roll-back?version" not in listed
    compared = text(admin, f"/objects/{changed}/versions/compare")
    assert "broken base64" in compared and "Version 2 → version 3" in compared
    ViewVersion.objects.all().delete()
    for page in ("versions", "versions/compare"):
        never_read = text(admin, f"/objects/{changed}/{page}")
        assert "broken base64" in never_read and "Compare" not in never_read and "→ version" not in never_read


@pytest.mark.parametrize(
    "page", ["dialects", "dialects/change", "versions", "versions/compare", "versions/roll-back?version=1"]
)
def test_a_hidden_view_is_a_missing_one(admin: Client, ids: Ids, totals: int, page: str) -> None:
    mia, missing = sign_in("mia"), text(admin, f"/objects/{MISSING}/{page}", 404)
    assert text(mia, f"/objects/{totals}/{page}", 404) == text(mia, f"/objects/{MISSING}/{page}", 404)
    assert text(admin, f"/objects/{ids['sales']}/{page}", 404) == missing, "a table has no such page"


def test_who_may_only_drop_a_view_learns_its_name(totals: int, notes: int) -> None:
    add_member("dora")
    give("dora", Kind.CATALOG, "notes", "use_catalog", "use_schema")
    give("dora", Kind.VIEW, "notes.eu.totals", "drop_view")
    dora = sign_in("dora")
    page = text(dora, f"/objects/{totals}")
    assert "You may know that it is there, and no more. Its details are for those with <code>select_view</code>" in page
    assert "All of them" not in page
    schema = text(dora, f"/objects/{notes}")
    assert "name only" in schema and "All of them" not in schema and "leads to something below" not in schema


def test_forms_about_a_hidden_view_are_answered_as_about_a_missing_one(
    admin: Client, notes: int, totals: int, ids: Ids
) -> None:
    mia = sign_in("mia")
    for path, sent in (
        ("dialects/change", {"dialect": "trino", "sql": "SELECT 1", "since": 1}),
        ("dialects/remove", {"dialect": "spark"}),
        ("versions/roll-back", {"version": 1, "since": 1}),
    ):
        statuses = {mia.post(f"/objects/{id}/{path}", sent).status_code for id in (totals, MISSING)}
        assert statuses == {404}, path
    assert mia.post(f"/objects/{notes}/views/new", {"name": "x"}).status_code == 404
    assert admin.post(f"/objects/{ids['lake']}/views/new", {"name": "x"}).status_code == 404


# Dialects


def test_a_dialect_is_added_updated_and_removed(totals: int) -> None:
    ina = sign_in("ina")
    assert "Add a dialect" in text(ina, f"/objects/{totals}/dialects/change")
    assert send(ina, totals, "SELECT 1\r\nAS amount", default_schema="eu").status_code == 302
    trino = latest().definition.in_dialect("trino")
    assert (trino.sql, trino.default_schema) == ("SELECT 1\nAS amount", "eu")
    form = text(ina, f"/objects/{totals}/dialects/change?dialect=trino")
    assert (
        "SELECT 1\nAS amount" in form
        and 'type="hidden" name="dialect" value="trino"' in form
        and "It becomes version 3" in form
    )
    answer = send(ina, totals, "SELECT 2 AS amount", at="trino", since=2, headers=HX)
    assert answer.status_code == 200 and answer.headers["HX-Redirect"] == f"/objects/{totals}/dialects"
    assert latest().definition.in_dialect("trino").sql == "SELECT 2 AS amount"
    page = text(ina, f"/objects/{totals}/dialects")
    assert "trino is updated." in page and "Remove spark now" in page
    assert ina.post(f"/objects/{totals}/dialects/remove", {"dialect": "spark"}).status_code == 302
    assert latest().definition.dialects == ["trino"]


def test_what_is_refused_keeps_what_was_typed(totals: int) -> None:
    ina = sign_in("ina")
    page = send(ina, totals, "SELECT <typed>", "SPARK")
    assert page.status_code == 422
    for expected in ("update it instead", "SELECT &lt;typed&gt;", "aria-current"):
        assert expected in page.content.decode(), expected
    blank = send(ina, totals, "", headers=HX).content.decode()
    assert "This field is required" in blank and 'id="id_sql-error" hx-swap-oob' in blank and "<html" not in blank
    large = send(ina, totals, "x" * (1024 * 1024 + 1), headers=HX)
    assert large.status_code == 422 and "1048577 bytes" in large.content.decode()
    assert "Null characters are not allowed." in send(ina, totals, "a\0b", headers=HX).content.decode()
    last = ina.post(f"/objects/{totals}/dialects/remove", {"dialect": "spark"})
    assert last.status_code == 422 and "only dialect" in last.content.decode()
    assert latest().version == 1


def test_a_form_that_was_opened_before_another_change_is_refused(totals: int) -> None:
    ina = sign_in("ina")
    assert send(ina, totals, "SELECT 1").status_code == 302
    late = send(ina, totals, "SELECT 0 AS amount", at="spark")
    assert late.status_code == 422 and "was changed after version 1" in late.content.decode()
    assert "SELECT 0 AS amount" in late.content.decode()
    assert latest().version == 2


def test_a_form_is_sent_again_after_a_new_sign_in(totals: int) -> None:
    answer = send(Client(), totals, "SELECT 7", "flink")
    assert answer.status_code == 302 and answer.headers["Location"].startswith("/login?next=")
    filled = text(sign_in("ina"), f"/objects/{totals}/dialects/change?dialect=flink&sql=SELECT+7&since=1")
    assert "SELECT 7" in filled and 'value="flink"' in filled


def test_line_breaks_of_a_query_stay_unless_it_is_changed(admin: Client, notes: int) -> None:
    sql = {"type": "sql", "dialect": "spark", "sql": "SELECT 1\r\nAS amount"}
    id = add_view("eu", "totals", catalog="notes", representations=[sql])
    assert send(admin, id, sql["sql"], "spark", at="spark", default_schema="eu").status_code == 302
    spark = latest().definition.in_dialect("spark")
    assert (spark.sql, spark.default_schema) == (sql["sql"], "eu")


def test_what_a_reader_may_not_do_is_said_with_why(totals: int) -> None:
    rita = sign_in("rita")
    page = text(rita, f"/objects/{totals}/dialects")
    assert "rita may not alter" in page and "Update" not in page and "Add a dialect" not in page
    assert "rita may not alter" in text(rita, f"/objects/{totals}/dialects/change")
    assert "It cannot be rolled back by you" in text(rita, f"/objects/{totals}/versions")
    refused = send(rita, totals, "SELECT 0", at="spark")
    assert refused.status_code == 422 and "rita may not alter" in refused.content.decode()


def test_only_its_owner_changes_a_definer_view(ids: Ids, totals: int) -> None:
    give("ina", Kind.SCHEMA, "notes.eu", "alter_view")
    id = add_view("eu", "owned", catalog="notes", securityMode="DEFINER")
    ina = sign_in("ina")
    page = text(ina, f"/objects/{id}/dialects")
    assert "its owner alone may change its SQL" in page and "Update" not in page
    refused = send(ina, id, "SELECT 0", at="spark", dialect="spark")
    assert refused.status_code == 422 and "its owner alone may change" in refused.content.decode()
    assert latest("owned").version == 1


def test_a_check_says_what_each_dialect_reads_and_yields(admin: Client, ids: Ids) -> None:
    wrong = {"type": "sql", "dialect": "flink", "sql": "SELECT amount, 1 AS one FROM nowhere"}
    spark = {"type": "sql", "dialect": "spark", "sql": "SELECT amount FROM sales"}
    id = add_view("orders", "eu", "totals", representations=[spark, wrong])
    assert "It yields the columns" not in text(admin, f"/objects/{id}/dialects")
    page = text(admin, f"/objects/{id}/dialects?check=all")
    assert "It yields the columns that the view declares." in page
    assert f'href="/objects/{ids["sales"]}"' in page
    for expected in ("It yields 2 columns instead of 1.", "nowhere", "It does not exist, or you may not load it."):
        assert expected in page, expected


def test_a_check_is_not_content_with_a_table_that_is_not_there(admin: Client) -> None:
    sql = "SELECT s.amount FROM sales s JOIN nowhere n ON s.amount = n.amount"
    joined = {"type": "sql", "dialect": "spark", "sql": sql}
    page = text(admin, f"/objects/{add_view('orders', 'eu', 'totals', representations=[joined])}/dialects?check=all")
    assert "Not everything that it reads is there, as far as you may see. Its columns are those" in page
    assert "note good" not in page


def test_a_translation_fills_the_form_and_stores_nothing(admin: Client, totals: int) -> None:
    path = f"/objects/{totals}/dialects/change"
    page = text(admin, f"{path}?dialect=trino&translate=spark")
    assert re.search(r"<textarea name=\"sql\"[^>]*>\s*SELECT\s+amount\s+FROM\s+sales", page), page
    assert "The form below has what spark becomes." in page and latest().version == 1
    assert "the view has no dialect" in text(admin, f"{path}?dialect=trino&translate=%3Cb%3E")


# Versions


@pytest.fixture
def changed(totals: int) -> int:
    """The view with three versions: spark alone, trino added, spark's SQL changed."""
    admin = sign_in("admin")
    send(admin, totals, "SELECT 1")
    send(admin, totals, "SELECT amount\nFROM sales\nWHERE amount > 0", "spark", at="spark", since=2)
    return totals


def test_versions_are_listed_in_pages(admin: Client, changed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    page = text(admin, f"/objects/{changed}/versions")
    for expected in ("trino added", "It was made.", f"/objects/{changed}/versions/roll-back?version=1", ">current<"):
        assert expected in page, expected
    assert "roll-back?version=3" not in page
    monkeypatch.setattr(view_versions, "SHOWN", 2)
    first = text(admin, f"/objects/{changed}/versions")
    assert "It was made." not in first and f"/objects/{changed}/versions?before=2" in first
    assert "It was made." in text(admin, f"/objects/{changed}/versions?before=2")
    for before in ("x", "-1", "9" * 5000):
        text(admin, f"/objects/{changed}/versions?before={before}")


def test_two_versions_stand_side_by_side(admin: Client, changed: int) -> None:
    page = text(admin, f"/objects/{changed}/versions/compare?before=1&after=3")
    assert "<del>SELECT amount FROM sales</del>" in page and "<ins>WHERE amount &gt; 0</ins>" in page
    assert re.search(r"trino <span class=\"tag\">added</span>", page)
    assert "These two are equal" in text(admin, f"/objects/{changed}/versions/compare?before=2&after=2")
    text(admin, f"/objects/{changed}/versions/compare?before=9", 404)


def test_a_view_is_rolled_back_after_a_preview(admin: Client, changed: int) -> None:
    preview = text(admin, f"/objects/{changed}/versions/roll-back?version=1")
    assert "A new version 4 will equal version 1" in preview and "removed</span>" in preview
    path = f"/objects/{changed}/versions/roll-back"
    stale = admin.post(path, {"version": 1, "since": 2})
    assert stale.status_code == 409 and "was changed after version 2" in stale.content.decode()
    assert admin.post(path, {"version": 99, "since": 3}).status_code == 404
    assert admin.post(path, {"version": 1, "since": 3}).status_code == 302
    assert latest().version == 4 and latest().definition.dialects == ["spark"]
    assert "there is nothing to roll back" in text(admin, f"{path}?version=1")


# Making one


def test_a_view_is_made_in_a_schema(admin: Client, ids: Ids, notes: int) -> None:
    path = f"/objects/{notes}/views/new"
    form = text(admin, path)
    assert 'value="eu"' in form and "As this catalog does it" in form
    sent = {"name": "made", "dialect": "trino", "sql": "SELECT 1", "columns": "a long\nb decimal(10, 2)", "mode": ""}
    made = admin.post(path, sent | {"default_catalog": "notes", "comment": "By hand"})
    assert made.status_code == 302
    definition = latest("made").definition
    assert [column["type"] for column in definition.columns] == ["long", "decimal(10,2)"]
    assert definition.in_dialect("trino").default_catalog == "notes" and definition.comment == "By hand"
    assert "you own it" in text(admin, made.headers["Location"])
    for wrong, expected in (
        (sent, "exists"),
        (sent | {"name": "x", "columns": "a long\na integer"}, "there are two of the name"),
        (sent | {"name": "x", "columns": "a long\nb int"}, "Column &#x27;b&#x27; has no type that is known here"),
        (sent | {"name": "x", "columns": "a decimal(99,2)"}, "columns[0].type"),
        (sent | {"name": "x", "sql": "  "}, "sql: must not be blank"),
        (sent | {"name": "x", "mode": "SOMEBODY"}, "SOMEBODY is not one of the available choices"),
    ):
        refused = admin.post(path, wrong)
        assert refused.status_code == 422 and expected in refused.content.decode(), expected
        assert "SELECT 1" in refused.content.decode() or not wrong["sql"].strip()
    definer = admin.post(f"/objects/{ids['eu']}/views/new", sent | {"mode": "DEFINER"})
    assert definer.status_code == 422 and "an Iceberg view has none" in definer.content.decode()


def test_who_may_not_make_a_view_is_refused(ids: Ids) -> None:
    assert text(sign_in("rita"), f"/objects/{ids['eu']}/views/new", 403)


# SQL as HTML, and its lines


def test_sql_is_coloured_and_shown_as_what_it_is() -> None:
    html = highlighting.coloured(["SELECT '<b>' -- \u202eevil\r\nFROM t"])[0]
    assert '<span class="keyword">SELECT</span>' in html and "&lt;b&gt;" in html and "<b>" not in html
    assert ">U+202E</span>" in html and "\u202e" not in html and "U+000D" not in html
    assert highlighting.coloured(["FROM t g"])[0].count("keyword") == 1, "an alias of one letter is a name"
    assert not highlighting.reads_as_written("\u200b") and highlighting.reads_as_written("a\n\tb")


def test_long_sql_is_plain() -> None:
    short, long = highlighting.coloured(["SELECT 1", "SELECT \u202e<b>" + "x" * highlighting.MOST_COLOURED])
    assert "keyword" in short and "<span" not in long
    assert long.startswith("SELECT [U+202E]&lt;b&gt;")


def test_lines_far_from_a_difference_are_counted() -> None:
    before = [f"line {number}" for number in range(40)]
    after = [*before[:20], "new", *before[21:]]
    lines = lines_of("\n".join(before), "\n".join(after))
    assert [line.skipped for line in lines if line.skipped] == [17, 16]
    assert [(line.before.html, line.after.html) for line in lines if line.before.differs] == [("line 20", "new")]
    assert lines_of("a\r\nb", "a\nb")[0].before.html.endswith("U+000D</span></bdi>")


# Lineage


def test_lineage_is_a_picture_and_a_list_of_what_one_may_load(ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    admin, rita = sign_in("admin"), sign_in("rita")
    id = add_view("orders", "eu", "totals")
    address = Address(metalake="demo", catalog="lake", schema="orders:eu", leaf="totals", leaf_kind=Kind.VIEW)
    view, sales = find(address), find(replace(address, leaf="sales", leaf_kind=Kind.TABLE))
    link = Link(view, ("lake", "orders\1eu", "sales"), sales, 1, ("spark",), (("amount", "<b>"),), False)
    gone = replace(link, names=("lake", "orders\1eu", "gone"), target=None)
    monkeypatch.setattr(lineage, "read_by", lambda *_: [link, gone])
    monkeypatch.setattr(lineage, "readers_of", lambda *_: [])
    page = text(admin, f"/objects/{id}/lineage")
    assert re.search(r'<section class="card wide-only"><h2>From left to right</h2>\s*<svg class="drawing wide"', page)
    assert 'class="drawing wide"' in page and f'href="/objects/{ids["sales"]}"' in page and "&lt;b&gt;" in page
    assert "lake.orders:eu.gone" in page and "you may not load it" in page
    assert text(rita, f"/objects/{id}/lineage", 404) == text(rita, f"/objects/{MISSING}/lineage", 404)
