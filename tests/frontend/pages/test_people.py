"""The pages of people: lists, a page for each, links shown once, changes shown before they are made."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import patch

import pytest
from django.test import Client

from authz.models import Group, Member, Role, User
from authz.services import owners, people, roles
from authz.services.directory import close_names
from metalake.kinds import Kind
from metalake.models import Metalake
from tests.demo import actor, add_user, give

pytestmark = pytest.mark.django_db


def text(answer: Any, status: int = 200) -> str:
    assert answer.status_code == status, answer.content[:2000]
    return re.sub(r"\s+", " ", answer.content.decode())


def plain(answer: Any) -> str:
    """The page without the key of its forms, which differs each time."""
    return re.sub(r'name="csrfmiddlewaretoken" value="\w+"|"X-CSRFToken": "\w+"|csrf\w*="\w+"', "", text(answer, 404))


def at(ids: dict[str, int], *path: object) -> str:
    return "/".join((f"/metalakes/{ids['demo']}/people", *map(str, path)))


def change(client: Client, ids: dict[str, int], what: str, act: str = "preview", **asked: str) -> Any:
    return client.post(at(ids, "change"), {"what": what, "act": act, "back": "/tokens", **asked})


def make(client: Client, ids: dict[str, int], what: str, **asked: str) -> Any:
    """Confirm a change of which a plan was shown."""
    (token,) = re.findall(r'name="token" value="([^"]+)"', text(change(client, ids, what, **asked)))
    return change(client, ids, what, "apply", token=token, **asked)


def link_in(page: str) -> str:
    (link,) = re.findall(r"http://testserver(/invitations/[\w-]+)", page)
    return link


@pytest.mark.store
def test_lists_are_searched_and_paged(ids: dict[str, int], admin: Client, rita: Client) -> None:
    every = text(admin.get(at(ids)))
    assert "rita" in every and "mia" in every and "otto" not in every
    assert "reader, visitor" in every
    assert "mia" not in text(admin.get(at(ids) + "?q=RI"))
    own = text(rita.get(at(ids)))
    assert "mia" not in own and "You see yourself only" in own and "Add a person" not in own
    assert "reader" in text(rita.get(at(ids) + "?sort=roles"))
    for n in range(51):
        people.add_group(actor("admin"), "demo", f"g{n:02}")
    first = text(admin.get(at(ids) + "?sort=groups"))
    assert "g49" in first and "g50" not in first
    (after,) = re.findall(r"after=([^\"&]+)", first)
    assert "g50" in text(admin.get(at(ids) + f"?sort=groups&after={after}"))
    assert admin.get(at(ids) + "?sort=cats").status_code == 404


def test_a_person_is_added_with_a_link_that_is_shown_once(ids: dict[str, int], admin: Client) -> None:
    answer = admin.post(at(ids, "users"), {"name": "nora"})
    link = link_in(text(answer))
    assert "no-store" in answer["Cache-Control"]
    user = User.objects.get(username="nora")
    page = text(admin.get(at(ids, "users", user.pk)))
    assert "has no password yet" in page and link not in page
    fresh = Client()
    shown = fresh.get(link)
    assert "Welcome, <strong>nora</strong>" in text(shown)
    assert (shown["Referrer-Policy"], "no-store" in shown["Cache-Control"]) == ("strict-origin", True)
    given = "a password of noras own"
    wrong = text(fresh.post(link, {"password": given, "again": "another"}), 422)
    assert "differ" in wrong and given not in wrong
    assert "too short" in text(fresh.post(link, {"password": "short", "again": "short"}), 422)
    assert fresh.post(link, {"password": given, "again": given}).headers["Location"] == "/"
    assert "nora" in text(fresh.get("/"))
    assert "good no more" in text(Client().get(link), 404)
    assert Client().login(username="nora", password=given)
    assert "has no password yet" not in text(admin.get(at(ids, "users", user.pk)))


def test_who_only_manages_users_adds_a_person_without_a_link(ids: dict[str, int], rita: Client) -> None:
    give("rita", Kind.METALAKE, "demo", "manage_users")
    page = text(rita.post(at(ids, "users"), {"name": "nora"}, follow=True))
    assert "needs a link by who may assign roles" in page
    assert "/invitations/" not in page and "Make a link" not in page
    user = User.objects.get(username="nora")
    assert rita.post(at(ids, "users", user.pk, "invitation")).status_code == 403


def test_an_account_that_exists_is_added_without_a_link(ids: dict[str, int], admin: Client) -> None:
    user = add_user("tom")
    answer = admin.post(at(ids, "users"), {"name": "tom"})
    assert answer.headers["Location"] == at(ids, "users", user.pk)
    page = text(admin.get(answer.headers["Location"]))
    assert "signs in as before" in page and "/invitations/" not in page
    assert text(admin.post(at(ids, "users", user.pk, "invitation"), follow=True)).count("has an account already") == 1
    for name in ("tom", "a:b", "", "x" * 129):
        kept = text(admin.post(at(ids, "users"), {"name": name}), 422)
        assert f'value="{name}"' in kept or not name


def test_a_member_without_a_password_is_invited_from_their_page(ids: dict[str, int], admin: Client) -> None:
    people.add_user(actor("admin"), "demo", "nora")
    path = at(ids, "users", User.objects.get(username="nora").pk)
    assert "Make a link" in text(admin.get(path))
    assert "Welcome, <strong>nora</strong>" in text(Client().get(link_in(text(admin.post(f"{path}/invitation")))))


@pytest.mark.store
def test_a_group_is_made_and_filled(ids: dict[str, int], admin: Client) -> None:
    made = admin.post(at(ids, "groups"), {"name": "analysts", "people": "mia, rita\nmia"}, follow=True)
    page = text(made)
    assert "with 2 people" in page and "Named more than once and put in once: mia." in page
    group = Group.objects.get(name="analysts")
    kept = text(admin.post(at(ids, "groups"), {"name": "others", "people": "mia\nnobody\nno-one"}), 422)
    assert "Users nobody, no-one do not exist." in kept and "no-one</textarea>" in kept
    assert not Group.objects.filter(name="others").exists()
    many = "\n".join(f"user{n}" for n in range(10_001))
    assert "10,001 names" in text(admin.post(at(ids, "groups"), {"name": "others", "people": many}), 422)
    before = text(change(admin, ids, "put-in", group="analysts", people="mia\nadmin;admin"))
    assert "1 of 2 are not in it yet: admin." in before and "put in once: admin" in before
    assert set(group.users.values_list("username", flat=True)) == {"mia", "rita"}
    assert change(admin, ids, "put-in", "apply", group="analysts", people="admin").headers["Location"] == "/tokens"
    wrong = text(change(admin, ids, "put-in", group="analysts", people="ghost"), 404)
    assert "User ghost does not exist." in wrong and ">ghost</textarea>" in wrong
    assert "rita leaves" not in text(change(admin, ids, "take-out", group="analysts", user="rita"))
    change(admin, ids, "take-out", "apply", group="analysts", user="rita")
    assert set(group.users.values_list("username", flat=True)) == {"mia", "admin"}
    assert "2 people lose" in text(change(admin, ids, "remove-group", group="analysts")) or not group.roles.exists()
    assert change(admin, ids, "remove-group", "apply", group="analysts").headers["Location"].endswith("?sort=groups")
    assert not Group.objects.filter(pk=group.pk).exists()


def test_roles_are_made_assigned_and_dropped(ids: dict[str, int], admin: Client) -> None:
    assert "holds nothing yet" in text(admin.post(at(ids, "roles"), {"name": "nyc_reader"}, follow=True))
    assert "already exists" in text(admin.post(at(ids, "roles"), {"name": "nyc_reader"}), 422)
    row = Role.objects.get(name="nyc_reader")
    mia = User.objects.get(username="mia")
    give(None, Kind.CATALOG, "lake", "use_catalog", "use_schema", role="guest")
    shown = text(change(admin, ids, "assign", user="mia", role="guest"))
    assert "Assign role guest to user mia" in shown and "<code>use_schema</code>" in shown and "3 schemas" in shown
    assert not mia.groups.exists(), "only shown"
    assert not change(admin, ids, "assign", "apply", user="mia", role="nyc_reader").has_header("Location")
    assert not mia.groups.exists(), "nothing is made that was not shown"
    assert make(admin, ids, "assign", user="mia", role="nyc_reader").headers["Location"] == "/tokens"
    assert "It is so already" in text(change(admin, ids, "assign", user="mia", role="nyc_reader"))
    assert "nyc_reader" in text(admin.get(at(ids, "users", mia.pk)))
    assert "mia" in text(admin.get(at(ids, "roles", row.pk)))
    make(admin, ids, "unassign", user="mia", role="nyc_reader")
    assert not mia.groups.exists()
    for asked in (
        {"user": "mia", "role": "none"},
        {"user": "ghost", "role": "reader"},
        {"user": "mia"},
        {"role": "reader"},
    ):
        answer = change(admin, ids, "assign", "apply", **asked)
        assert answer.status_code in (400, 404) and "Nothing was changed" in text(answer, answer.status_code)
    assert "select_table" in text(admin.get(at(ids, "roles", Role.objects.get(name="reader").pk)))
    make(admin, ids, "drop-role", role="nyc_reader")
    assert not Role.objects.filter(pk=row.pk).exists()
    assert "no such change" in text(change(admin, ids, "burn"), 400)


def test_a_member_is_removed(ids: dict[str, int], admin: Client) -> None:
    assert "Their roles end: reader, visitor." in text(change(admin, ids, "remove-user", user="rita"))
    assert change(admin, ids, "remove-user", "apply", user="rita").headers["Location"].endswith("?sort=users")
    assert not Member.objects.filter(user__username="rita").exists()
    assert "owner" in text(change(admin, ids, "remove-user", "apply", user="admin"), 400)


@pytest.mark.store
def test_a_removal_is_undone_from_its_toast(ids: dict[str, int], admin: Client) -> None:
    owners.set_owner(actor("admin"), "demo", Kind.SCHEMA, "lake.orders:eu", "rita", "user")
    people.add_group(actor("admin"), "demo", "crew")
    for sort, name, passes in (("user", "rita", "lake.orders:eu."), ("group", "crew", "")):
        shown = text(change(admin, ids, f"remove-{sort}", **{sort: name}))
        assert (
            f"passes to user admin, who owns the metalake: {passes}" if passes else "own nothing that you see"
        ) in shown
        after = text(admin.post(at(ids, "change"), {"what": f"remove-{sort}", "act": "apply", sort: name}, follow=True))
        (path, token) = re.findall(r'action="([^"]+/people/undo)".*?name="token" value="([^"]+)"', after)[0]
        back = text(admin.post(path, {"token": token}, follow=True))
        what = "2 roles, 0 groups and 1 object." if sort == "user" else "0 roles, 0 people and 0 objects."
        assert f"{sort.capitalize()} {name} is back, with {what}" in back and f"<span>{name}</span>" in back
        assert "It was not undone." in text(admin.post(path, {"token": token}, follow=True))
    for token in ("", "user:", "cat:1", "user:9" + "9" * 30, "user:1"):
        refused = text(admin.post(at(ids, "undo"), {"token": token}, follow=True))
        assert "It was not undone." in refused


def test_who_removes_themselves_is_told_and_leads_home(ids: dict[str, int], rita: Client) -> None:
    give("rita", Kind.METALAKE, "demo", "manage_users")
    assert "This is you: you cannot undo it" in text(change(rita, ids, "remove-user", user="rita"))
    gone = change(rita, ids, "remove-user", "apply", user="rita")
    assert gone.headers["Location"] == "/" and "people/undo" not in text(rita.get("/"))


def test_what_somebody_reaches_stands_on_their_page(ids: dict[str, int], admin: Client, rita: Client) -> None:
    path = at(ids, "users", User.objects.get(username="rita").pk)
    for client, heading in ((admin, "What they reach"), (rita, "What you reach")):
        page = text(client.get(path))
        assert heading in page and "lake.orders:eu</a>" in page and "role reader" in page and "Last sign-in" in page
        why = re.findall(r'class="why holders" href="([^"]+)"', page)
        assert len(why) == 2
        assert all("rita may use" in text(client.get(each.replace("&amp;", "&"))) for each in why)
    give("mia", Kind.METALAKE, "demo", "manage_users")
    client = Client()
    client.force_login(User.objects.get(username="mia"), backend="authz.passwords.PasswordBackend")
    page = text(client.get(path))
    assert "they reach" not in page and "Last sign-in" in page, "managing users is not reading access"
    people.add_group(actor("admin"), "demo", "crew")
    roles.assign_roles(actor("admin"), "demo", "group", "crew", ["visitor"])
    group = at(ids, "groups", Group.objects.get().pk)
    assert "reach through it" in text(admin.get(group)) and "by=group" in text(admin.get(group))


def test_two_people_are_compared(ids: dict[str, int], admin: Client, rita: Client) -> None:
    path = at(ids, "compare")
    assert "Compared with" in text(admin.get(path)) and "differ" not in text(admin.get(path))
    page = text(admin.get(path, {"one": "rita", "other": "mia"}))
    assert "Where they differ" in page and "lake.orders:eu</a>" in page and page.count("nothing") == 2
    assert "They may do the same everywhere" in text(admin.get(path, {"one": "rita", "other": "user:rita"}))
    wrong = text(admin.get(path, {"one": "riat", "other": "group:none"}), 404)
    assert "Did you mean rita?" in wrong and "Group none does not exist." in wrong and 'value="riat"' in wrong
    assert rita.get(path, {"one": "rita", "other": "mia"}).status_code == 403
    assert rita.get(path, {"one": "rita", "other": "nobody"}).status_code == 403, "as for who exists"


@pytest.mark.store
def test_who_may_not_sees_no_button_and_is_refused(ids: dict[str, int], rita: Client, otto: Client) -> None:
    people.add_group(actor("admin"), "demo", "board")
    people.set_group_users(actor("admin"), "demo", "board", add=["rita", "mia"])
    group, reader, mia = Group.objects.get(), Role.objects.get(name="reader"), User.objects.get(username="mia")
    give("mia", Kind.CATALOG, "lake", "use_catalog", role="secret")
    for path in ("", "users/{}", "groups/{}", "roles/{}"):
        id = {"u": User.objects.get(username="rita").pk, "g": group.pk, "r": reader.pk}.get(path[:1], "")
        page = text(rita.get(at(ids, *filter(None, [path.format(id)]))))
        assert "people/change" not in page and "mia" not in page
        assert otto.get(at(ids, *filter(None, [path.format(id)]))).status_code == 404
    hidden = [at(ids, "users", mia.pk), at(ids, "roles", Role.objects.get(name="secret").pk)]
    missing = [at(ids, "users", 999_999), at(ids, "roles", "9" * 30), at(ids, "groups", 999_999)]
    assert {rita.get(path).status_code for path in (*hidden, *missing)} == {404}
    assert plain(rita.get(hidden[0])) == plain(rita.get(missing[0]))
    for sort in ("users", "groups", "roles"):
        assert rita.post(at(ids, sort), {"name": "new"}).status_code == 403
        assert otto.post(at(ids, sort), {"name": "new"}).status_code == 404
    for what in ("assign", "unassign", "remove-user"):
        assert change(rita, ids, what, "apply", user="mia", role="secret").status_code == 403
    assert change(rita, ids, "put-in", "apply", group="board", people="mia").status_code == 403
    assert change(rita, ids, "take-out", "apply", group="board", user="mia").status_code == 403
    assert change(rita, ids, "drop-role", "apply", role="secret").status_code == 404
    assert "secret" in roles.list_roles(actor("admin"), "demo") and set(
        people.get_group(actor("admin"), "demo", "board").users or ()
    ) == {"mia", "rita"}


def test_names_that_look_like_others_are_said_as_what_they_are(ids: dict[str, int], admin: Client) -> None:
    odd = "ri\u200bta"
    Member.objects.create(metalake_id=ids["demo"], user=User.objects.create_user(odd), creator="admin")
    for page in (admin.get(at(ids) + "?q=ri"), change(admin, ids, "remove-user", user=odd)):
        assert "U+200B" in text(page)
    assert "[U+200B]" in text(change(admin, ids, "assign", user=odd, role="reader"))


def test_access_is_taken_away_as_it_was_shown(ids: dict[str, int], admin: Client, rita: Client) -> None:
    access = text(admin.get(f"/objects/{ids['sales']}/access?show=effective"))
    path = re.findall(r'href="(/metalakes/\d+/people/change\?what=take-away[^"]+)"', access)[0].replace("&amp;", "&")
    shown = text(admin.get(path))
    assert "Take rita&#x27;s access to lake.orders:eu.sales away?" in shown and "Only user rita holds it" in shown
    assert shown.count("is dropped") == 4, "said, and as changes of the plan"
    asked = {"user": "rita", "on": "table lake.orders:eu.sales"}
    assert roles.list_roles(actor("admin"), "demo") == ["reader", "visitor"]
    assert make(admin, ids, "take-away", **asked).headers["Location"] == "/tokens"
    assert roles.list_roles(actor("admin"), "demo") == []
    assert change(rita, ids, "take-away", **asked).status_code in (403, 404)
    toast = text(admin.get("/tokens"))
    assert "Undo" in toast and "access to lake.orders:eu.sales is taken away." in toast
    nothing = text(change(admin, ids, "take-away", user="mia", on="lake"))
    assert "No role does that" in nothing and "It is so already" in nothing
    for on in ("a.b.c.d", "lake.nowhere"):
        refused = change(admin, ids, "take-away", user="mia", on=on)
        assert refused.status_code in (400, 404) and refused.content.decode().count(f'name="on" value="{on}"') == 1
    give("rita", Kind.CATALOG, "lake", "use_catalog")
    assert "take-away" not in text(rita.get(f"/objects/{ids['lake']}/access"))


def test_a_deny_is_lifted_from_its_line(ids: dict[str, int], admin: Client) -> None:
    give("mia", Kind.CATALOG, "lake", "deny create_schema", role="no")
    roles.assign_roles(actor("admin"), "demo", "user", "rita", ["no"])
    access = text(admin.get(f"/objects/{ids['lake']}/access?q=mia"))
    (path,) = re.findall(r'href="([^"]+effect=deny[^"]+)"', access)
    shown = text(admin.get(path.replace("&amp;", "&")))
    assert "Lift what denies mia something on lake?" in shown and "1 other holds it and keeps it" in shown


def test_what_a_group_gives_is_taken_from_the_group(ids: dict[str, int], admin: Client) -> None:
    people.add_group(actor("admin"), "demo", "crew")
    people.set_group_users(actor("admin"), "demo", "crew", add=["mia", "rita"])
    give("mia", Kind.CATALOG, "lake", "use_catalog", "create_schema", role="crews")
    roles.assign_roles(actor("admin"), "demo", "group", "crew", ["crews"])
    roles.unassign_roles(actor("admin"), "demo", "user", "mia", ["crews"])
    access = text(admin.get(f"/objects/{ids['lake']}/access?q=crew"))
    assert access.count("what=take-away&amp;group=crew") == 2, "once for each of the two, who have two privileges each"
    assert "take-away&amp;user" not in access
    shown = text(change(admin, ids, "take-away", user="mia", on="lake"))
    assert "Nothing of this can be taken here." in shown and "It is so already" not in shown


def test_a_change_leads_back_to_a_page_of_ours_alone(ids: dict[str, int], admin: Client) -> None:
    page = text(change(admin, ids, "assign", user="mia", role="reader", back="//elsewhere.example"))
    assert "elsewhere" not in page


# Metalakes and schemas


def test_a_service_admin_makes_a_metalake(ids: dict[str, int], admin: Client, rita: Client) -> None:
    assert rita.get("/metalakes/new").status_code == 403
    assert "already exists" in text(admin.post("/metalakes/new", {"name": "demo"}), 422)
    answer = admin.post("/metalakes/new", {"name": "second", "comment": "Ours"})
    row = Metalake.objects.get(name="second")
    assert answer.headers["Location"] == f"/objects/{row.pk}"


def test_parents_of_a_schema_are_shown_before_they_are_made(ids: dict[str, int], admin: Client, rita: Client) -> None:
    path = f"/objects/{ids['orders']}/schemas/new"
    shown = text(admin.post(path, {"name": "us:west:retail"}))
    assert "3 schemas are missing" in shown
    assert all(f"<code>orders:{name}</code>" in shown for name in ("us", "us:west", "us:west:retail"))
    answer = admin.post(path, {"name": "us:west:retail", "act": "make"})
    assert answer.status_code == 302
    assert admin.post(path, {"name": "us:east"}).status_code == 302, "one level is made at once"
    for name in ("eu", "", "a::b", "x" * 300):
        text(admin.post(path, {"name": name}), 422)
    in_catalog = text(admin.get(f"/objects/{ids['lake']}/schemas/new"))
    assert "A:B makes B in A" in in_catalog and "no schemas inside" not in in_catalog
    assert rita.get(path).status_code == 403
    assert rita.get(f"/objects/{ids['payroll']}/schemas/new").status_code == 404
    assert admin.get(f"/objects/{ids['sales']}/schemas/new").status_code == 404


# Search


def test_the_search_leads_to_what_one_sees(ids: dict[str, int], admin: Client, rita: Client) -> None:
    page = text(admin.get("/search?q=SAL"))
    assert f"/objects/{ids['sales']}" in page and " › ".join(("demo", "lake", "orders", "eu")) in page  # noqa: RUF001
    assert f"/objects/{ids['payroll']}" in text(admin.get("/search?q=lake.pay"))
    assert f"/objects/{ids['payroll']}" not in text(rita.get("/search?q=pay"))
    part = rita.get("/search?q=sal", headers={"HX-Request": "true"})
    assert f"/objects/{ids['sales']}" in text(part) and "<html" not in part.content.decode()
    assert at(ids, "users", User.objects.get(username="mia").pk) in text(admin.get("/search?q=mia"))
    assert "Nothing that you see" in text(rita.get("/search?q=mia"))
    assert "512 characters" in text(admin.get("/search?q=" + "x" * 600), 422)


def test_a_role_that_is_nobodys_is_said_with_names_like_it(ids: dict[str, int], admin: Client) -> None:
    page = text(change(admin, ids, "assign", user="mia", role="Reeder"), 404)
    assert "Role Reeder does not exist. Did you mean reader?" in page and "changes[0]" not in page
    assert 'name="role" value="Reeder"' in page, "it can be typed anew"
    assert close_names(actor("mia"), "demo", "role", "Reeder") == [], "of those that one may read"


def test_guessing_names_leaves_the_search_of_objects(ids: dict[str, int], rita: Client) -> None:
    give("rita", Kind.SCHEMA, "lake.orders:eu", "manage_grants")
    with patch("authz.callers.enumeration.MISSES", 1):
        rita.get("/search?q=nobody-of-that-name")
        page = text(rita.get("/search?q=sales"))
    assert "Too many users, groups or roles" in page and f"/objects/{ids['sales']}" in page


def test_the_page_of_a_person_leads_to_their_access(ids: dict[str, int], admin: Client, rita: Client) -> None:
    path = at(ids, "users", User.objects.get(username="rita").pk)
    links = re.findall(r'href="(/objects/[^"]+rita)"', text(admin.get(path)).replace("&amp;", "&"))
    assert len(links) == 3
    for link in links:
        assert "rita" in text(admin.get(link))
    assert "/access?" not in text(rita.get(path))
