"""The authorization matrix: cases generated from the operation table, each with the answer that its making says.

Mia asks about objects of one branch: acme > lake > flights > europe > daily > the table departures and the view delays,
and a role and a job template of acme. Beside every level stand others of look-alike names. A case states what is
granted, denied and owned; what is then in effect on the object is known from how the case was made and never asked of
the evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import NamedTuple

from authz.operations import OPERATIONS, Operation, Traversal
from metalake.kinds import Kind, grantable_on
from metalake.privileges import Privilege

Key = tuple[str, ...]
Privileges = frozenset[Privilege]

MAIN: Key = ("acme", "lake", "flights", "europe", "daily")
TABLE, VIEW = (*MAIN, "departures"), (*MAIN, "delays")
ROLE: Key = ("acme", "role pilots")
TEMPLATE: Key = ("acme", "template nightly")
GONE = "(dropped) "

UC, US = Privilege.USE_CATALOG, Privilege.USE_SCHEMA
TRAVERSED: dict[Traversal, Privileges] = {
    Traversal.NONE: frozenset(),
    Traversal.CATALOG: frozenset({UC}),
    Traversal.SCHEMA: frozenset({UC, US}),
}
TARGETS: dict[Kind, Key] = {
    Kind.METALAKE: MAIN[:1],
    Kind.CATALOG: MAIN[:2],
    Kind.SCHEMA: MAIN,
    Kind.TABLE: TABLE,
    Kind.VIEW: VIEW,
    Kind.ROLE: ROLE,
    Kind.JOB_TEMPLATE: TEMPLATE,
}
SCHEMAS = (MAIN[:3], MAIN[:4], MAIN)
LISTS = frozenset({"list_catalogs", "list_schemas", "list_child_schemas", "list_tables", "list_views"})
MAKES_SCHEMAS = frozenset({"create_schema", "bootstrap_schema"})

# Roles by how Mia holds them; the stranger's is not hers.
OWN, SECOND, TEAM, CLAIMED, STRANGERS = "own", "second", "team", "claimed", "strangers"


class Grant(NamedTuple):
    privilege: Privilege
    at: Key
    role: str = OWN
    deny: bool = False


class Case(NamedTuple):
    """`owner` is the one object that Mia owns and as whom: "user", "team" or "claimed". `leads_on`: the object is a
    schema above one that she may load."""

    block: str
    operation: str
    on: Key
    answer: str
    grants: tuple[Grant, ...] = ()
    owner: tuple[Key, str] | None = None
    leads_on: bool = False
    member: bool = True


# The places


def kind_of(key: Key) -> Kind:
    if key[-1].startswith("role "):
        return Kind.ROLE
    if key[-1].startswith("template "):
        return Kind.JOB_TEMPLATE
    if len(key) > len(MAIN):
        return Kind.VIEW if "delays" in key[-1].casefold() else Kind.TABLE
    return (Kind.METALAKE, Kind.CATALOG, Kind.SCHEMA, Kind.SCHEMA, Kind.SCHEMA)[len(key) - 1]


def lineage(key: Key) -> list[Key]:
    """The metalake first."""
    return [key[:depth] for depth in range(1, len(key) + 1)]


def beside(key: Key) -> Key:
    """A sibling; a metalake's is another metalake."""
    return (*key[:-1], f"{key[-1]} 2")


def _look_alikes() -> Iterator[Key]:
    yield ("globex",)
    yield ("acme", "archive")
    for name in ("flights:europe", "flight", "FLIGHTS", "flights europe"):
        yield (*MAIN[:2], name)
    for name in ("europe:daily", "Europe", "flights"):
        yield (*MAIN[:3], name)
    for depth in range(1, 6):
        yield beside(MAIN[:depth])


LOOK_ALIKES = tuple(dict.fromkeys(_look_alikes()))
"""Where the branch has a twin: below each of these stands the same as below its namesake."""


