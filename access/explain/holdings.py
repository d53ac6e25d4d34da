"""What users and groups may do in a metalake, place by place, and through what: of one, or of several side by side.

It makes no decisions: rights change only at objects that somebody has grants on or owns (access.explain.regions), so
the evaluator runs at each of these, once as it is and once without what it carries itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from access.explain.permissions import open_state, reads_access, subject
from access.explain.queries import Whom
from access.explain.reach import granted_to, group_alone, usable
from access.explain.regions import heads_of
from access.history.current import State
from authz import operations, policy
from authz.actor import NOBODY, Actor
from authz.callers.enumeration import misses_counted
from authz.objects import finder
from authz.policy import Rights
from authz.services import directory
from authz.snapshot import ALLOWS, DENY_SHIFT
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.levels import Level, highest, privileges_of, signs_of
from metalake.lineage import Located, Node
from metalake.privileges import Privilege

MOST_ROWS = 200


class Through(NamedTuple):
    """How somebody has or is denied something: a role, held directly or through these groups; or, without a role, as
    the owner, themselves or through these groups."""

    role: str
    groups: tuple[str, ...]
    is_direct: bool
    is_deny: bool = False


@dataclass(frozen=True)
class Holding:
    """What somebody may use on an object and everything below it: all of a level, and `more` privileges.

    Owners may do everything, so they have neither; `asks` is the privilege by which to ask why.
    """

    is_owner: bool
    level: Level | None
    more: tuple[Privilege, ...]
    asks: Privilege
    usable: tuple[Privilege, ...] = ()
    through: tuple[Through, ...] = ()

    @property
    def is_nothing(self) -> bool:
        return not (self.is_owner or self.level or self.more)

    @property
    def may(self) -> tuple[object, ...]:
        """What is the same for two who may do the same."""
        return self.is_owner, self.level, self.more


def holding_by(rights: Rights, kind: Kind, catalog_type: str | None) -> Holding:
    """What these rights give on an object of this kind."""
    able = usable(rights, kind, catalog_type)
    is_owner = bool(rights.owned) and policy.decide(operations.own(kind), rights, kind)
    level = None if is_owner else highest(able, kind, catalog_type)
    of_level = able if is_owner else privileges_of(level, kind, catalog_type) if level else ()
    more = tuple(privilege for privilege in able if privilege not in of_level)
    telling = [privilege for privilege in able if level is None or privilege in signs_of(level)]
    asks = (*telling, *able, *privileges_of(Level.READER, kind, catalog_type), Privilege.USE_CATALOG)[0]
    return Holding(is_owner, level, more, asks, able)


class Row(NamedTuple):
    """An object where what somebody holds changes, with what each holds from there on, in the order asked."""

    on: Located
    holdings: tuple[Holding, ...]

    @property
    def path(self) -> str:
        return dotted(self.on.full_name)

    @property
    def is_different(self) -> bool:
        return len({holding.may for holding in self.holdings}) > 1


@dataclass(frozen=True)
class Holdings:
    """The rows by name, parents first; `is_cut`: there are more than were examined or are shown."""

    rows: list[Row]
    is_cut: bool


@misses_counted("user", "group")
def holdings(actor: Actor, metalake: str, whom: Sequence[Whom]) -> Holdings:
    """What each of these holds in a metalake, where that changes for one of them; of several, where they differ.

    Everybody may ask about themselves; asking about others takes the right to read access to the metalake. Objects
    that the caller neither sees nor may read access to are left out. Raises NotFound, with names that are spelled
    alike, and Forbidden.
    """
    state = open_state(actor, metalake)
    asked = [_one(actor, state, one) for one in whom]
    places, is_cut = _places(state.top, asked)
    table = _Table(actor, state, asked, places)
    rows = [row for row in table.rows() if _is_shown(actor, row.on)]
    return Holdings(list(table.named(rows[:MOST_ROWS])), is_cut or len(rows) > MOST_ROWS)


def _one(actor: Actor, state: State, whom: Whom) -> Actor:
    if whom.sort == "user":
        person = subject(actor, state, state.top, whom.name)
        if person.id == NOBODY or not person.is_member(state.top.id):
            raise directory.unknown(actor, state.top, *whom)
        return person
    policy.require(actor, operations.READ_ACCESS_TO_METALAKE, state.top)
    id = next((id for id, name in state.groups().items() if name == whom.name), None)
    if id is None:
        raise directory.unknown(actor, state.top, *whom)
    return group_alone(id, whom.name, state.policy_on(), state.at)


def _places(top: Located, people: Iterable[Actor]) -> tuple[list[Located], bool]:
    """The metalake and what carries a grant to one of them or is theirs, by name, parents first; whether only some."""
    places, cut = {top.id: top}, False
    for person in people:
        heads, is_cut = heads_of(person, top, granted_to(person))
        places |= {head.id: head for head in heads}
        cut = cut or is_cut
    return sorted(places.values(), key=lambda on: [(node.name, node.kind) for node in on.nodes]), cut


def _is_shown(actor: Actor, on: Located) -> bool:
    return reads_access(actor, on) or policy.sees(actor, on)


class _Table:
    def __init__(self, actor: Actor, state: State, people: list[Actor], places: list[Located]) -> None:
        self.actor, self.state, self.people, self.places = actor, state, people, places
        self._holdings: dict[tuple[Rights, Kind, str | None], Holding] = {}
        catalogs = {on.nodes[1].id for on in places if len(on.nodes) > 1}
        self.types = finder().catalog_types(catalogs) if catalogs else {}

    def rows(self) -> list[Row]:
        rows: list[Row] = []
        above: list[Row] = []
        for on in self.places:
            while above and not on.lineage.startswith(f"{above[-1].on.lineage}/"):
                above.pop()
            row = Row(on, tuple(self._holding(person, on) for person in self.people))
            if [each.may for each in row.holdings] == [self._inherited(person, on).may for person in self.people]:
                continue
            is_news = len(self.people) == 1 or row.is_different or (bool(above) and above[-1].is_different)
            above.append(row)
            if is_news:
                rows.append(row)
        return rows

    def _inherited(self, person: Actor, on: Located) -> Holding:
        """What they would hold on the object without its own grants and owner; nothing on a metalake."""
        if on.kind is Kind.METALAKE:
            return Holding(False, None, (), Privilege.USE_CATALOG)
        return self._holding(person, on.above().below(Node(NOBODY, on.kind, on.name, None, None)))

    def _holding(self, person: Actor, on: Located) -> Holding:
        key = policy.rights_on(person, on), on.kind, self._type(on)
        if key not in self._holdings:
            self._holdings[key] = holding_by(*key)
        return self._holdings[key]

    def _type(self, on: Located) -> str | None:
        return self.types.get(on.nodes[1].id) if len(on.nodes) > 1 else None

    def named(self, rows: Sequence[Row]) -> Iterable[Row]:
        """The rows with what each holding comes through; two statements for all names."""
        ways = [
            [self._roles_on(person, row.on, holding) for person, holding in zip(self.people, row.holdings, strict=True)]
            for row in rows
        ]
        roles = self.state.roles({role for some in ways for each in some for role, _ in each}) if rows else {}
        groups = self.state.groups({id for person in self.people for id in person.groups}) if rows else {}
        for row, of_row in zip(rows, ways, strict=True):
            named = [
                replace(holding, through=(*_owning(person, row.on, groups), *_through(person, bearing, roles, groups)))
                for person, holding, bearing in zip(self.people, row.holdings, of_row, strict=True)
            ]
            yield row._replace(holdings=tuple(named))

    def _roles_on(self, person: Actor, on: Located, holding: Holding) -> list[tuple[int, bool]]:
        """The roles that give, or deny (True), somebody something that counts on an object."""
        ids = [node.id for node in on.nodes]
        able = sum(privilege.bit for privilege in holding.usable)
        allowing = set(person.allowing_roles)
        bearing = []
        for role in person.roles:
            mask = person.policy.mask((role,), ids, person.now)
            if role in allowing and mask & ALLOWS & able:
                bearing.append((role, False))
            if mask >> DENY_SHIFT:
                bearing.append((role, True))
        return bearing


def _owning(person: Actor, on: Located, groups: dict[int, str]) -> Iterable[Through]:
    nodes = [node for node in on.nodes if person.owns(node)]
    if nodes:
        names = {groups.get(node.owner_group_id, "") for node in nodes if node.owner_group_id is not None}
        yield Through("", tuple(sorted(names)), is_direct=any(node.owner_group_id is None for node in nodes))


def _through(
    person: Actor, bearing: Sequence[tuple[int, bool]], roles: dict[int, str], groups: dict[int, str]
) -> Iterable[Through]:
    direct, of_groups = person.policy.user_roles.get(person.id, ()), person.policy.group_roles
    for role, is_deny in bearing:
        names = sorted(groups.get(id, "") for id in person.groups if role in of_groups.get(id, ()))
        yield Through(roles.get(role, ""), tuple(names), role in direct, is_deny)
