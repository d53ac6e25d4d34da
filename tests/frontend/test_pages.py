"""The tree and the object: what is shown, to whom, and that nothing hidden or hostile comes through."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from authz.services import people
from catalogs.services import browsing, catalogs, commits, schemas
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.models import Securable
from tests.demo import actor, add_user, give
from tests.frontend.conftest import add_outside, add_schema, add_table, sign_in
from tests.iceberg_rest.world import Caller as IcebergCaller
from tests.providers.world import World

HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"><svg onload=alert(1)>", "' onmouseover='alert(1)",
    "{{ 7|add:7 }}{% now 'Y' %}", "javascript:alert(1)", "</title><script>alert(1)</script>", "<!--", "&lt;b&gt;",
    "<a href=javascript:alert(1)>", "\" autofocus onfocus=alert(1) x=\"", "`${alert(1)}`",
]  # fmt: skip
Ids = dict[str, int]


def text(client: Client, path: str, status: int = 200, *, part: bool = False) -> str:
    answer = client.get(path, headers={"HX-Request": "true"} if part else {})
    assert answer.status_code == status, answer.content[:300]
    page = answer.content.decode()
    return re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", page)  # which is another one each time


def names(level: str) -> list[str]:
    return re.findall(r'<span class="hide">\w+ </span>([^<]*)</span>', level)


def below(client: Client, object_id: int, **query: str) -> str:
    answer = client.get(f"/objects/{object_id}/children", query, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    return answer.content.decode()


# The tree


def test_the_owner_walks_the_tree_level_by_level(admin: Client, ids: Ids) -> None:
    whole = text(admin, "/")
    assert names(whole) == ["demo"]
    assert "<html" in whole
    levels = [("demo", ["lake"]), ("lake", ["orders", "payroll"]), ("orders", ["eu"]), ("eu", ["sales"]), ("sales", [])]
    for name, children in levels:
        level = below(admin, ids[name])
        assert names(level) == children
        assert "<html" not in level
    assert "is-path" not in below(admin, ids["lake"])
    assert 'aria-expanded="false"' in below(admin, ids["lake"])
    assert "aria-expanded" not in below(admin, ids["eu"]), "a table opens nothing"


@pytest.mark.store
def test_others_see_what_they_may_load_and_the_way_to_it(rita: Client, ids: Ids) -> None:
    level = below(rita, ids["lake"])
    assert names(level) == ["orders"], "payroll is hidden"
    assert "is-path" in level
    assert "is-path" not in below(rita, ids["orders"])
    assert names(below(rita, ids["eu"])) == ["sales"]


@pytest.mark.store
def test_strangers_see_nothing_and_are_told_what_to_do(otto: Client, ids: Ids) -> None:
    whole = text(otto, "/")
    assert names(whole) == []
    assert "You belong to no metalake yet" in whole
    mia = sign_in("mia")
    assert names(text(mia, "/")) == ["demo"]
    assert names(below(mia, ids["demo"])) == []


@pytest.mark.store
def test_a_long_level_goes_on_page_by_page(
    admin: Client, rita: Client, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        add_schema("orders", "eu", f"s{number}")
        add_table("orders", "eu", f"t{number}")
    wanted = ["s0", "s1", "s2", "s3", "s4", "sales", "t0", "t1", "t2", "t3", "t4"]
    give("rita", Kind.SCHEMA, "lake.orders:eu:s0", "deny use_schema", role="not-these")
    give("rita", Kind.TABLE, "lake.orders:eu.t1", "deny select_table", role="nor-this")
    seen_by_rita = [name for name in wanted if name not in ("s0", "t1")]
    for size in (1, 2, 5, 11, 200):
        monkeypatch.setattr(browsing, "LEVEL_LIMIT", size)
        assert walk(admin, ids["eu"], size) == wanted
        assert walk(rita, ids["eu"], size) == seen_by_rita


def walk(client: Client, object_id: int, size: int) -> list[str]:
    """Every name of a level, following "Show more"; no page but the last is short. The tables below go the same way."""
    found: list[str] = []
    query = ""
    while True:
        level = text(client, f"/objects/{object_id}/children{query}", part=True)
        page = names(level)
        assert rows(text(client, f"/objects/{object_id}{query}", part=True)) == page
        found += page
        more = re.search(r'hx-get="/objects/\d+/children([^"]+)"[^>]*>Show more', level)
        if not more:
            assert len(page) <= size
            return found
        query = html.unescape(more[1])
        assert len(page) == size


def rows(page: str) -> list[str]:
    """The names in the table of what lies in an object."""
    table = page.partition('<table role="table" class="dense children">')[2].partition("</table>")[0]
    return re.findall(r'<a href="/objects/\d+" [^>]*>([^<]*)</a>', table)


def test_a_page_names_the_way_for_the_tree_to_open(admin: Client, ids: Ids) -> None:
    """The script opens it level by level, and asks for the one object that a long level does not show yet."""
    trail = [ids[name] for name in ("demo", "lake", "orders", "eu", "sales")]
    assert f'data-trail="{"-".join(map(str, trail))}"' in text(admin, f"/objects/{ids['sales']}")
    for parent, child in pairwise(trail):
        assert f'id="item-{child}"' in below(admin, parent, only=str(child))
    assert names(below(admin, ids["lake"], only=str(ids["orders"]))) == ["orders"]
    assert names(text(admin, f"/tree?only={ids['demo']}", part=True)) == ["demo"]


def test_one_object_of_a_level_is_shown_only_where_it_lies_and_to_who_sees_it(rita: Client, ids: Ids) -> None:
    missing = text(rita, f"/objects/{ids['lake']}/children?only=1", 404, part=True)
    for parent, child in (("lake", "payroll"), ("lake", "eu"), ("orders", "orders"), ("eu", "lake")):
        assert text(rita, f"/objects/{ids[parent]}/children?only={ids[child]}", 404, part=True) == missing
    assert text(rita, f"/tree?only={ids['lake']}", 404, part=True) == missing
    assert names(below(rita, ids["lake"], only=str(ids["orders"]))) == ["orders"]


@pytest.mark.store
def test_a_node_shows_its_owner_and_the_grants_on_it_that_one_may_read(admin: Client, rita: Client, ids: Ids) -> None:
    give(None, Kind.TABLE, "lake.orders:eu.sales", "select_table", role="boss")
    give(None, Kind.SCHEMA, "lake.payroll", "use_schema", role="clerk")
    eu = below(admin, ids["eu"])
    assert 'title="sales, owned by admin"' in eu and ", 1 grant on it" in eu
    assert ", 2 grants on it" in below(admin, ids["orders"])
    assert "has-grants" not in below(rita, ids["eu"]), "another role's grant is not hers to read"
    assert ", 2 grants on it" in below(rita, ids["orders"]), "her own role's"
    way = below(rita, ids["lake"])
    assert "owned by" not in way, "of what only leads on she knows the name alone"
    assert "1 on sales itself" in text(admin, f"/objects/{ids['eu']}")


def test_a_page_and_a_level_take_the_same_statements_however_long_it_is(admin: Client, ids: Ids) -> None:
    def statements(path: str) -> int:
        text(admin, path)
        with CaptureQueriesContext(connection) as issued:
            text(admin, path)
        return len(issued)

    paths = [f"/objects/{ids[name]}{part}" for name in ("demo", "lake", "eu") for part in ("/children", "")]
    add_schema("orders", "eu", "s")
    few = [statements(path) for path in paths]
    for number in range(6):
        add_schema("orders", "eu", f"s{number}")
        give("mia", Kind.SCHEMA, f"lake.orders:eu:s{number}", "use_schema")
    assert [statements(path) for path in paths] == few
    assert max(few) <= 13, few


@pytest.mark.store
def test_a_list_shows_the_comment_that_a_table_has_now(admin: Client, ids: Ids) -> None:
    assert comments(text(admin, f"/objects/{ids['eu']}")) == ["One row a sale"]
    updates = [{"action": "set-properties", "updates": {"comment": "One row\0 a day. " * 200}}]
    sales = Address(metalake="demo", catalog="lake", schema="orders:eu", leaf="sales")
    commits.commit_table(actor("admin"), sales, [], updates)
    (shown,) = comments(text(admin, f"/objects/{ids['eu']}"))
    assert shown.startswith("One row a day. One row"), "without what PostgreSQL cannot store"
    assert len(shown) == 200


@pytest.mark.store
def test_a_list_shows_the_comment_of_a_namespace_from_either_wire(admin: Client, ids: Ids) -> None:
    catalog = Address(metalake="demo", catalog="lake", schema="noted")
    schemas.create_schema(actor("admin"), catalog, "By Gravitino", {"comment": "not this"})
    IcebergCaller("admin").make_namespace("orders", "told", properties={"comment": "By Iceberg"})
    shown = comments(text(admin, f"/objects/{ids['lake']}"))
    assert "By Gravitino" in shown and "not this" not in shown
    assert "By Iceberg" in comments(text(admin, f"/objects/{ids['orders']}"))


@pytest.mark.store
def test_a_list_shows_the_comments_of_an_outside_system_without_asking_it(
    admin: Client, ids: Ids, world: World
) -> None:
    with world.open() as state:
        state["schemas"]["weather"]["definition"]["comment"] = "Hour by hour"
        state["tables"]["weather\x1fwinds"]["definition"]["comment"] = "In knots"
    station = add_outside(world)
    assert comments(text(admin, f"/objects/{station.id}")) == ["Hour by hour"]
    weather = Securable.objects.get(parent_id=station.id).pk
    assert comments(text(admin, f"/objects/{weather}")) == ["", ""], "nobody has loaded the tables yet"
    text(admin, f"/objects/{Securable.objects.get(name='winds').pk}")
    loads = world.calls("load_table")
    assert comments(text(admin, f"/objects/{weather}")) == ["", "In knots"]
    assert world.calls("load_table") == loads


def comments(page: str) -> list[str]:
    return re.findall(r'<td [^>]*class="comment">([^<]*)</td>', page)


@pytest.mark.store
def test_a_disabled_catalog_says_so(admin: Client, ids: Ids) -> None:
    catalogs.set_catalog_enabled(actor("admin"), "demo", "lake", False)
    assert "disabled" in below(admin, ids["demo"])
    assert "nothing below it answers" in text(admin, f"/objects/{ids['lake']}")
    for path in (f"/objects/{ids['eu']}", f"/objects/{ids['lake']}/children"):
        assert "is disabled" in text(admin, path, 409, part=True)


# One object


@pytest.mark.store
def test_an_object_is_described(admin: Client, ids: Ids) -> None:
    sales = text(admin, f"/objects/{ids['sales']}")
    for expected in ("One row a sale", "Iceberg v2", "<dd>admin</dd>"):
        assert expected in sales
    columns = text(admin, f"/objects/{ids['sales']}/columns")
    assert "<code>long</code>" in columns and "in cents" in columns
    assert "Shops of the union" in text(admin, f"/objects/{ids['eu']}")
    assert "All that we know" in text(admin, f"/objects/{ids['demo']}")


def test_a_part_is_the_same_object_without_the_frame(admin: Client, ids: Ids) -> None:
    path = f"/objects/{ids['sales']}"
    part = text(admin, path, part=True)
    assert "<html" not in part
    assert "<title>sales" in part
    restored = admin.get(path, headers={"HX-Request": "true", "HX-History-Restore-Request": "true"})
    assert "<html" in restored.content.decode(), "going back needs the whole page"
    assert "HX-Request" in restored.headers["Vary"]
    assert "no-store" in restored.headers["Cache-Control"]


def test_secrets_are_masked(admin: Client, ids: Ids) -> None:
    lake = text(admin, f"/objects/{ids['lake']}")
    assert "do-not-show-me" not in lake
    assert "s3.secret-access-key" in lake
    assert "platform" in lake


def test_what_only_leads_on_shows_its_name_alone(rita: Client, ids: Ids) -> None:
    Securable.objects.filter(pk=ids["orders"]).update(comment="a secret comment", properties={"a": "secret-property"})
    orders = text(rita, f"/objects/{ids['orders']}")
    assert "It leads to something below" in orders
    for hidden in ("a secret comment", "secret-property", "<dt>Owner", "Created"):
        assert hidden not in orders


@pytest.mark.parametrize("part", [False, True])
def test_hidden_is_answered_like_missing(rita: Client, otto: Client, ids: Ids, part: bool) -> None:
    nowhere = 4_611_686_018_427_387_904
    for path in ("/objects/{}", "/objects/{}/children"):
        missing = text(rita, path.format(nowhere), 404, part=part)
        assert text(rita, path.format(ids["payroll"]), 404, part=part) == missing
        missing = text(otto, path.format(nowhere), 404, part=part)
        for name in ("demo", "lake", "eu", "sales"):
            assert text(otto, path.format(ids[name]), 404, part=part) == missing
    role = Securable.objects.get(kind=Kind.ROLE, name="reader")
    admin = sign_in("admin")
    missing = text(admin, path.format(nowhere), 404, part=part)
    assert text(admin, f"/objects/{role.pk}", 404, part=part) == missing, "a role is no place in the tree"


@pytest.mark.store
@pytest.mark.parametrize(
    "path",
    ["/objects/0", "/objects/9223372036854775808", f"/objects/{'9' * 40}", f"/objects/{'9' * 5000}", "/objects/x"],
)
def test_an_id_that_cannot_be_is_missing(admin: Client, path: str) -> None:
    text(admin, path, 404)


@pytest.mark.store
@pytest.mark.parametrize("query", ["kind=nonsense", "after=%00", "only=x", f"only={'9' * 6000}", "after=%FF%FE"])
def test_a_level_survives_any_query(admin: Client, ids: Ids, query: str) -> None:
    text(admin, f"/objects/{ids['lake']}/children?{query}")


def test_an_object_costs_the_same_however_much_is_granted(admin: Client, ids: Ids) -> None:
    path = f"/objects/{ids['sales']}/access"
    text(admin, path)
    with CaptureQueriesContext(connection) as few:
        text(admin, path)
    for number in range(8):
        add_user(f"u{number}")
        people.add_user(actor("admin"), "demo", f"u{number}")
        give(f"u{number}", Kind.SCHEMA, "lake.orders", "use_schema", "select_table", role=f"role{number}")
    text(admin, path)
    with CaptureQueriesContext(connection) as many:
        text(admin, path)
    assert len(many) == len(few)


# Hostile text, and what pages may run


class Markup(HTMLParser):
    """The elements and attributes that a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        for name, value in attrs:
            self.found.add(f"{tag} {name}")
            if name in ("href", "src", "hx-get", "action"):
                assert value and value.startswith(("/", "#")) and not value.startswith("//"), value

    def handle_comment(self, data: str) -> None:
        self.found.add("comment")

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("hostile", HOSTILE)
def test_text_is_never_markup(admin: Client, ids: Ids, hostile: str) -> None:
    def pages(schema: int, table: int) -> list[Markup]:
        paths = [f"/objects/{part}" for part in (schema, table, f"{table}/columns", f"{ids['eu']}/access")]
        return [
            Markup(below(admin, schema)),
            Markup(below(admin, ids["lake"])),
            *(Markup(text(admin, p)) for p in paths),
        ]

    plain = pages(add_schema("plain", comment="c", k="v"), add_table("plain", "plain", comment="c"))
    level = hostile.replace(":", "")  # which divides levels
    schema = add_schema(level, comment=hostile, **{hostile: hostile})
    table = add_table(level, hostile, comment=hostile)
    Securable.objects.filter(kind=Kind.ROLE, name="reader").update(name=hostile)
    for calm, tried in zip(plain, pages(schema, table), strict=True):
        assert tried.found == calm.found, "the same elements with the same attributes, whatever the names say"
        assert level in tried.text or hostile in tried.text, "and the text is all there"


def test_pages_carry_no_script_or_style_of_their_own(admin: Client, ids: Ids) -> None:
    for path in ("/", f"/objects/{ids['sales']}", "/tokens", "/nowhere"):
        answer = admin.get(path)
        page = answer.content.decode()
        assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|javascript:", page)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "script-src" not in policy
        assert answer.headers["X-Frame-Options"] == "DENY"
        for source in re.findall(r'(?:src|href)="(/static/[^"]+)"', page):
            assert admin.get(source).status_code == 200, source


def test_failures_look_like_the_rest(admin: Client, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "There is nothing here" in text(admin, "/nowhere", 404)

    def fail(*args: object) -> None:
        raise RuntimeError("an inner detail")

    monkeypatch.setattr(browsing, "top_level", fail)
    admin.raise_request_exception = False
    failed = text(admin, "/", 500)
    assert "The server failed" in failed
    assert "an inner detail" not in failed
