"""Owners: shown to whoever may load the object, set by its owners and those above it."""

from __future__ import annotations

import pytest

from authz.models import Member, User
from authz.services import grants, owners, people, roles
from metalake.errors import Forbidden, Invalid, NotFound
from metalake.kinds import Kind
from metalake.models import Securable
from tests.authz.small_world import Wire, World

ALL = [
    (Kind.METALAKE, "acme"),
    (Kind.CATALOG, "lake"),
    (Kind.SCHEMA, "lake.A"),
    (Kind.SCHEMA, "lake.A:B"),
    (Kind.TABLE, "lake.A:B.t"),
]


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_an_object_changes_hands(world: World, kind: Kind, name: str) -> None:
    owners.set_owner(world.olga, "acme", kind, name, "mia", "user")
    assert owners.get_owner(world.olga, "acme", kind, name) == ("mia", "user")
    (entry,) = world.events("owner.set")
    assert (entry.kind, entry.full_name) == (kind, name)
    assert entry.details == {"owner": "mia", "type": "user", "before": {"name": "olga", "type": "user"}}


def test_a_group_can_own(world: World) -> None:
    world.group("team", "mia")
    owners.set_owner(world.olga, "acme", Kind.CATALOG, "lake", "team", "group")
    assert owners.get_owner(world.olga, "acme", Kind.CATALOG, "lake") == ("team", "group")
    owners.set_owner(world.mia, "acme", Kind.TABLE, "lake.A:B.t", "mia", "user")


def test_a_group_of_others_is_not_made_an_owner(world: World, wire: Wire) -> None:
    """It would freeze the group: who is in one that owns is for those who assign roles to say."""
    world.group("team", "nils")
    world.own("mia", world.t)
    world.give("mia", "use_catalog@lake", "use_schema@lake", "manage_groups@acme")
    body = {"name": "team", "type": "group"}
    path = "metalakes/acme/owners/table/lake.A:B.t"
    status, refused = wire("PUT", path, body, user="mia")
    assert (status, refused["code"]) == (403, 1008)
    assert "a group that they are in; to any other it takes manage_grants on metalake acme" in refused["message"]
    assert wire("PUT", path, body | {"name": "none"}, user="mia") == (status, refused), "nor does it tell which are"
    people.set_group_users(world.mia, "acme", "team", add=["mia"])
    owners.set_owner(world.mia, "acme", Kind.TABLE, "lake.A:B.t", "team", "group")
    with pytest.raises(Forbidden):
        people.set_group_users(world.mia, "acme", "team", remove=["nils"])
    world.group("others", "nils")
    owners.set_owner(world.olga, "acme", Kind.TABLE, "lake.A:B.t", "others", "group")


SHED = "would shed a DENY that mia may not lift"


def test_handing_an_object_over_sheds_no_deny(world: World) -> None:
    """DENY does not cut ownership, so who hands over lifts what the new owner, or anybody in it, is denied there."""
    world.own("mia", world.t)
    world.give("mia", "use_catalog@lake", "use_schema@lake")
    world.group("team", "nils", "mia")
    for where in ("acme", "lake", "lake.A:B", "lake.A:B.t"):
        role = world.give("nils", f"deny select_table@{where}")
        for name, type_ in (("nils", "user"), ("team", "group")):
            with pytest.raises(Forbidden, match=SHED) as refused:
                owners.set_owner(world.mia, "acme", Kind.TABLE, "lake.A:B.t", name, type_)
            assert role not in refused.value.message
        roles.drop_role(world.olga, "acme", role)
    owners.set_owner(world.mia, "acme", Kind.TABLE, "lake.A:B.t", "nils", "user")


def test_a_deny_elsewhere_or_on_who_owns_it_from_above_is_not_asked(world: World) -> None:
    world.give("mia", "use_catalog@lake", "use_schema@lake")
    world.give("nils", "deny use_catalog@files", "deny select_table@lake.A:B.t")
    world.own("mia", world.schema("C"))
    owners.set_owner(world.mia, "acme", Kind.SCHEMA, "lake.C", "nils", "user")
    world.own("mia", world.t)
    world.own("nils", world.a)
    owners.set_owner(world.mia, "acme", Kind.TABLE, "lake.A:B.t", "nils", "user")


def test_who_may_lift_what_is_denied_below_hands_it_over(world: World) -> None:
    world.own("mia", world.a)
    world.give("mia", "use_catalog@lake")
    role = world.give("nils", "deny select_table@lake.A:B.t", "deny use_schema@lake.A")
    with pytest.raises(Forbidden, match=SHED):
        owners.set_owner(world.mia, "acme", Kind.SCHEMA, "lake.A", "nils", "user")
    grants.revoke_privileges(world.olga, "acme", role, Kind.SCHEMA, "lake.A", [("use_schema", "deny")])
    owners.set_owner(world.mia, "acme", Kind.SCHEMA, "lake.A", "nils", "user")


def test_the_same_owner_again_changes_nothing(world: World) -> None:
    version = Securable.objects.get(pk=world.t.pk).version
    owners.set_owner(world.olga, "acme", Kind.TABLE, "lake.A:B.t", "olga", "user")
    assert world.events("owner.set") == [] and Securable.objects.get(pk=world.t.pk).version == version
    owners.set_owner(world.olga, "acme", Kind.TABLE, "lake.A:B.t", "mia", "user")
    assert Securable.objects.get(pk=world.t.pk).version == version + 1


