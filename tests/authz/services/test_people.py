"""Users of a metalake: added by name, shown to those who manage them, removed without leaving a right behind."""

from __future__ import annotations

from typing import Any

import pytest

from authz.models import Group, User
from authz.services import owners, people, roles
from metalake.errors import AlreadyExists, Forbidden, Invalid, NotFound, NotInUse
from metalake.kinds import Kind
from metalake.models import Metalake
from tests.authz.small_world import Wire, World


def names(persons: list[people.Person]) -> list[str]:
    return [person.name for person in persons]


def test_adding_an_unknown_name_makes_an_account_that_cannot_sign_in(world: World) -> None:
    added = people.add_user(world.olga, "acme", "newcomer", external_id="x-1")
    account = User.objects.get(username="newcomer")
    assert (added.name, added.roles, added.row.external_id) == ("newcomer", [], "x-1")
    assert not account.has_usable_password() and not account.is_staff and not account.is_superuser
    assert world.actor("newcomer").is_member(world.acme.id)
    assert [(entry.actor, entry.full_name) for entry in world.events("user.added")] == [("olga", "newcomer")]


def test_adding_a_known_account_keeps_it_as_it_is(world: World) -> None:
    before = world.users["sam"].password
    people.add_user(world.olga, "acme", "sam")
    assert User.objects.get(username="sam").password == before
    assert world.actor("sam").is_member(world.acme.id)


@pytest.mark.store
def test_a_user_is_added_once(world: World) -> None:
    with pytest.raises(AlreadyExists) as taken:
        people.add_user(world.olga, "acme", "mia")
    assert taken.value.kind == "user"


def test_a_user_added_as_disabled_sees_nothing(world: World) -> None:
    people.add_user(world.olga, "acme", "sam", enabled=False)
    assert not world.actor("sam").is_member(world.acme.id)
    with pytest.raises(NotFound):
        people.list_users(world.actor("sam"), "acme")


@pytest.mark.store
@pytest.mark.parametrize("name", ["", "a:b", "a\tb", " a", "a\x00", "a" * 129, "a\u2028b", "\ud800"])
def test_names_that_no_user_can_have(world: World, name: str) -> None:
    with pytest.raises(Invalid):
        people.add_user(world.olga, "acme", name)


@pytest.mark.store
@pytest.mark.parametrize("name", ["a", "a" * 128, "anna.k@example.org", "José", "a b", "名"])
def test_names_that_a_user_can_have(world: World, name: str) -> None:
    people.add_user(world.olga, "acme", name)
    assert people.get_user(world.olga, "acme", name).name == name


def test_users_are_managed_by_the_owner_and_by_holders_of_manage_users(world: World) -> None:
    with pytest.raises(Forbidden):
        people.add_user(world.mia, "acme", "sam")
    with pytest.raises(Forbidden):
        people.remove_user(world.mia, "acme", "nils")
    world.give("mia", "manage_users@acme")
    people.add_user(world.mia, "acme", "sam")
    assert people.remove_user(world.mia, "acme", "nils")


def test_a_stranger_learns_nothing_of_the_metalake(world: World) -> None:
    sam = world.actor("sam")
    refusals = []
    for metalake in ("acme", "nowhere"):
        for act in (
            lambda m: people.list_users(sam, m),
            lambda m: people.get_user(sam, m, "mia"),
            lambda m: people.add_user(sam, m, "other"),
            lambda m: people.remove_user(sam, m, "mia"),
        ):
            with pytest.raises(NotFound) as miss:
                act(metalake)
            refusals.append((miss.value.kind, miss.value.message.replace(metalake, "*")))
    assert set(refusals) == {("metalake", "Metalake * does not exist.")}


@pytest.mark.store
def test_a_list_shows_all_to_those_who_manage_users_and_oneself_to_others(world: World) -> None:
    assert names(people.list_users(world.olga, "acme")) == ["mia", "nils", "olga"]
    assert names(people.list_users(world.mia, "acme")) == ["mia"]
    assert people.get_user(world.mia, "acme", "mia").name == "mia"
    for name in ("nils", "nobody"):
        with pytest.raises(NotFound) as miss:
            people.get_user(world.mia, "acme", name)
        assert (miss.value.kind, miss.value.message) == ("user", f"User {name} does not exist.")


def test_a_list_shows_the_roles_of_this_metalake(world: World) -> None:
    first = world.give("mia", "use_catalog@lake")
    second = world.give("mia")
    shown = {person.name: person.roles for person in people.list_users(world.olga, "acme")}
    assert shown == {"mia": [first, second], "nils": [], "olga": []}
    assert people.get_user(world.mia, "acme", "mia").roles == [first, second]


def test_a_list_takes_as_many_statements_for_many_users_as_for_few(
    world: World, django_assert_num_queries: Any
) -> None:
    olga = world.olga
    for more in range(2):
        for number in range(10 * more):
            people.add_user(olga, "acme", f"user{number}")
        with django_assert_num_queries(3):
            assert len(people.list_users(olga, "acme")) == 3 + 10 * more


