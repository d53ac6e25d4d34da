"""The pages of a user, a group and a role where there is much of everything; and lists of names that are pasted."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from authz.models import Group, Member, Role, User
from authz.services import directory, owners, people, roles
from authz.services.snapshot_changes import GroupUser, UserRole
from metalake.kinds import Kind
from tests.demo import actor, give
from tests.frontend.conftest import add_schema, sign_in
from tests.frontend.pages.test_people import at, change, text

Ids = dict[str, int]
MANY = 60


@pytest.fixture
def crowd(ids: Ids) -> list[User]:
    """Members p00 to p59, who are in group crew and hold role shared, as group crew does."""
    users = User.objects.bulk_create(User(username=f"p{n:02}") for n in range(MANY))
    Member.objects.bulk_create(Member(metalake_id=ids["demo"], user=user, creator="admin") for user in users)
    people.add_group(actor("admin"), "demo", "crew")
    roles.create_role(actor("admin"), "demo", "shared")
    role, group = Role.objects.get(name="shared"), Group.objects.get(name="crew")
    UserRole.objects.bulk_create(UserRole(user=user, group_id=role.group_id) for user in users)
    GroupUser.objects.bulk_create(GroupUser(user=user, group=group) for user in users)
    roles.assign_roles(actor("admin"), "demo", "group", "crew", ["shared"])
    return users


def following(page: str) -> str:
    (query,) = re.findall(r'href="(\?[^"]+)">Next page', page)
    return query.replace("&amp;", "&")


@pytest.mark.store
def test_who_holds_a_role_is_paged_searched_and_counted(crowd: list[User], ids: Ids, admin: Client) -> None:
    path = at(ids, "roles", Role.objects.get(name="shared").pk)
    first = text(admin.get(path))
    assert '<span class="count">61</span>' in first and ">crew</a>" in first
    assert ">p48</a>" in first and ">p49</a>" not in first, "the group and 49 people"
    second = text(admin.get(path + following(first)))
    assert ">p49</a>" in second and ">p59</a>" in second and ">p48</a>" not in second and "First page" in second
    assert re.findall(r">(p\d\d|crew)</a>", text(admin.get(f"{path}?holders=P07"))) == ["p07"]
    assert "Nobody who holds it" in text(admin.get(f"{path}?holders=zz"))


@pytest.mark.store
def test_a_groups_people_are_paged_searched_and_counted(crowd: list[User], ids: Ids, admin: Client) -> None:
    path = at(ids, "groups", Group.objects.get(name="crew").pk)
    first = text(admin.get(path))
    assert '<span class="count">60</span>' in first and ">p49</a>" in first and ">p50</a>" not in first
    assert ">p50</a>" in text(admin.get(path + following(first)))
    assert re.findall(r">(p\d\d)</a>", text(admin.get(f"{path}?people=p5"))) == [f"p5{n}" for n in range(10)]


def test_lists_say_how_many_there_are_and_at_least(
    crowd: list[User], ids: Ids, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert '<span class="count">63</span>' in text(admin.get(at(ids)))
    assert '<span class="count">10</span>' in text(admin.get(at(ids) + "?q=p1"))
    monkeypatch.setattr(directory, "MOST_COUNTED", 20)
    assert '<span class="count">at least 20</span>' in text(admin.get(at(ids)))


def test_the_roles_and_groups_of_a_user_are_paged(ids: Ids, admin: Client) -> None:
    mia = User.objects.get(username="mia")
    for n in range(52):
        roles.create_role(actor("admin"), "demo", f"r{n:02}")
    roles.assign_roles(actor("admin"), "demo", "user", "mia", [f"r{n:02}" for n in range(52)])
    path = at(ids, "users", mia.pk)
    first = text(admin.get(path))
    assert '<span class="count">52</span>' in first and ">r49</a>" in first and ">r50</a>" not in first
    assert ">r51</a>" in text(admin.get(path + following(first)))
    assert "r00, r01, r02, r03, r04 <" in text(admin.get(at(ids))) and "and 47 more" in text(admin.get(at(ids)))


@pytest.mark.store
def test_a_user_page_lists_what_they_own_and_one_may_see(ids: Ids, admin: Client) -> None:
    people.add_group(actor("admin"), "demo", "crew")
    people.set_group_users(actor("admin"), "demo", "crew", add=["mia"])
    for on, owner, sort in (
        ("lake.payroll", "mia", "user"), ("lake.orders:eu", "mia", "user"), ("lake.orders", "crew", "group"),
    ):  # fmt: skip
        owners.set_owner(actor("admin"), "demo", Kind.SCHEMA, on, owner, sort)
    owners.set_owner(actor("admin"), "demo", Kind.ROLE, "reader", "mia", "user")
    path = at(ids, "users", User.objects.get(username="mia").pk)
    page = text(admin.get(path))
    for expected in (
        f'<a href="/objects/{ids["payroll"]}">lake.payroll</a>', f'<a href="/objects/{ids["eu"]}">lake.orders:eu</a>',
        "group crew</td>", at(ids, "roles", Role.objects.get(name="reader").pk),
    ):  # fmt: skip
        assert expected in page, expected
    assert "What they own" not in text(admin.get(at(ids, "users", User.objects.get(username="rita").pk)))
    give("rita", Kind.METALAKE, "demo", "manage_users", role="managers")
    page = text(sign_in("rita").get(path))
    assert "lake.orders:eu" in page and "payroll" not in page and "group crew" not in page
    assert '<span class="count">2</span>' in page, "the schema and the role that she holds"
    for n in range(51):
        add_schema(f"own{n:02}")
        owners.set_owner(actor("admin"), "demo", Kind.SCHEMA, f"lake.own{n:02}", "mia", "user")
    assert "at least 50" in text(admin.get(path)) and "the first 50 that you see" in text(admin.get(path))


# Pasted lists


def pasted(admin: Client, ids: Ids, names: str) -> Any:
    return change(admin, ids, "put-in", group="crew", people=names)


def test_a_pasted_list_is_read_with_care_and_stays(crowd: list[User], ids: Ids, admin: Client) -> None:
    people.add_user(actor("admin"), "demo", "Zoe@example.com")
    page = text(pasted(admin, ids, "\n\n mia \n\r\nrita,,;mia\n\n"))
    assert "2 of 2 are not in it yet: mia, rita." in page and "put in once: mia" in page
    wrong = text(pasted(admin, ids, "MIA\np01\nzoe@EXAMPLE.com"), 404)
    assert "Users MIA, zoe@EXAMPLE.com do not exist. Did you mean mia, Zoe@example.com?" in wrong
    assert "MIA p01 zoe@EXAMPLE.com</textarea>" in wrong
    many = "\n".join(f"user{n}" for n in range(10_001))
    wrong = text(pasted(admin, ids, many), 413)
    assert "10,001 names" in wrong and "user10000</textarea>" in wrong
    wrong = text(pasted(admin, ids, many.replace("user0\n", "", 1)), 404)
    assert "and 9," in wrong and "user10000</textarea>" in wrong
