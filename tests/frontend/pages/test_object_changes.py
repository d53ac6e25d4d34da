"""Changes of an object itself: previewed, made, and refused without losing what was typed."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client

from authz.services import owners, people
from catalogs.lookup import by_id
from catalogs.models import Catalog
from catalogs.secrets import MASK
from catalogs.services import catalogs, schemas
from catalogs.services.alterations import Alteration
from catalogs.services.description import Description, describe
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.models import Metalake, Securable
from tests.demo import actor, give
from tests.frontend import hostile
from tests.frontend.conftest import add_outside, add_schema, add_stuck_intent, add_table, add_view, find, sign_in
from tests.providers.world import World
from views_mgmt.services.dependencies import read_new_versions

Ids = dict[str, int]
SALES = "lake.orders:eu.sales"


class Desk:
    """A client at the page of changes of one object."""

    def __init__(self, client: Client, object_id: int) -> None:
        self.client, self.path, self.status = client, f"/objects/{object_id}/change", 0

    def preview(self, what: str, **fields: str) -> str:
        answer = self.client.post(self.path, {"what": what, "act": "preview", **fields})
        self.status = answer.status_code
        return html.unescape(answer.content.decode())

    def apply(self, what: str, **fields: str) -> str:
        """As the preview's form sends it; what the next page says."""
        page = self.preview(what, **fields)
        assert self.status == 200, page
        hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page)
        answer = self.client.post(self.path, {**dict(hidden), **fields, "act": "apply"}, follow=True)
        self.status = answer.status_code
        return html.unescape(answer.content.decode())


@pytest.fixture
def at_sales(admin: Client, ids: Ids) -> Desk:
    return Desk(admin, ids["sales"])


def about(object_id: int) -> Description:
    located = by_id(object_id)
    assert located
    return describe(actor("admin"), located)


@pytest.mark.parametrize("name", ["demo", "lake", "eu", "sales", "totals"])
def test_a_comment_is_changed_and_taken_away(admin: Client, ids: Ids, name: str) -> None:
    ids = ids | {"totals": add_view("orders", "eu", "totals")}
    desk, was = Desk(admin, ids[name]), about(ids[name]).comment
    assert "Change the comment of" in desk.preview("comment", was=was, comment="Only “ours”\r\nand more")
    assert about(ids[name]).comment == was, "a preview changes nothing"
    desk.apply("comment", was=was, comment="Only “ours”\r\nand more")
    assert about(ids[name]).comment == "Only “ours”\nand more"
    page = desk.preview("comment", was=was, comment="Mine")
    assert desk.status == 409 and "It reads now: Only “ours”" in page and ">\nMine</textarea>" in page
    desk.apply("comment", was="Only “ours”\nand more", comment="")
    assert about(ids[name]).comment == ""


@pytest.mark.parametrize("name", ["demo", "eu", "sales", "totals"])
def test_only_the_properties_that_were_typed_change(admin: Client, ids: Ids, name: str) -> None:
    """Secrets and what another tab changed stay as they are."""
    ids = ids | {"totals": add_view("orders", "eu", "totals")}
    desk = Desk(admin, ids[name])
    desk.apply("properties", lines="team=a\r\nmy.password=hidden-word\r\nspare=1")
    shown = f"my.password={MASK}\nspare=1\nteam=a"
    desk.apply("properties", was=shown, lines=f"{shown}\nother=tab")
    page = desk.preview("properties", was=shown, lines=f"my.password={MASK}\nteam=b\nnew=x")
    assert "new is new: x" in page and "spare is removed; it was 1" in page and "team: a becomes b" in page
    assert "hidden-word" not in page and "my.password is" not in page
    desk.apply("properties", was=shown, lines=f"my.password={MASK}\nteam=b\nnew=x")
    now = about(ids[name]).properties
    assert (now["team"], now["new"], now["other"], now["my.password"]) == ("b", "x", "tab", MASK)
    assert "spare" not in now