def _twins_of(key: Key) -> Iterator[Key]:
    """The same object of every other branch; of its namesakes that were dropped only the ids are left."""
    for prefix in LOOK_ALIKES:
        twin = prefix + key[len(prefix) :]
        if len(twin) == len(key) and kind_of(twin) is kind_of(key):
            yield twin
    if kind_of(key) in (Kind.TABLE, Kind.VIEW, Kind.ROLE, Kind.JOB_TEMPLATE):
        yield beside(key)
    for depth in range(1, len(key)):
        yield (*key[:depth], GONE + key[depth], *key[depth + 1 :])


def is_gone(key: Key) -> bool:
    return any(name.startswith(GONE) for name in key)


def all_keys() -> list[Key]:
    """Every object there is, what is above first."""
    found: dict[Key, None] = {}
    for lowest in (TABLE, VIEW, ROLE, TEMPLATE):
        for key in (lowest, *(twin for twin in _twins_of(lowest) if not is_gone(twin))):
            found |= dict.fromkeys(lineage(key))
    return sorted(found, key=len)


def nearest(privilege: Privilege, on: Key) -> Key:
    """The lowest place on the lineage where the privilege can be granted."""
    return next(at for at in reversed(lineage(on)) if kind_of(at) in grantable_on(privilege))


def is_below(at: Key, on: Key) -> bool:
    return len(at) > len(on) and at[: len(on)] == on


# What a case must be answered


def full_sets(row: Operation) -> list[Privileges]:
    """Each is enough, and nothing less of it is."""
    return [needed | TRAVERSED[row.traversal] for needed in row.sufficient]


def _gives(row: Operation, on: Key, have: Privileges, denied: Iterable[Privilege]) -> bool:
    blocked = any(privilege in denied and kind_of(on) in kinds for privilege, kinds in row.blocked_by)
    return not blocked and any(full <= have for full in full_sets(row))


def _owner_may(on: Key, have: Privileges, owned: Key | None) -> bool:
    """Rules 3 and 4: everything on what is owned and below it, past what stands above the owned."""
    if owned is None or owned not in lineage(on):
        return False
    match kind_of(owned):
        case Kind.SCHEMA:
            return UC in have
        case Kind.TABLE | Kind.VIEW:
            return {UC, US} <= have
    return True


def _sees(on: Key, have: Privileges, owned: Key | None, leads_on: bool) -> bool:
    kind = kind_of(on)
    if kind is Kind.METALAKE or leads_on or _owner_may(on, have, owned):
        return True
    seen_by = [OPERATIONS[f"load_{kind}"], *([OPERATIONS["drop_view"]] if kind is Kind.VIEW else [])]
    return any(_gives(row, on, have, ()) for row in seen_by)


def make(
    block: str,
    row: Operation,
    on: Key,
    grants: Iterable[Grant],
    have: Iterable[Privilege],
    *,
    denied: Iterable[Privilege] = (),
    owner: tuple[Key, str] | None = None,
    leads_on: bool = False,
) -> Case:
    """`have` is in effect on the object and `denied` denied there, says whoever makes the case."""
    effective, owned = frozenset(have), owner[0] if owner else None
    if _gives(row, on, effective, tuple(denied)) or _owner_may(on, effective, owned):
        answer = "ok"
    elif row.name in MAKES_SCHEMAS:
        answer = "forbidden" if _sees(on[:2], effective, owned, False) else "unseen"
    elif _sees(on, effective, owned, leads_on):
        answer = "ok" if row.name in LISTS else "forbidden"
    else:
        answer = "unseen"
    return Case(block, row.name, on, answer, tuple(grants), owner, leads_on)


def asks() -> Iterator[tuple[Operation, Key]]:
    """Every row on an object of every kind that it is asked on."""
    for row in OPERATIONS.values():
        for kind in sorted(row.on):
            yield row, TARGETS[kind]


def _asks_at_every_depth() -> Iterator[tuple[Operation, Key]]:
    for row, on in asks():
        yield from ((row, at) for at in (SCHEMAS if kind_of(on) is Kind.SCHEMA else (on,)))


