"""Looking at the pages as another person: what is dimmed, who may, and that nothing changes but the look."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from authz.services import owners, people
from catalogs.services import catalogs, metalakes
from metalake.kinds import Kind
from tests.demo import actor, add_user, give
from tests.frontend.conftest import sign_in
from tests.frontend.test_pages import Ids, below, text


def see_as(client: Client, object_id: int, user: str) -> str:
    answer = client.post(f"/objects/{object_id}/see-as", {"user": user}, follow=True)
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", answer.content.decode()))


def hidden(level: str) -> set[str]:
    """The names of a level that are dimmed."""
    items = [item for item in level.split('role="treeitem"') if "is-unseen" in item]
    return {name for item in items for name in re.findall(r'data-name="([^"]*)"', item)}


def test_the_owner_sees_what_a_reader_sees(admin: Client, ids: Ids) -> None:
    assert hidden(below(admin, ids["lake"])) == set()
    page = see_as(admin, ids["lake"], "rita")
    assert "Seen as rita: they may use use_catalog." in page
    assert hidden(below(admin, ids["lake"])) == {"payroll"}
    assert "hidden from rita" in text(admin, f"/objects/{ids['lake']}")
    assert "payroll is hidden from them" in re.sub(r"\s+", " ", text(admin, f"/objects/{ids['payroll']}"))
    assert hidden(below(admin, ids["eu"])) == set()
    assert "Seen as" not in see_as(admin, ids["lake"], ""), "without a name one is oneself again"
    assert hidden(below(admin, ids["lake"])) == set()


def test_a_member_with_nothing_sees_only_the_metalake(admin: Client, ids: Ids) -> None:
    see_as(admin, ids["demo"], "mia")
    assert hidden(below(admin, ids["demo"])) == {"lake"}
    assert "they see demo, and may use no privilege on it" in re.sub(
        r"<[^>]+>|\s+", " ", text(admin, f"/objects/{ids['demo']}")
    ).replace("  ", " ")


def test_who_may_not_read_access_learns_nothing(rita: Client, ids: Ids) -> None:
    page = see_as(rita, ids["eu"], "mia")
    assert "Seen as" not in page and "may not" in page
    assert "See as" not in page, "the button is for those who may"
    assert hidden(below(rita, ids["lake"])) == set()


def test_below_what_one_may_grant_on_others_are_seen_and_above_not(ids: Ids) -> None:
    give("rita", Kind.SCHEMA, "lake.orders", "manage_grants", role="granter")
    client = sign_in("rita")
    see_as(client, ids["orders"], "mia")
    assert hidden(below(client, ids["orders"])) == {"eu"}
    assert hidden(below(client, ids["lake"])) == set(), "who sees the catalog's schemas is not theirs to know"
    page = re.sub(r"<[^>]+>", "", text(client, f"/objects/{ids['lake']}"))
    assert "what they see here is for those who may grant on lake" in re.sub(r"\s+", " ", page)


def test_names_are_suggested_to_who_may_find_them(admin: Client, rita: Client, ids: Ids) -> None:
    assert re.findall(r'value="(\w+)"', text(admin, f"/objects/{ids['sales']}/users?user=RI")) == ["rita"]
    assert text(admin, f"/objects/{ids['sales']}/users?user=").strip() == ""
    assert rita.get(f"/objects/{ids['sales']}/users?user=m").status_code == 403
    assert rita.get(f"/objects/{ids['payroll']}/users?user=m").status_code == 404
    give("mia", Kind.CATALOG, "lake", "use_catalog", "manage_grants", role="granter")
    assert "rita" not in text(sign_in("mia"), f"/objects/{ids['lake']}/users?user=rita"), "they may not list users"
    for path in (f"/objects/{ids['lake']}", f"/objects/{ids['lake']}/why"):
        assert f'hx-get="/objects/{ids["lake"]}/users"' in text(admin, path)
    assert "/users" not in text(rita, f"/objects/{ids['sales']}/why")


@pytest.mark.store
def test_metalakes_are_dimmed_where_one_may_read_access(ids: Ids) -> None:
    for name in ("other", "joint", "foreign"):
        metalakes.create_metalake(actor("admin"), name, None, {})
    people.add_user(actor("admin"), "joint", "rita")
    add_user("olga")
    people.add_user(actor("admin"), "foreign", "olga")
    people.add_user(actor("admin"), "demo", "olga")
    owners.set_owner(actor("admin"), "demo", Kind.METALAKE, "demo", "olga", "user")
    admin, olga = sign_in("admin"), sign_in("olga")
    assert hidden(text(admin, "/tree")) == set()
    see_as(olga, ids["demo"], "rita")
    assert hidden(text(olga, "/tree")) == set(), "who is a member of foreign is not hers to know"
    owners.set_owner(actor("admin"), "foreign", Kind.METALAKE, "foreign", "olga", "user")
    assert hidden(text(olga, "/tree")) == {"foreign"}
    for path in ("/", f"/objects/{ids['lake']}"):
        assert hidden(text(olga, path)) == {"foreign"}


def test_the_person_is_looked_up_once(admin: Client, ids: Ids, django_assert_max_num_queries: Any) -> None:
    see_as(admin, ids["lake"], "rita")
    text(admin, f"/objects/{ids['eu']}")
    with django_assert_max_num_queries(18):
        text(admin, f"/objects/{ids['eu']}")


@pytest.mark.parametrize("name", ["nobody", "otto", "\x00", "a" * 5000])
def test_a_name_that_is_nobody_s_is_said_in_place(admin: Client, ids: Ids, name: str) -> None:
    page = see_as(admin, ids["lake"], name)
    assert "does not exist" in page or "may not" in page
    assert "Seen as" not in page


def test_a_person_of_one_metalake_is_nobody_s_view_of_another(admin: Client, ids: Ids) -> None:
    metalakes.create_metalake(actor("admin"), "other", None, {})
    other = catalogs.create_catalog(actor("admin"), "other", "lake", "relational", "lakehouse-iceberg", None, {})
    see_as(admin, ids["lake"], "rita")
    assert "Seen as" not in text(admin, f"/objects/{other.pk}")


def test_a_person_who_is_removed_is_seen_no_more(admin: Client, ids: Ids) -> None:
    see_as(admin, ids["lake"], "rita")
    people.remove_user(actor("admin"), "demo", "rita")
    assert hidden(below(admin, ids["lake"])) == set()
    assert admin.get(f"/objects/{ids['lake']}").status_code == 200