def test_two_tabs_at_the_same_property(at_sales: Desk, ids: Ids) -> None:
    at_sales.apply("properties", lines="team=a")
    at_sales.apply("properties", was="team=a", lines="team=b")
    page = at_sales.preview("properties", was="team=a", lines="team=c")
    assert at_sales.status == 409 and "team is b" in page and "\nteam=c</textarea>" in page
    assert 'name="was" value="team=b"' in page, "a second preview is of what is there now"


@pytest.mark.parametrize(
    ("lines", "says"),
    [("team", "Line 1 is not of the form"), ("a=1\na=2", "a second time"), ("", "nothing changes"),
     (f"team={MASK}", "but none is"), ("format-version=1", ">format-version is decided at creation<")],
)  # fmt: skip
def test_bad_lines_are_refused_as_typed(at_sales: Desk, lines: str, says: str) -> None:
    page = at_sales.preview("properties", lines=lines)
    if at_sales.status == 200:
        page = html.unescape(
            at_sales.client.post(at_sales.path, {"what": "properties", "lines": lines, "act": "apply"}).content.decode()
        )
    assert says in page and f"\n{lines}</textarea>" in page


def test_a_value_of_several_lines_is_not_lost(admin: Client, ids: Ids) -> None:
    schema = add_schema("odd", note="two\nlines", team="a")
    page = html.unescape(admin.get(f"/objects/{schema}").content.decode())
    assert "since no line can hold it: note" in page
    Desk(admin, schema).apply("properties", was="team=a", lines="team=b")
    assert about(schema).properties == {"note": "two\nlines", "team": "b"}


# Owners


def test_the_former_owner_reads_what_they_lose(admin: Client, ids: Ids) -> None:
    desk = Desk(admin, ids["eu"])
    page = desk.preview("owner", owner="rita", was="user:admin")
    assert "You lose nothing: you own schema orders above it." in page
    assert "rita owns schema eu now." in desk.apply("owner", owner="rita", was="user:admin")
    assert str(owners.get_owner(actor("admin"), "demo", Kind.SCHEMA, "lake.orders:eu").name) == "rita"
    page = desk.preview("owner", owner="mia", was="user:rita")
    assert "rita loses what only its owner may" in page and "Grants still give rita use_schema, select_table." in page
    stale = desk.preview("owner", owner="mia", was="user:admin")
    assert desk.status == 409 and "it is user rita now" in stale and 'value="mia"' in stale


def test_an_owner_hands_over_all_that_they_have(admin: Client, ids: Ids) -> None:
    owners.set_owner(actor("admin"), "demo", Kind.SCHEMA, "lake.payroll", "mia", "user")
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    mia = Desk(sign_in("mia"), ids["payroll"])
    page = mia.preview("owner", owner="rita")
    assert "You lose what only its owner may" in page and "No grant gives you anything" in page
    assert "can give it back to you" in page
    assert "rita owns schema payroll now." in mia.apply("owner", owner="rita") and mia.status == 200
    assert mia.client.get(f"/objects/{ids['payroll']}").status_code == 404


@pytest.mark.parametrize(
    ("name", "type_", "says"),
    [("otto", "user", "User otto does not exist"), ("nobody", "user", "User nobody does not exist"),
     ("none", "group", "Group none does not exist"), ("admin", "user", "owns it already"), ("", "user", "Name the")],
)  # fmt: skip
def test_who_cannot_own_it(at_sales: Desk, name: str, type_: str, says: str) -> None:
    page = at_sales.preview("owner", owner=name, type=type_)
    assert at_sales.status in (400, 404) and says in page and f'name="owner" value="{name}"' in page


def test_what_is_forbidden_of_a_change_is_said_in_its_form(admin: Client, ids: Ids) -> None:
    people.add_group(actor("admin"), "demo", "finance")
    owners.set_owner(actor("admin"), "demo", Kind.SCHEMA, "lake.payroll", "mia", "user")
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    mia = Desk(sign_in("mia"), ids["payroll"])
    page = mia.preview("owner", owner="finance", type="group")
    assert "may hand it to a group that they are in" in page and 'value="finance"' in page
    give("rita", Kind.SCHEMA, "lake.payroll", "deny use_schema")
    page = mia.preview("owner", owner="rita")
    assert "would shed a DENY" in page and mia.status == 400


