"""The reference model says what docs/authorization.md says, as decision tables, row by row, in a world by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.authz.model import ALLOW, DENY, Actor, Grant, Group, Party, Request, Securable, User, World, answer, visible
from tests.authz.worlds import with_owner
from tests.cases import each

# A small world by hand. Alice asks; the governor owns whatever nobody else is said to own.

GOVERNOR, ALICE, STRANGER, ADMIN, GROUP = 1, 2, 3, 4, 5
TREE = {
    "m": ("metalake", None),
    "c": ("catalog", "m"),
    "other": ("catalog", "m"),
    "A": ("schema", "c"),
    "X": ("schema", "c"),
    "A:B": ("schema", "A"),
    "A:t": ("table", "A"),
    "A:B:t": ("table", "A:B"),
    "A:B:v": ("view", "A:B"),
    "X:t": ("table", "X"),
    "role": ("role", "m"),
}
ID = {name: 10 + n for n, name in enumerate(TREE)}
NAME = {id: name for name, id in ID.items()}


def a_world(*grants: str, owns: str = "", through_group: bool = False) -> World:
    """Alice holds one role, whose grants are written "privilege@object" or "deny privilege@object"."""
    alice = Party("group", GROUP) if through_group else Party("user", ALICE)
    owned = owns.split()
    objects = {}
    for name, (kind, parent) in TREE.items():
        owner = alice if name in owned else Party("user", GOVERNOR)
        objects[ID[name]] = Securable(ID[name], kind, name, ID[parent] if parent else None, owner)
    return World(
        users={id: User(id, f"user{id}", service_admin=id == ADMIN) for id in (GOVERNOR, ALICE, STRANGER, ADMIN)},
        groups={GROUP: Group(GROUP, "group", ID["m"], frozenset({ALICE}))},
        objects=objects,
        members=frozenset({(ID["m"], GOVERNOR), (ID["m"], ALICE)}),
        assignments=frozenset({(ID["role"], alice)}),
        grants=tuple(grant_from(text) for text in grants),
    )


def grant_from(text: str) -> Grant:
    privilege, _, obj = text.removeprefix("deny ").partition("@")
    return Grant(ID["role"], privilege, DENY if text.startswith("deny ") else ALLOW, ID[obj])


def ask(world: World, operation: str, obj: str, missing: int = 0, privilege: str = "", user: int = ALICE) -> str:
    return answer(world, user, operation, ID[obj], missing, privilege)


def listed(world: World, container: str, kind: str) -> dict[str, str]:
    return {NAME[id]: how for id, how in visible(world, ALICE, ID[container], kind).items()}


# Creating A:B:C, one row a case. Where A is missing too, the nearest that exists is the catalog.

A_EXISTS = [
    ("create_schema@m", "", True),
    ("create_schema@c", "", True),
    ("create_schema@A", "", True),
    ("create_schema@X", "", False),
    ("create_schema@c, deny create_schema@A", "", False),
    ("create_schema@A, deny create_schema@c", "", False),
    ("create_schema@A, deny create_schema@X", "", True),
    ("", "A", True),
    ("bootstrap_namespace@c", "", True),
    ("bootstrap_namespace@m", "", True),
    ("bootstrap_namespace@c, deny create_schema@A", "", False),
    ("use_schema@A", "", False),
    ("manage_grants@A", "", False),
]
A_MISSING = [
    ("create_schema@c", "", True),
    ("create_schema@A", "", False),
    ("bootstrap_namespace@c", "", True),
    ("", "X", False),
]


@each("through_group", [False, True])
@each(
    "nearest, missing, grants, owns, created",
    [("A", 1, *row) for row in A_EXISTS] + [("c", 2, *row) for row in A_MISSING],
)
def test_create_nested_schema(
    nearest: str, missing: int, grants: str, owns: str, created: bool, through_group: bool
) -> None:
    written = [grant for grant in grants.split(", ") if grant]
    with_traversal = a_world("use_catalog@c", *written, owns=owns, through_group=through_group)
    assert (ask(with_traversal, "create_schema", nearest, missing) == "ok") is created
    without = a_world(*written, owns=owns, through_group=through_group)
    assert ask(without, "create_schema", nearest, missing) != "ok"


@pytest.mark.parametrize("owns", ["c", "m"])
@pytest.mark.parametrize("denied", ["use_catalog@c", "create_schema@m", "use_schema@c"])
def test_catalog_and_metalake_owners_create_anywhere(owns: str, denied: str) -> None:
    world = a_world(f"deny {denied}", owns=owns)
    assert ask(world, "create_schema", "A", missing=1) == "ok"
    assert ask(world, "create_schema", "c", missing=2) == "ok"


# Lists and checks: path only, unseen against forbidden


def test_whoever_is_no_member_sees_nothing() -> None:
    world = a_world()
    for user in (STRANGER, ADMIN):
        assert ask(world, "load_metalake", "m", user=user) == "unseen"
        assert ask(world, "list_catalogs", "m", user=user) == "unseen"
        assert visible(world, user, None, "metalake") == {}
    owned = with_owner(world, ID["m"], Party("user", STRANGER))
    assert ask(owned, "drop_metalake", "m", user=STRANGER) == "unseen"


def test_service_administrators_only_create_metalakes() -> None:
    world = a_world()
    assert answer(world, ADMIN, "create_metalake", None) == "ok"
    assert answer(world, GOVERNOR, "create_metalake", None) == "forbidden"
    member = replace(world, members=world.members | {(ID["m"], ADMIN)})
    assert ask(member, "alter_metalake", "m", user=ADMIN) == "forbidden"
    assert ask(member, "load_catalog", "c", user=ADMIN) == "unseen"


def test_member_without_grants_sees_the_metalake_alone() -> None:
    world = a_world()
    assert ask(world, "load_metalake", "m") == ask(world, "list_catalogs", "m") == "ok"
    assert ask(world, "create_catalog", "m") == "forbidden"
    assert listed(world, "m", "catalog") == {}
    for operation in ("load_catalog", "list_schemas", "drop_catalog", "create_schema"):
        assert ask(world, operation, "c") == "unseen"


def test_ancestor_of_a_visible_schema_is_a_path() -> None:
    world = a_world("use_catalog@c", "use_schema@A:B")
    assert listed(world, "c", "schema") == {"A": "path"}
    assert listed(world, "A", "schema") == {"A:B": "full"}
    assert ask(world, "load_schema", "A") == "forbidden"
    assert ask(world, "list_schemas", "A") == ask(world, "list_tables", "A") == "ok"
    assert listed(world, "A", "table") == {}
    assert (
        ask(world, "load_schema", "X") == ask(world, "list_schemas", "X") == ask(world, "list_tables", "X") == "unseen"
    )


def test_hidden_table_stays_hidden_in_a_seen_schema() -> None:
    world = a_world("use_catalog@c", "use_schema@c", "select_table@A:t")
    assert listed(world, "A", "table") == {"A:t": "full"}
    assert ask(world, "load_table", "A:B:t") == ask(world, "drop_table", "A:B:t") == "unseen"
    assert ask(world, "drop_table", "A:t") == "forbidden"


def test_creating_in_a_hidden_schema_is_unseen_and_in_a_seen_one_forbidden() -> None:
    world = a_world("use_catalog@c", "use_schema@A:B", "create_table@X")
    assert ask(world, "create_table", "X") == ask(world, "create_view", "X") == "unseen"
    assert ask(world, "create_table", "A") == ask(world, "create_table", "A:B") == "forbidden"


def test_creating_a_schema_without_the_right_is_forbidden_below_hidden_and_missing_parents() -> None:
    world = a_world("use_catalog@c")
    assert ask(world, "load_schema", "X") == "unseen"
    assert ask(world, "create_schema", "X") == ask(world, "create_schema", "c", missing=1) == "forbidden"


def test_view_that_may_only_be_dropped_is_known_by_name() -> None:
    world = a_world("use_catalog@c", "use_schema@c", "drop_view@c")
    assert listed(world, "A:B", "view") == {"A:B:v": "path"}
    assert ask(world, "drop_view", "A:B:v") == "ok"
    assert ask(world, "load_view", "A:B:v") == "forbidden"
    assert listed(a_world("use_catalog@c", "use_schema@c", "create_view@c"), "A:B", "view") == {}


# Owners and traversal


@pytest.mark.parametrize("owns", ["A", "A:B"])
def test_schema_owner_needs_use_catalog_alone(owns: str) -> None:
    for deny in ("deny use_schema@m", "deny use_schema@A:B", "deny select_table@A:B", "deny create_table@c"):
        world = a_world("use_catalog@c", deny, owns=owns)
        for operation, obj in (
            ("load_schema", "A:B"),
            ("alter_schema", "A:B"),
            ("drop_schema", "A:B"),
            ("create_schema", "A:B"),
            ("create_table", "A:B"),
            ("load_table", "A:B:t"),
            ("drop_table", "A:B:t"),
            ("set_owner", "A:B:t"),
        ):
            assert ask(world, operation, obj) == "ok", (deny, operation)
    assert ask(a_world(owns=owns), "load_schema", "A:B") == "unseen"
    assert ask(a_world("use_catalog@m", "deny use_catalog@c", owns=owns), "drop_table", "A:B:t") == "unseen"


def test_table_owner_needs_use_catalog_and_use_schema() -> None:
    for scope in ("m", "c", "A", "A:B"):
        world = a_world(
            "use_catalog@c", f"use_schema@{scope}", "deny modify_table@c", "deny select_table@m", owns="A:B:t"
        )
        assert ask(world, "drop_table", "A:B:t") == ask(world, "commit_table", "A:B:t") == "ok"
        assert ask(world, "vend_credentials", "A:B:t") == "ok"
    for grants in (["use_catalog@c"], ["use_schema@A:B"], ["use_catalog@c", "use_schema@A:B", "deny use_schema@A"]):
        assert ask(a_world(*grants, owns="A:B:t"), "load_table", "A:B:t") == "unseen"


@pytest.mark.parametrize("owns", ["c", "m"])
def test_catalog_and_metalake_owners_need_neither_and_no_deny_stops_them(owns: str) -> None:
    world = a_world("deny use_catalog@m", "deny use_schema@c", "deny modify_table@A:B:t", owns=owns)
    for operation, obj in (
        ("load_catalog", "c"),
        ("drop_schema", "A:B"),
        ("alter_table", "A:B:t"),
        ("drop_view", "A:B:v"),
    ):
        assert ask(world, operation, obj) == "ok"
    assert ask(world, "drop_metalake", "m") == ("ok" if owns == "m" else "forbidden")


def test_each_privilege_opens_its_own_operations() -> None:
    inside = ("use_catalog@c", "use_schema@c")
    modify = a_world(*inside, "modify_table@c", "deny select_table@c")
    assert ask(modify, "load_table", "A:t") == ask(modify, "alter_table", "A:t") == "ok"
    for operation in ("drop_table", "rename_table", "vend_credentials", "set_owner"):
        assert ask(modify, operation, "A:t") == "forbidden"
    select = a_world(*inside, "select_table@A", "deny modify_table@A")
    assert ask(select, "vend_credentials", "A:B:t") == "ok"
    assert ask(select, "alter_table", "A:B:t") == "forbidden"
    assert ask(select, "load_view", "A:B:v") == "unseen"


@pytest.mark.parametrize("scope", ["m", "c", "A", "A:B"])
def test_deny_in_one_role_beats_allow_in_another(scope: str) -> None:
    world = a_world("use_catalog@c", "use_schema@A")
    second = Securable(99, "role", "second", ID["m"], Party("user", GOVERNOR))
    denying = replace(
        world,
        objects={**world.objects, second.id: second},
        assignments=world.assignments | {(second.id, Party("group", GROUP))},
        grants=(*world.grants, Grant(second.id, "use_schema", DENY, ID[scope])),
    )
    assert ask(world, "load_schema", "A:B") == "ok"
    assert ask(denying, "load_schema", "A:B") != "ok"
    assert (ask(denying, "load_schema", "A") == "ok") is (scope == "A:B")


def test_enabling_a_catalog_is_its_owners() -> None:
    assert ask(a_world("use_catalog@m"), "enable_catalog", "c") == "forbidden"
    assert ask(a_world(owns="c"), "enable_catalog", "c") == ask(a_world(owns="m"), "enable_catalog", "c") == "ok"


# Creating a schema


def test_deny_of_use_schema_on_the_nearest_parent_blocks_creation() -> None:
    for scope in ("A", "c", "m"):
        for right in ("create_schema@c", "bootstrap_namespace@c"):
            world = a_world("use_catalog@c", right, f"deny use_schema@{scope}")
            assert ask(world, "create_schema", "A", missing=1) == "forbidden"
            assert ask(world, "create_schema", "c", missing=1) == "ok"


def test_creation_needs_no_use_schema() -> None:
    assert ask(a_world("use_catalog@c", "create_schema@A"), "create_schema", "A:B") == "ok"


def test_bootstrap_makes_a_top_schema_through_its_child_and_only_so() -> None:
    world = a_world("use_catalog@c", "bootstrap_namespace@c")
    assert ask(world, "create_schema", "c", missing=1) == "ok"
    assert ask(world, "create_schema", "c") == ask(world, "create_schema", "A") == "forbidden"


def test_bootstrap_is_given_by_catalog_and_metalake_owners_alone() -> None:
    assert ask(a_world(owns="c"), "grant_privilege", "c", privilege="bootstrap_namespace") == "ok"
    assert ask(a_world(owns="c"), "grant_privilege", "m", privilege="bootstrap_namespace") == "forbidden"
    holder = a_world("use_catalog@c", "manage_grants@m")
    assert ask(holder, "grant_privilege", "c", privilege="bootstrap_namespace") == "forbidden"
    assert ask(holder, "grant_privilege", "c", privilege="create_schema") == "ok"


# Who grants, and roles


def test_manage_grants_reaches_below_its_scope_and_not_past_traversal() -> None:
    world = a_world("use_catalog@c", "use_schema@A", "manage_grants@A")
    for obj, said in (
        ("A", "ok"),
        ("A:B", "ok"),
        ("A:B:t", "ok"),
        ("c", "forbidden"),
        ("X", "unseen"),
        ("X:t", "unseen"),
    ):
        assert ask(world, "grant_privilege", obj, privilege="use_schema") == said
    assert ask(a_world("manage_grants@A"), "grant_privilege", "A", privilege="use_schema") == "unseen"
    assert (
        ask(a_world("use_catalog@c", "manage_grants@A"), "grant_privilege", "A:t", privilege="select_table") == "unseen"
    )


def test_manage_grants_is_passed_on_by_owners_and_from_the_metalake() -> None:
    traversal = ("use_catalog@c", "use_schema@c")
    assert ask(a_world(*traversal, "manage_grants@c"), "grant_privilege", "A", privilege="manage_grants") == "forbidden"
    assert ask(a_world(*traversal, "manage_grants@m"), "grant_privilege", "A", privilege="manage_grants") == "ok"
    assert ask(a_world(*traversal, owns="A:t"), "grant_privilege", "A:t", privilege="manage_grants") == "ok"


def test_a_deny_is_lifted_from_above() -> None:
    traversal = ("use_catalog@c", "use_schema@c")
    assert ask(a_world(*traversal, owns="A:t"), "lift_deny", "A:t") == "forbidden"
    assert ask(a_world(*traversal, owns="A"), "lift_deny", "A:t") == "ok"
    assert ask(a_world(*traversal, owns="A"), "lift_deny", "A") == "forbidden"
    assert ask(a_world(*traversal, "manage_grants@c"), "lift_deny", "A") == "ok"
    assert ask(a_world("manage_grants@m"), "lift_deny", "m") == "forbidden"
    assert ask(a_world(owns="m"), "lift_deny", "m") == "ok"


def test_roles_are_read_by_holders_and_dropped_by_owners_who_may_lift_their_denies() -> None:
    assert ask(a_world(), "load_role", "role") == "ok"
    assert ask(a_world(), "load_role", "role", user=STRANGER) == "unseen"
    assert ask(a_world(), "drop_role", "role") == ask(a_world(), "assign_role", "role") == "forbidden"
    assert ask(a_world(owns="role"), "assign_role", "role") == "forbidden"
    assert ask(a_world("manage_grants@m"), "assign_role", "role") == "ok"
    assert ask(a_world("use_catalog@c", owns="role"), "drop_role", "role") == "ok"
    assert ask(a_world("deny use_catalog@c", owns="role"), "drop_role", "role") == "forbidden"


# How it is asked: when, with which roles, in which groups of a token


def loads(world: World, obj: str, how: Request) -> bool:
    return answer(world, ALICE, f"load_{TREE[obj][0]}", ID[obj], how=how) == "ok"


def test_a_grant_counts_from_its_start_until_before_its_end() -> None:
    for text, before in (("use_catalog@c", False), ("deny use_catalog@c", True)):
        spanned = grant_from(text)._replace(starts=2, ends=4)
        world = a_world(*(["use_catalog@m"] if before else []))
        told = [loads(replace(world, grants=(*world.grants, spanned)), "c", Request(now)) for now in range(6)]
        assert told == [before, before, not before, not before, before, before]


def test_dropping_a_role_lifts_the_denies_to_come_and_not_the_ended() -> None:
    deny = grant_from("deny use_catalog@c")
    for span, said in (((None, 3), "ok"), ((None, 4), "forbidden"), ((5, None), "forbidden")):
        world = replace(a_world(owns="role"), grants=(Grant(*deny[:4], *span),))
        assert answer(world, ALICE, "drop_role", ID["role"], how=Request(3)) == said


def test_narrowing_takes_allows_alone() -> None:
    none = Request(active=frozenset())
    assert loads(a_world("use_catalog@c"), "c", Request(active={ID["role"]}))
    assert not loads(a_world("use_catalog@c"), "c", none)
    assert loads(a_world(owns="c"), "c", none)
    assert answer(a_world(), ALICE, "load_role", ID["role"], how=none) == "ok"
    other = Securable(99, "role", "second", ID["m"], Party("user", GOVERNOR))
    world = a_world("deny use_catalog@c")
    world = replace(
        world,
        objects={**world.objects, other.id: other},
        assignments=world.assignments | {(other.id, Party("user", ALICE))},
        grants=(*world.grants, Grant(other.id, "use_catalog", ALLOW, ID["c"])),
    )
    assert not loads(world, "c", Request(active={other.id}))


def test_a_claimed_group_is_as_a_stored_one_and_makes_nobody_a_member() -> None:
    claimed = Request(claimed={GROUP})
    for written, owns, may in (
        (["use_catalog@c"], "", True),
        (["use_catalog@m", "deny use_catalog@c"], "", False),
        ([], "c", True),
    ):
        world = a_world(*written, owns=owns, through_group=True)
        assert loads(world, "c", Request()) is loads(world, "c", claimed) is may
        left = replace(world, groups={GROUP: replace(world.groups[GROUP], members=frozenset())})
        assert not loads(left, "c", Request())
        assert loads(left, "c", claimed) is may
        assert not loads(replace(left, members=frozenset()), "c", claimed)


def test_unknown_operation_is_an_error() -> None:
    with pytest.raises(KeyError):
        Actor(a_world(), ALICE).may("no_such_operation", ID["m"])