def _given(privileges: Iterable[Privilege], on: Key, role: str = OWN) -> list[Grant]:
    return [Grant(privilege, nearest(privilege, on), role) for privilege in sorted(privileges)]


def _levels(on: Key, privilege: Privilege) -> list[Key]:
    """Metalake, catalog, L1, L2, L3 and the object, as far as the privilege can be granted there."""
    leaf = on if len(on) > len(MAIN) else VIEW if Kind.VIEW in grantable_on(privilege) else TABLE
    if Kind.JOB_TEMPLATE in grantable_on(privilege):
        leaf = TEMPLATE
    return [at for at in lineage(leaf) if kind_of(at) in grantable_on(privilege)]


IN_CATALOG = (Kind.CATALOG, Kind.SCHEMA, Kind.TABLE, Kind.VIEW)


def _traversal(on: Key) -> list[Grant]:
    return [Grant(UC, MAIN[:2], SECOND), Grant(US, MAIN[:2], SECOND)] if kind_of(on) in IN_CATALOG else []


_SHOWS = {
    Kind.JOB_TEMPLATE: (Privilege.USE_JOB_TEMPLATE,),
    Kind.ROLE: (Privilege.MANAGE_GRANTS,),
    Kind.TABLE: (Privilege.SELECT_TABLE, Privilege.MODIFY_TABLE),
    Kind.VIEW: (Privilege.SELECT_VIEW, Privilege.ALTER_VIEW, Privilege.DROP_VIEW),
}


def _of(grants: Iterable[Grant]) -> Privileges:
    return frozenset(grant.privilege for grant in grants)


# The blocks


def singles() -> Iterator[Case]:
    """A: each privilege alone, with the traversal given, and where the object is seen already."""
    for (row, on), privilege in product(asks(), Privilege):
        way = _traversal(on)
        showing = [Grant(shows, nearest(shows, on), SECOND) for shows in _SHOWS.get(kind_of(on), ())]
        for given in ([], way, *([*way, shown] for shown in showing)):
            grants = [Grant(privilege, nearest(privilege, on)), *given]
            yield make("A", row, on, grants, _of(grants))


def knockouts() -> Iterator[Case]:
    """B: each sufficient set whole, then without each of its parts, left out or denied; together or spread."""
    for row, on in asks():
        for full in full_sets(row):
            for roles, at_the_top in product(((OWN,), (TEAM,), (CLAIMED,), (OWN, TEAM, CLAIMED)), (False, True)):
                placed = [
                    Grant(privilege, on[:1] if at_the_top else nearest(privilege, on), roles[place % len(roles)])
                    for place, privilege in enumerate(sorted(full))
                ]
                yield make("B", row, on, placed, full)
                for out in placed:
                    rest = [grant for grant in placed if grant is not out]
                    yield make("B", row, on, rest, _of(rest))
                    for at in dict.fromkeys([nearest(out.privilege, on), on[:1]]):
                        denial = Grant(out.privilege, at, SECOND, deny=True)
                        yield make("B", row, on, [*placed, denial], _of(rest), denied=[out.privilege])


def placements() -> Iterator[Case]:
    """C: each needed privilege at each level, held directly, through a group, or through one that a token names."""
    for row, on in _asks_at_every_depth():
        for full in full_sets(row):
            for privilege in sorted(full):
                rest = full - {privilege}
                for at, role in product(_levels(on, privilege), (OWN, TEAM, CLAIMED)):
                    grants = [Grant(privilege, at, role), *_given(rest, on, SECOND)]
                    have = full if at in lineage(on) else rest
                    leads_on = privilege is US and kind_of(on) is Kind.SCHEMA and is_below(at, on)
                    yield make("C", row, on, grants, have, leads_on=leads_on)


