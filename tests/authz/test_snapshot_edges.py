"""The policy in memory at its edges: moments, the most that is named, and every kind of change."""

from __future__ import annotations

from datetime import UTC, datetime
from math import inf
from typing import Any

import pytest

from authz import snapshot
from authz.snapshot import Timed
from metalake.privileges import Privilege
from tests.authz.test_policy_edges import (
    ACME,
    CREW,
    EUROPE,
    GUESTS,
    LAKE,
    MIA,
    NOON,
    OLGA,
    PARTNERS,
    PILOTS,
    SELLERS,
    P,
    allow,
    deny,
)
from tests.authz.test_snapshot import empty
from tests.cases import each

TIMED = {PILOTS: {LAKE: (Timed(1, 10, 20), Timed(2, 0, 5), Timed(4, 20, inf)), ACME: (Timed(8, 15, 16),)}}


@each("now, mask", [(0, 2), (4.9, 2), (5, 0), (9.9, 0), (10, 1), (15, 9), (16, 1), (20, 4)])
def test_a_grant_counts_from_its_start_until_before_its_end(now: float, mask: int) -> None:
    held = empty(grants={PILOTS: {ACME: 16}, SELLERS: {LAKE: 32}}, timed=TIMED)
    assert held.mask([PILOTS], [ACME, LAKE], now) == 16 | mask
    assert held.mask([SELLERS, PILOTS, GUESTS], [LAKE], now) == 32 | mask & ~8
    assert held.mask([GUESTS], [ACME, LAKE], now) == held.mask([PILOTS], [EUROPE], now) == 0
    carrying = [place for place, bits in ((ACME, 8), (LAKE, 7)) if bits & mask]
    assert held.carrying([PILOTS], 15, now) == carrying
    assert held.carrying([PILOTS, SELLERS], 32 | 8, now) == [*([ACME] if mask & 8 else []), LAKE]
    assert held.carrying([GUESTS], 63, now) == []


def test_many_grants_are_left_to_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    held = empty(grants={PILOTS: {1: 1, 3: 1}, SELLERS: {2: 1, 4: 2}}, timed={GUESTS: {5: (Timed(1, 0, inf),)}})
    all_roles = [SELLERS, PILOTS, GUESTS]
    monkeypatch.setattr(snapshot, "MOST_LOOKED_AT", 4)
    monkeypatch.setattr(snapshot, "MOST_NAMED", 4)
    assert held.carrying(all_roles, 1, NOON) == [1, 2, 3, 5]
    monkeypatch.setattr(snapshot, "MOST_NAMED", 3)
    assert held.carrying(all_roles, 1, NOON) is None
    monkeypatch.setattr(snapshot, "MOST_NAMED", 4)
    monkeypatch.setattr(snapshot, "MOST_LOOKED_AT", 3)
    assert held.carrying(all_roles, 1, NOON) is None
    assert held.carrying([SELLERS], 1, NOON) == [2]


START, END = datetime(2030, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, 6, tzinfo=UTC)


def entry(privilege: Privilege, effect: str = "allow", **span: Any) -> dict[str, Any]:
    return {"privilege": privilege.value, "effect": effect, **span}


def test_changes_say_what_is_true_now() -> None:
    before = empty(
        members={ACME: frozenset({OLGA})},
        user_roles={MIA: (PILOTS,)},
        grants={PILOTS: {LAKE: 1, ACME: 2}, SELLERS: {LAKE: 1}},
        timed={SELLERS: {LAKE: (Timed(1, 0, 9),)}, GUESTS: {ACME: (Timed(1, 0, 9),), LAKE: (Timed(2, 0, 9),)}},
    )
    assert before.roles_of(MIA) == (PILOTS,)
    span = {"starts": START.isoformat(), "ends": END.isoformat()}
    after = before.after(
        7,
        "t",
        [
            snapshot.member_change(ACME, MIA, True),
            snapshot.member_change(ACME, OLGA, False),
            snapshot.member_change(99, MIA, True),
            snapshot.member_change(98, MIA, False),
            snapshot.roles_change("user", MIA, [SELLERS, PILOTS]),
            snapshot.roles_change("group", CREW, [GUESTS]),
            snapshot.groups_change(MIA, [PARTNERS, CREW]),
            snapshot.grants_change(
                PILOTS,
                LAKE,
                [
                    entry(P.USE_CATALOG),
                    entry(P.USE_SCHEMA, "deny"),
                    entry(P.SELECT_TABLE, "deny", **span),
                    entry(P.MODIFY_TABLE, starts=START),
                    entry(P.CREATE_TABLE, ends=END.isoformat()),
                ],
            ),
            snapshot.grants_change(PILOTS, EUROPE, [entry(P.SELECT_TABLE)]),
            snapshot.grants_change(GUESTS, ACME, []),
            snapshot.role_gone(SELLERS),
        ],
    )
    assert (after.epoch, after.stamp) == (7, "t")
    assert after.members == {ACME: {MIA}, 99: {MIA}, 98: frozenset()}
    assert after.user_roles == {MIA: (PILOTS, SELLERS)}
    assert after.group_roles == {CREW: (GUESTS,)}
    assert after.user_groups == {MIA: (CREW, PARTNERS)}
    assert after.roles_of(MIA) == (PILOTS, SELLERS, GUESTS), "nothing is remembered of the older one"
    lasting = allow(P.USE_CATALOG) | deny(P.USE_SCHEMA)
    assert after.grants == {
        PILOTS: {LAKE: lasting, ACME: 2, EUROPE: allow(P.SELECT_TABLE)},
        SELLERS: {},
        GUESTS: {},
    }
    start, end = START.timestamp(), END.timestamp()
    for_a_time = (
        Timed(deny(P.SELECT_TABLE), start, end),
        Timed(allow(P.MODIFY_TABLE), start, inf),
        Timed(allow(P.CREATE_TABLE), 0, end),
    )
    assert after.timed == {PILOTS: {LAKE: for_a_time}, GUESTS: {LAKE: (Timed(2, 0, 9),)}}
    assert before.grants == {PILOTS: {LAKE: 1, ACME: 2}, SELLERS: {LAKE: 1}}
    assert before.timed[SELLERS] and set(before.timed[GUESTS]) == {ACME, LAKE}
    assert before.members == {ACME: {OLGA}}
    again = after.after(8, "u", [snapshot.grants_change(PILOTS, LAKE, []), snapshot.role_gone(GUESTS)])
    assert again.grants[PILOTS] == {ACME: 2, EUROPE: allow(P.SELECT_TABLE)}
    assert again.timed == {}
    assert again.members is after.members, "what did not change is shared"
    assert again.after(9, "v", [snapshot.role_gone(12345)]).grants[12345] == {}


def test_the_same_role_changed_twice_keeps_both() -> None:
    before = empty(grants={PILOTS: {ACME: 1}})
    changes = [snapshot.grants_change(PILOTS, place, [entry(P.USE_CATALOG)]) for place in (LAKE, EUROPE)]
    after = before.after(2, "t", changes)
    assert set(after.grants[PILOTS]) == {ACME, LAKE, EUROPE}
    assert before.grants[PILOTS] == {ACME: 1}
