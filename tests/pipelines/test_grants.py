"""What a review says of grants: redundant, shadowed, unused."""

from __future__ import annotations

import random

from access.explain.rules import operation_rules
from authz.operations import OPERATIONS
from pipelines.review.grants import ALLOW, DENY, Given, Needs, Used, idle, last_use
from pipelines.review.state import World

LAKE, SALES, ORDERS = (1, 2), (1, 2, 3), (1, 2, 3, 4)
NEEDS = {row["operation"]: Needs.of(row) for row in operation_rules()}


def given(on: tuple[int, ...], privilege: str = "select_table", effect: str = ALLOW, **more: float) -> Given:
    return Given(10, on, privilege, effect, **more)


def test_a_grant_below_the_same_one_is_redundant() -> None:
    above, below = given(LAKE), given(ORDERS)
    assert [(found.grant, found.by, found.is_shadowed) for found in idle([below, above])] == [(below, above, False)]
    assert not list(idle([above, given(ORDERS, "modify_table"), Given(11, ORDERS, "select_table", ALLOW)]))


def test_a_grant_for_a_time_covers_only_that_time() -> None:
    for_now = given(LAKE, ends=100.0)
    assert not list(idle([for_now, given(ORDERS)]))
    assert [found.grant for found in idle([for_now, given(ORDERS, starts=5.0, ends=100.0)])] == [
        given(ORDERS, starts=5.0, ends=100.0)
    ]


def test_a_deny_of_the_same_role_shadows_an_allow() -> None:
    allow, deny = given(ORDERS), given(SALES, effect=DENY)
    (found,) = idle([allow, deny, given(LAKE)])
    assert (found.grant, found.by, found.is_shadowed) == (allow, deny, True), "the one above it still counts elsewhere"
    assert not list(idle([deny, given(LAKE)]))


def test_removing_what_is_idle_changes_nothing() -> None:
    places = [(1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), (1, 5), (1, 5, 6)]
    for seed in range(300):
        chance = random.Random(seed)
        grants = {
            Given(10, chance.choice(places), chance.choice(("a", "b")), chance.choice((ALLOW, ALLOW, DENY)))
            for _ in range(chance.randint(0, 8))
        }
        left = grants - {found.grant for found in idle(grants)}
        for place in places:
            for privilege in ("a", "b"):
                assert effective(grants, place, privilege) == effective(left, place, privilege), (seed, grants)


def effective(grants: set[Given], place: tuple[int, ...], privilege: str) -> bool:
    on = [each for each in grants if each.privilege == privilege and place[: len(each.on)] == each.on]
    return any(each.effect == ALLOW for each in on) and not any(each.effect == DENY for each in on)


def test_a_use_counts_for_every_grant_that_may_have_allowed_it() -> None:
    use_lake, use_schema, select = given(LAKE, "use_catalog"), given(LAKE, "use_schema"), given(ORDERS)
    modify, other = given(SALES, "modify_table"), Given(11, ORDERS, "select_table", ALLOW)
    grants = [use_lake, use_schema, select, modify, other, given((1, 5))]
    uses = [Used("mia", ORDERS, "load_table", 50.0), Used("mia", ORDERS, "load_table", 70.0)]
    last = last_use(grants, uses, {10: {"mia"}, 11: {"nils"}}, NEEDS)
    assert last == {use_lake: 70.0, use_schema: 70.0, select: 70.0, modify: 70.0}


def test_every_operation_says_what_it_needs() -> None:
    assert NEEDS.keys() == OPERATIONS.keys()
    assert NEEDS["load_table"].privileges == {"use_catalog", "use_schema", "select_table", "modify_table"}
    assert NEEDS["list_catalogs"].privileges == frozenset()


def test_a_use_counts_for_roles_of_claimed_groups_and_not_for_roles_that_were_not_active() -> None:
    world, direct, claimed = World(":"), given(LAKE), Given(11, LAKE, "select_table", ALLOW)
    lines = [
        {"topic": "members", "id": 1, "name": "mia"},
        {"topic": "user_roles", "holder": 1, "has": [10]},
        {"topic": "group_roles", "holder": 7, "has": [11]},
    ]
    assert [*world.read(lines)] == [0]

    def used_for(claims: list[int], active: list[int] | None, name: str = "mia") -> set[Given]:
        caller = world.asking(name, claims, active)
        holders: dict[int, set[str]] = {10: {"mia"}}
        for who, roles in world.callers.items():
            for role in roles:
                holders.setdefault(role, set()).add(who)
        return {*last_use([direct, claimed], [Used(caller, ORDERS, "load_table", 5.0)], holders, NEEDS)}

    assert used_for([], None) == {direct}
    assert used_for([7], None) == {direct, claimed}
    assert used_for([7], [11]) == {claimed} and used_for([], [10]) == {direct} and used_for([7], []) == set()
    assert used_for([7], None, "gone") == set(), "who is no member holds nothing"