def denials() -> Iterator[Case]:
    """D: ALLOW at one level and DENY at another, or beside it; and a DENY of every other privilege."""
    for row, target in asks():
        on = MAIN[:4] if target == MAIN else target  # there are levels on both sides of it
        for full in full_sets(row):
            for privilege in sorted(full):
                rest = full - {privilege}
                levels = _levels(on, privilege)
                for allowed_at, level, role in product(levels, levels, (OWN, SECOND, TEAM)):
                    for denied_at in (level, beside(level)):
                        if role == OWN and denied_at == allowed_at:
                            continue  # no role holds both on one object
                        denied = denied_at in lineage(on)
                        grants = [
                            Grant(privilege, allowed_at),
                            Grant(privilege, denied_at, role, deny=True),
                            *_given(rest, on),
                        ]
                        have = full if allowed_at in lineage(on) and not denied else rest
                        below = privilege is US and kind_of(on) is Kind.SCHEMA and is_below(allowed_at, on)
                        leads_on = below and denied_at not in lineage(allowed_at)
                        denied_here = [privilege] if denied else []
                        yield make("D", row, on, grants, have, denied=denied_here, leads_on=leads_on)
        blocking = {privilege for privilege, _ in row.blocked_by}
        for full in full_sets(row):
            for other in sorted(set(Privilege) - full):
                for denied_at in _levels(on, other) if other in blocking else [on[:1]]:
                    grants = [*_given(full, on), Grant(other, denied_at, TEAM, deny=True)]
                    yield make("D", row, on, grants, full, denied=[other] if denied_at in lineage(on) else [])


def ownerships() -> Iterator[Case]:
    """E: each level owned, as a user or through a group; with and without traversal, and against DENY."""
    for row, on in _asks_at_every_depth():
        way = _traversal(on)
        needed = sorted(frozenset().union(*row.sufficient))
        against = [Grant(privilege, on[:1], TEAM, deny=True) for privilege in needed]
        no_schema, no_catalog = (Grant(privilege, on[:1], TEAM, deny=True) for privilege in (US, UC))
        situations: list[tuple[list[Grant], Privileges, list[Privilege]]] = [
            ([], frozenset(), []),
            (way, _of(way), []),
            ([*way, *against], _of(way), needed),
            ([*way, no_schema], _of(way) - {US}, [US]),
            ([*way, no_catalog], _of(way) - {UC}, [UC]),
        ]
        owned_at = dict.fromkeys([*lineage(on if len(on) > len(MAIN) else TABLE), on])
        for owned, party, (grants, have, denied) in product(owned_at, ("user", TEAM, CLAIMED), situations):
            leads_on = Kind.SCHEMA == kind_of(on) == kind_of(owned) and is_below(owned, on) and UC in have
            owner = (owned, party)
            yield make("E", row, on, grants, have, denied=denied, owner=owner, leads_on=leads_on)


def isolation() -> Iterator[Case]:
    """F: everything that is needed, but on the twin of another branch; or held by somebody else, or by no member."""
    for row, on in asks():
        way, sets = _traversal(on), full_sets(row) or [TRAVERSED[row.traversal]]
        for twin in _twins_of(on):
            for full, traversal in product(sets, ([], way)):
                placed = _given(full, twin)
                here = _of(grant for grant in placed if grant.at in lineage(on)) | _of(traversal)
                if not here >= full:
                    yield make("F", row, on, [*placed, *traversal], here)
            if not is_gone(twin):
                elsewhere = [key for key in lineage(twin) if key not in lineage(on)]
                for owned, party in product(elsewhere, ("user", TEAM)):
                    yield make("F", row, on, way, _of(way), owner=(owned, party))
        for full in sets:
            whole = _given(full, on)
            yield make("F", row, on, [grant._replace(role=STRANGERS) for grant in whole], ())
            for owner in (None, (on[:1], "user"), (on[:1], TEAM), (on, "user")):
                outside = make("F", row, on, whole, full, owner=owner)
                yield outside._replace(answer="unseen", member=False)


BLOCKS: dict[str, Callable[[], Iterator[Case]]] = {
    "A": singles,
    "B": knockouts,
    "C": placements,
    "D": denials,
    "E": ownerships,
    "F": isolation,
}


def cases(block: str) -> list[Case]:
    """Each once."""
    return list(dict.fromkeys(BLOCKS[block]()))