def test_a_metalake_keeps_an_owner_who_can_act(admin: Client, ids: Ids) -> None:
    people.add_group(actor("admin"), "demo", "empty")
    people.add_user(actor("admin"), "demo", "otto", enabled=False)
    for name, type_ in (("empty", "group"), ("otto", "user")):
        page = Desk(admin, ids["demo"]).preview("owner", owner=name, type=type_)
        assert "A metalake is owned by an enabled member" in page and f'value="{name}"' in page


# Names and places


def test_a_name_is_changed_and_stays_unique(admin: Client, ids: Ids) -> None:
    add_table("orders", "eu", "returns")
    for name, new in (("sales", "sold"), ("lake", "pond"), ("demo", "trial")):
        desk = Desk(admin, ids[name])
        assert f"is {new} now." in desk.apply("rename", name=new, was=name)
        assert Securable.objects.get(pk=ids[name]).name == new
        assert f"it is {new} now" in desk.preview("rename", name="other", was=name)
    page = Desk(admin, ids["sales"]).client.post(
        f"/objects/{ids['sales']}/change", {"what": "rename", "name": "returns", "act": "apply"}
    )
    assert page.status_code == 409 and 'value="returns"' in page.content.decode()
    assert "no such change" in Desk(admin, ids["eu"]).preview("rename", name="x")


def test_a_table_moves_with_its_readers_named(admin: Client, ids: Ids) -> None:
    add_schema("orders", "us")
    add_view("orders", "eu", "totals")
    read_new_versions()
    desk = Desk(admin, ids["sales"])
    give("rita", Kind.TABLE, SALES, "modify_table")
    for client, is_named in ((admin, True), (sign_in("rita"), False)):
        page = Desk(client, ids["sales"]).preview("rename", name="sold")
        assert ("stop working: lake.orders:eu.totals." in page) == is_named == ("totals" in page)
    page = desk.preview("move", schema="orders:us")
    assert "Grants on schema orders:eu no longer reach it" in page
    assert "is in schema orders:us now." in desk.apply("move", schema="orders:us")
    located = find(Address(metalake="demo", catalog="lake", schema=("orders", "us"), leaf="sales"))
    assert located.id == ids["sales"]
    for schema, says in (("orders:us", "already"), ("", "Name the schema"), ("orders::", "name")):
        assert says in desk.preview("move", schema=schema) and desk.status == 400
    answer = desk.client.post(desk.path, {"what": "move", "schema": "nowhere", "act": "apply"})
    assert answer.status_code == 404 and 'value="nowhere"' in answer.content.decode()


# The end of it


def test_what_is_in_the_way_of_a_drop_is_named(admin: Client, ids: Ids) -> None:
    lake = Desk(admin, ids["lake"])
    page = lake.preview("drop")
    assert "Disable it first" in page and 'value="apply"' not in page
    assert "In it: schema orders, schema payroll." in page
    assert "“lak” is not its name" in lake.preview("drop", all="lak")
    lake.client.post(lake.path, {"what": "drop", "act": "apply", "all": "lak"})
    assert "schema orders, schema payroll, and all below" in lake.preview("drop", all="lake")
    lake.apply("disable")
    assert not Catalog.objects.get(pk=ids["lake"]).enabled
    assert "Disable it first" not in lake.preview("drop")
    lake.apply("enable")
    assert Catalog.objects.get(pk=ids["lake"]).enabled
    assert "catalog lake is dropped".capitalize() in lake.apply("drop", all="lake")
    assert not Securable.objects.filter(pk=ids["lake"]).exists()
    demo = Desk(admin, ids["demo"])
    demo.apply("disable")
    assert "Nobody can change rights" not in demo.apply("drop") and not Metalake.objects.exists()


def test_leaves_and_schemas_are_dropped(admin: Client, ids: Ids) -> None:
    view = add_view("orders", "eu", "totals")
    assert "table sales, view totals" in Desk(admin, ids["eu"]).preview("drop")
    assert "delete its files" in Desk(admin, ids["sales"]).preview("purge")
    for object_id, what in ((view, "drop"), (ids["sales"], "purge"), (ids["eu"], "drop")):
        assert "is dropped." in Desk(admin, object_id).apply(what)
        assert not Securable.objects.filter(pk=object_id).exists()