def test_removing_a_user_takes_rights_at_once_and_hands_over_what_they_owned(world: World) -> None:
    role = world.give("mia", "use_catalog@lake")
    world.group("team", "mia")
    world.own("mia", world.t)
    assert people.remove_user(world.olga, "acme", "mia")
    mia = world.mia
    assert (mia.is_member(world.acme.id), mia.roles, mia.groups) == (False, (), ())
    assert owners.get_owner(world.olga, "acme", Kind.TABLE, "lake.A:B.t") == ("olga", "user")
    assert User.objects.filter(username="mia").exists()
    (entry,) = world.events("user.removed")
    assert entry.details["objects_handed_over"] == 1
    people.add_user(world.olga, "acme", "mia")
    assert people.get_user(world.olga, "acme", "mia").roles == []
    assert role in roles.list_roles(world.olga, "acme")


def test_removing_a_user_leaves_other_metalakes_alone(world: World) -> None:
    other = world.metalake("other", "mia")
    people.remove_user(world.olga, "acme", "mia")
    assert world.mia.is_member(other.id)
    other.refresh_from_db()
    assert other.owner_user == world.users["mia"]


def test_removing_who_is_not_there_says_so(world: World) -> None:
    assert people.remove_user(world.olga, "acme", "sam") is False
    assert people.remove_user(world.olga, "acme", "nobody") is False
    assert world.events("user.removed") == []


def test_the_metalakes_owner_cannot_be_removed(world: World) -> None:
    world.give("mia", "manage_users@acme")
    with pytest.raises(Invalid):
        people.remove_user(world.mia, "acme", "olga")
    assert world.olga.is_member(world.acme.id)


@pytest.mark.store
def test_the_last_user_of_the_group_that_owns_the_metalake_cannot_be_removed(world: World) -> None:
    world.give("nils", "manage_users@acme")
    world.group("board", "olga", "mia")
    owners.set_owner(world.olga, "acme", Kind.METALAKE, "acme", "board", "group")
    assert people.remove_user(world.actor("nils"), "acme", "mia")
    with pytest.raises(Invalid):
        people.remove_user(world.actor("nils"), "acme", "olga")
    assert Group.objects.get(name="board").users.get().username == "olga"


def test_nothing_answers_in_a_disabled_metalake(world: World) -> None:
    Metalake.objects.update(enabled=False)
    with pytest.raises(NotInUse):
        people.list_users(world.olga, "acme")
    with pytest.raises(NotInUse):
        people.add_user(world.olga, "acme", "sam")
    with pytest.raises(NotFound):
        people.list_users(world.actor("sam"), "acme")


def test_on_the_wire(world: World, wire: Wire) -> None:
    status, body = wire("POST", "metalakes/acme/users", {"name": "sam", "externalId": "x", "enabled": True})
    assert status == 200 and body["code"] == 0
    assert body["user"]["name"] == "sam" and body["user"]["externalId"] == "x" and body["user"]["roles"] == []
    assert body["user"]["audit"]["creator"] == "olga"
    assert wire("GET", "metalakes/acme/users")[1] == {"code": 0, "names": ["mia", "nils", "olga", "sam"]}
    detailed = wire("GET", "metalakes/acme/users?details=true")[1]["users"]
    assert [user["name"] for user in detailed] == ["mia", "nils", "olga", "sam"]
    assert wire("GET", "metalakes/acme/users/sam")[1]["user"]["name"] == "sam"
    assert wire("DELETE", "metalakes/acme/users/sam") == (200, {"code": 0, "removed": True})
    assert wire("DELETE", "metalakes/acme/users/sam") == (200, {"code": 0, "removed": False})


@pytest.mark.store
def test_failures_on_the_wire(world: World, wire: Wire) -> None:
    def failure(*asked: Any, **how: Any) -> tuple[int, int, str]:
        status, body = wire(*asked, **how)
        return status, body["code"], body["type"]

    users = "metalakes/acme/users"
    assert failure("GET", f"{users}/nobody") == (404, 1003, "NoSuchUserException")
    assert failure("POST", users, {"name": "mia"}) == (409, 1004, "UserAlreadyExistsException")
    assert failure("POST", users, {"name": "x"}, user="mia") == (403, 1008, "ForbiddenException")
    assert failure("GET", users, user="sam") == (404, 1003, "NoSuchMetalakeException")
    assert failure("POST", users, {"name": "x", "roles": ["r"]}) == (400, 1001, "IllegalArgumentException")
    assert failure("POST", users, {"name": "x\x00"})[:2] == (400, 1001)
    assert failure("GET", f"{users}?details=maybe")[:2] == (400, 1001)
    assert failure("GET", users, authorization="Bearer mlk_no")[0] == 401


def test_names_travel_encoded(world: World, wire: Wire) -> None:
    people.add_user(world.olga, "acme", "a/b c%41")
    assert wire("GET", "metalakes/acme/users/a%2Fb%20c%2541")[1]["user"]["name"] == "a/b c%41"
    assert wire("GET", "metalakes/acme/users/a%2Fb%20cA")[0] == 404


def test_me(world: World, wire: Wire) -> None:
    assert wire("GET", "authn/me", user="sam") == (200, {"code": 0, "principal": "sam"})