def test_the_new_owner_is_of_the_metalake(world: World) -> None:
    for name, type_ in (("sam", "user"), ("nobody", "user"), ("team", "group"), ("mia", "group")):
        with pytest.raises(NotFound) as miss:
            owners.set_owner(world.olga, "acme", Kind.CATALOG, "lake", name, type_)
        assert miss.value.kind == type_
    assert owners.get_owner(world.olga, "acme", Kind.CATALOG, "lake") == ("olga", "user")


def test_owners_at_and_above_may_hand_over_if_they_get_there(world: World) -> None:
    def hand_over(name: str = "lake.A:B.t") -> None:
        kind = Kind.TABLE if name.endswith("t") else Kind.SCHEMA
        owners.set_owner(world.mia, "acme", kind, name, "nils", "user")

    world.own("mia", world.t)
    with pytest.raises(NotFound):
        hand_over()
    world.give("mia", "use_catalog@lake")
    with pytest.raises(NotFound):
        hand_over()
    world.give("mia", "use_schema@lake.A")
    hand_over()
    with pytest.raises(NotFound):
        hand_over()
    world.own("mia", world.a)
    hand_over("lake.A:B")
    world.own("mia", world.lake)
    hand_over("lake.A")


def test_who_may_grant_or_change_is_no_owner(world: World) -> None:
    world.give("mia", "use_catalog@lake", "use_schema@lake", "manage_grants@acme", "modify_table@lake")
    for kind, name in ALL:
        with pytest.raises(Forbidden):
            owners.set_owner(world.mia, "acme", kind, name, "mia", "user")


def test_a_metalakes_owner_is_somebody_who_can_act(world: World) -> None:
    def hand_to(name: str, type_: str) -> None:
        owners.set_owner(world.olga, "acme", Kind.METALAKE, "acme", name, type_)

    world.group("empty")
    with pytest.raises(Invalid):
        hand_to("empty", "group")
    Member.objects.filter(user=world.users["nils"]).update(enabled=False)
    User.objects.filter(username="mia").update(is_active=False)
    for name in ("nils", "mia"):
        with pytest.raises(Invalid):
            hand_to(name, "user")
    people.set_group_users(world.olga, "acme", "empty", add=["mia"])
    with pytest.raises(Invalid):
        hand_to("empty", "group")
    assert owners.get_owner(world.olga, "acme", Kind.METALAKE, "acme") == ("olga", "user")
    Member.objects.filter(user=world.users["nils"]).update(enabled=True)


def test_the_owner_is_shown_to_whoever_may_load_the_object(world: World) -> None:
    hidden = []
    for name in ("lake", "nothing"):
        with pytest.raises(NotFound) as miss:
            owners.get_owner(world.mia, "acme", Kind.CATALOG, name)
        hidden.append((miss.value.kind, miss.value.message.replace(name, "*")))
    assert hidden[0] == hidden[1] == ("object", "Catalog * does not exist.")
    world.give("mia", "use_catalog@lake", "use_schema@lake.A:B")
    assert owners.get_owner(world.mia, "acme", Kind.CATALOG, "lake") == ("olga", "user")
    with pytest.raises(Forbidden):
        owners.get_owner(world.mia, "acme", Kind.SCHEMA, "lake.A")
    with pytest.raises(NotFound):
        owners.get_owner(world.actor("sam"), "acme", Kind.METALAKE, "acme")


def test_a_columns_owner_is_its_tables(world: World) -> None:
    assert owners.get_owner(world.olga, "acme", Kind.COLUMN, "lake.A:B.t.c") == ("olga", "user")
    with pytest.raises(Invalid):
        owners.set_owner(world.olga, "acme", Kind.COLUMN, "lake.A:B.t.c", "mia", "user")


def test_a_role_changes_hands_where_it_may_be_seen(world: World) -> None:
    role = world.give("mia")
    assert owners.get_owner(world.mia, "acme", Kind.ROLE, role) == ("olga", "user")
    with pytest.raises(Forbidden):
        owners.set_owner(world.mia, "acme", Kind.ROLE, role, "mia", "user")
    for act in (
        lambda: owners.get_owner(world.actor("nils"), "acme", Kind.ROLE, role),
        lambda: owners.set_owner(world.actor("nils"), "acme", Kind.ROLE, role, "nils", "user"),
    ):
        with pytest.raises(NotFound) as miss:
            act()
        assert miss.value.message == f"Role {role} does not exist."
    owners.set_owner(world.olga, "acme", Kind.ROLE, role, "mia", "user")
    assert roles.drop_role(world.mia, "acme", role)


def test_names_with_dots_and_percents_are_addressed_encoded(world: World) -> None:
    odd = world.schema("a.b%c")
    world.table("t.1", odd)
    assert owners.get_owner(world.olga, "acme", Kind.TABLE, "lake.a%2Eb%25c.t%2E1") == ("olga", "user")
    with pytest.raises(NotFound):
        owners.get_owner(world.olga, "acme", Kind.SCHEMA, "lake.a%252Eb%25c")


def test_on_the_wire(world: World, wire: Wire) -> None:
    at = "metalakes/acme/owners/schema/lake.A%3AB"
    assert wire("GET", at) == (200, {"code": 0, "owner": {"name": "olga", "type": "USER"}})
    assert wire("PUT", at, {"name": "mia", "type": "USER"}) == (200, {"code": 0, "set": True})
    assert wire("GET", at)[1]["owner"] == {"name": "mia", "type": "USER"}
    status, answer = wire("PUT", at, {"name": "none", "type": "GROUP"})
    assert (status, answer["code"], answer["type"]) == (404, 1003, "NoSuchGroupException")
    assert wire("GET", "metalakes/acme/owners/schema/lake.X")[1]["type"] == "NoSuchMetadataObjectException"
    assert wire("PUT", at, {"name": "mia", "type": "ROLE"})[0] == 400