def test_a_stuck_write_is_in_the_way(admin: Client, ids: Ids, world: World) -> None:
    station = add_outside(world)
    add_stuck_intent(station)
    page = Desk(admin, station.id).preview("drop", all="station")
    assert "create table station.weather.readings" in page and "stuck" in page


# Who may


def test_only_who_may_is_offered_a_change(admin: Client, rita: Client, ids: Ids) -> None:
    """And nobody learns from a refusal what is there."""
    page = admin.get(f"/objects/{ids['sales']}").content.decode()
    for label in ("Change the owner", "Edit the comment", "Edit the properties", "Danger zone", "delete its files"):
        assert label in page
    theirs = rita.get(f"/objects/{ids['sales']}").content.decode()
    assert "Danger zone" not in theirs and "Edit the" not in theirs and "Change the owner" not in theirs
    for what in ("owner", "comment", "properties", "rename", "move", "drop", "purge", "disable", "none"):
        fields = {"what": what, "owner": "mia", "comment": "x", "lines": "a=b", "name": "n", "schema": "s"}
        statuses = [
            rita.post(f"/objects/{ids[name]}/change", fields | {"act": act}).status_code
            for name in ("sales", "payroll")
            for act in ("preview", "apply")
        ]
        assert statuses[:2] in ([403, 403], [400, 400]) and statuses[2:] == [404, 404], what
    assert about(ids["sales"]).owner == "admin"
    give("rita", Kind.TABLE, SALES, "modify_table")
    theirs = rita.get(f"/objects/{ids['sales']}").content.decode()
    assert "Edit the comment" in theirs and ">Rename<" in theirs and "what=drop" not in theirs


def test_hostile_text_stays_text(admin: Client, ids: Ids) -> None:
    """In every field of every change, previewed, refused and compared with what the form was opened on."""
    every, name = " ".join(hostile.ALL), hostile.ALL[0].translate({ord(char): None for char in "/:"})
    schema = add_schema(name, comment=every, **dict.fromkeys(hostile.SOME, every))
    fields = dict.fromkeys(("owner", "comment", "lines", "name", "schema", "was", "all"), every)
    pages = [
        admin.post(f"/objects/{object_id}/change", {"what": what, **fields | more}).content.decode()
        for object_id in (ids["sales"], schema, ids["lake"])
        for what in ("owner", "comment", "properties", "rename", "move", "drop", "disable", every)
        for more in ({}, {"was": "", "lines": "a=" + every})
    ]
    pages.append(admin.get(f"/objects/{schema}").content.decode())
    assert [text for text in (*hostile.ALL, name) for page in pages if text in page] == []


def test_typed_secrets_are_in_no_address(ids: Ids) -> None:
    """Someone whose session ended is led back to the page, not to what they typed."""
    fields: dict[str, Any] = {"what": "properties", "lines": "my.password=hidden-word"}
    assert "hidden" not in Client().post(f"/objects/{ids['sales']}/change", fields)["Location"]
    kept = Client().post(f"/objects/{ids['sales']}/change", {"what": "comment", "comment": "kind"})["Location"]
    assert "comment%3Dkind" in kept


def test_an_object_changed_over_the_api_meanwhile(admin: Client, ids: Ids) -> None:
    """A comment that was written from elsewhere is never overwritten unseen."""
    was = about(ids["eu"]).comment
    address = Address(metalake="demo", catalog="lake", schema=("orders", "eu"))
    schemas.alter_schema(actor("admin"), address, Alteration(comment="By the API", sets_comment=True))
    answer = admin.post(
        f"/objects/{ids['eu']}/change", {"what": "comment", "was": was, "comment": "Mine", "act": "apply"}
    )
    assert answer.status_code == 409 and about(ids["eu"]).comment == "By the API"
    assert catalogs.load_catalog(actor("admin"), "demo", "lake").comment == "Our tables"
