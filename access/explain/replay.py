"""Replays the history of an object's access: after each change, who can use what on the object.

It starts from the state at a moment, applies the later facts in order, and re-evaluates the users affected by each
change. The start and end of a grant are changes too, without an actor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

from django.db.models import BigIntegerField, ExpressionWrapper, F, Q

from access.explain import reach
from access.explain.permissions import HIDDEN, Redactor
from access.history.current import GrantRow
from access.history.past import Past, grant_row, node_of
from authz import policy
from authz.actor import Actor
from authz.facts import lineage_in, newest
from authz.models import Fact
from metalake.lineage import Located, Node
from metalake.privileges import Effect, Privilege

Use = tuple[Privilege, ...]
NO_USE: Use = ()


class Change(NamedTuple):
    """One change of the access to an object, or of the grants, owners and holders that it rests on.

    `actor` is "" for a grant that begins or ends. `moved` are the ids of the users who can use other privileges than
    before, with what they could use and what they can.
    """

    at: datetime
    event: str
    actor: str
    says: tuple[str, ...]
    moved: dict[int, tuple[Use, Use]]


@dataclass
class _Touched:
    """Whose access a change may affect: users, the holders of roles, everybody."""

    users: set[int] = field(default_factory=set)
    roles: set[int] = field(default_factory=set)
    everybody: bool = False


class Replay:
    """The access to one object between two moments. `changes` plays it, once.

    `uses` is what each user can use on the object at the moment that is reached, by id; others can use nothing.
    `is_cut`: more than `most` facts of a sort lie between, and it starts later than asked.
    """

    def __init__(self, sight: Redactor, since: datetime, until: datetime, most: int) -> None:
        self.sight, self.until, self.top = sight, until, sight.target.metalake.id
        ids = lineage_ever(sight.target)
        self.names = Names(self.top, ids)
        self.facts, self.moment, self.is_cut = read_window(self.top, ids, since, until, most)
        self.since = self.moment
        self.catalog_type = reach.type_of(sight.target)
        facts = Fact.objects.filter(at__lte=self.moment)
        past = Past(sight.target.top, self.moment.timestamp(), facts)
        self.policy = past.policy_on(ids)
        self.rows: dict[tuple[int, int], list[GrantRow]] = {}
        for row in past.grants(ids):
            self.rows.setdefault((row.role_id, row.object_id), []).append(row)
        self.nodes: dict[int, Node] = {}
        self.lineage: tuple[int, ...] = ()
        for fact in newest(facts.filter(topic="object", about__in=ids), "about"):
            self._place(fact)
        self.uses: dict[int, Use] = {}
        self._edges: list[datetime] | None = None
        self._settle(_Touched(everybody=True))

    def changes(self) -> Iterator[Change]:
        """The changes in their order."""
        for _, group in groupby(self.facts, key=_change_of):
            facts = list(group)
            last = facts[-1]
            yield from self._by_the_clock(last.at)
            self.moment = last.at
            touched = _Touched()
            says = [sentence for fact in facts for sentence in self._apply(fact, touched)]
            moved = self._settle(touched)
            joined = [fact for fact in facts if fact.topic == "members" and fact.about in moved]
            says += [membership(self._user(fact.about), is_in=bool(fact.state)) for fact in joined]
            if says or moved:
                yield Change(last.at, last.event, last.actor, tuple(says), moved)
        yield from self._by_the_clock(self.until)

    # What a fact changes, and a sentence on it if it is about the object's access

    def _apply(self, fact: Fact, touched: _Touched) -> list[str]:
        if fact.topic == "grants":
            return self._grants(fact, touched)
        if fact.topic == "object":
            return self._object(fact, touched)
        if fact.topic == "members":
            self._follow("members", self.top, fact.about, bool(fact.state))
            touched.users.add(fact.about)
            return []
        return self._links(fact, touched)

    def _grants(self, fact: Fact, touched: _Touched) -> list[str]:
        self._edges = None
        touched.roles.add(fact.holder)
        role = self._role(fact.holder)
        if not fact.about:
            self._follow("grants", fact.holder)
            dropped = {key for key in self.rows if key[0] == fact.holder}
            self.rows = {key: rows for key, rows in self.rows.items() if key not in dropped}
            return [f"Role {role} was dropped."] if any(on in self.lineage for _, on in dropped) else []
        self._follow("grants", fact.holder, fact.about, fact.state or [])
        before = self.rows.pop((fact.holder, fact.about), [])
        after = [grant_row(fact, entry) for entry in fact.state or ()]
        if after:
            self.rows[fact.holder, fact.about] = after
        if fact.about not in self.lineage:
            return []
        lasting = [row for row in before if row.ends_at is None or row.ends_at > fact.at]
        return granted(role, self._named(fact.about), lasting, after)

    def _object(self, fact: Fact, touched: _Touched) -> list[str]:
        before, way = self.nodes.get(fact.about), self.lineage
        self._place(fact)
        self._edges = None
        touched.everybody = True
        if way != self.lineage:
            return [placed(fact.event, was_there=bool(way), is_there=bool(self.lineage))]
        after = self.nodes.get(fact.about)
        if before is None or after is None or _owner(before) == _owner(after) or fact.about not in self.lineage:
            return []
        user, group = _owner(after)
        owner = f"Group {self._group(group)}" if group is not None else self._user(user or 0)
        return [f"{owner} owns {self._named(fact.about)}."]

    def _place(self, fact: Fact) -> None:
        if fact.state:
            self.nodes[fact.about] = node_of(fact)
        else:
            self.nodes.pop(fact.about, None)
        if fact.about == self.sight.target.id:
            self.lineage = lineage_in(fact.state)

    def _links(self, fact: Fact, touched: _Touched) -> list[str]:
        """Changes to a user's roles, a user's groups or a group's roles, if the role or group is relevant here."""
        before, after = set(getattr(self.policy, fact.topic).get(fact.holder, ())), set(fact.state or ())
        self._follow(fact.topic, fact.holder, sorted(after))
        roles = {role for role, on in self.rows if on in self.lineage}
        if fact.topic == "group_roles":
            touched.users.update(user for user, groups in self.policy.user_groups.items() if fact.holder in groups)
            who = f"Group {self._group(fact.holder)}"
            return _come_and_gone(who, "holds role", self._role, before, after, roles)
        touched.users.add(fact.holder)
        who = self._user(fact.holder)
        if fact.topic == "user_roles":
            return _come_and_gone(who, "holds role", self._role, before, after, roles)
        groups = {node.owner_group_id or 0 for id, node in self.nodes.items() if id in self.lineage}
        groups |= {id for id in before ^ after if not roles.isdisjoint(self.policy.group_roles.get(id, ()))}
        return _come_and_gone(who, "is in group", self._group, before, after, groups)

    def _follow(self, *change: Any) -> None:
        self.policy = self.policy.after(0, "", [list(change)])

    # Grants that begin or end

    def _by_the_clock(self, until: datetime) -> Iterator[Change]:
        """Grants that start or end up to that moment."""
        if self._edges is None:
            spans = {moment for row in self._reaching() for moment in (row.starts_at, row.ends_at)}
            self._edges = sorted((moment for moment in spans if moment and moment > self.moment), reverse=True)
        while self._edges and self._edges[-1] <= until:
            self.moment = self._edges.pop()
            began = [row for row in self._reaching() if row.starts_at == self.moment]
            ended = [row for row in self._reaching() if row.ends_at == self.moment]
            says = [self._span(row, "begins") for row in began] + [self._span(row, "ends") for row in ended]
            moved = self._settle(_Touched(roles={row.role_id for row in (*began, *ended)}))
            yield Change(self.moment, "grant.began" if began else "grant.ended", "", tuple(says), moved)

    def _reaching(self) -> Iterator[GrantRow]:
        """The grants on the lineage."""
        return (row for (_, on), rows in self.rows.items() if on in self.lineage for row in rows)

    def _span(self, row: GrantRow, verb: str) -> str:
        role, on = self._role(row.role_id), self._named(row.object_id)
        return f"The {row.effect.upper()} of {row.privilege} on {on} in role {role} {verb}."

    # Who can use what

    def _settle(self, touched: _Touched) -> dict[int, tuple[Use, Use]]:
        """Re-evaluate the affected users; returns whose usable privileges changed."""
        users = set(touched.users)
        if touched.everybody:
            users.update(self.policy.members.get(self.top, ()), self.uses)
        elif touched.roles:
            users.update(self._holders(touched.roles))
        alike: dict[tuple, Use] = {}
        moved = {}
        for user in users:
            before, after = self.uses.pop(user, NO_USE), self._use(user, alike)
            if after:
                self.uses[user] = after
            if before != after:
                moved[user] = before, after
        return moved

    def _holders(self, roles: set[int]) -> Iterator[int]:
        """The users with one of these roles, members or not."""
        groups = {group for group, of_group in self.policy.group_roles.items() if not roles.isdisjoint(of_group)}
        for of_user, wanted in ((self.policy.user_roles, roles), (self.policy.user_groups, groups)):
            yield from (user for user, some in of_user.items() if not wanted.isdisjoint(some))

    def _use(self, user: int, alike: dict[tuple, Use]) -> Use:
        if not self.lineage or any(id not in self.nodes for id in self.lineage):
            return NO_USE
        target = Located(nodes=tuple(self.nodes[id] for id in self.lineage))
        actor = Actor(user, "", self.policy, at=self.moment.timestamp())
        key = actor.is_member(self.top), actor.roles, tuple(map(actor.owns, target.nodes))
        if key not in alike:
            alike[key] = reach.usable(policy.rights_on(actor, target), target.kind, self.catalog_type)
        return alike[key]

    # Names

    def _user(self, id: int) -> str:
        return self.names.users.get(id, "")

    def _group(self, id: int) -> str:
        return self.names.groups.get(id, "")

    def _role(self, id: int) -> str:
        return self.names.roles.get(id, "")

    def _named(self, id: int) -> str:
        """An object of the lineage, if the asker may see it; where the target was before is not named."""
        is_above = any(node.id == id for node in self.sight.target.nodes)
        return self.sight.named(self.sight.at(id)) if is_above else HIDDEN


def _change_of(fact: Fact) -> tuple[str, str]:
    """The key shared by the facts of one change: the request, or else the moment."""
    return fact.request_id or fact.at.isoformat(), fact.actor


def _owner(node: Node) -> tuple[int | None, int | None]:
    return node.owner_user_id, node.owner_group_id


def _come_and_gone(
    who: str, verb: str, name: Callable[[int], str], before: set[int], after: set[int], wanted: set[int]
) -> list[str]:
    """["mia no longer holds role a.", "mia holds role b, c."], of what is wanted; for "is in group", too."""
    no_longer = {"holds role": "no longer holds role", "is in group": "is no longer in group"}[verb]
    says = []
    for ids, words in ((before - after, no_longer), (after - before, verb)):
        if names := sorted(name(id) for id in ids & wanted):
            says.append(f"{who} {words} {', '.join(names)}.")
    return says


LINKS = ("user_roles", "user_groups", "group_roles")
# The sum stops the database from using an index that would read a metalake's entire history.
_METALAKE = ExpressionWrapper(F("metalake_id") + 0, output_field=BigIntegerField())


class RelevantFacts(NamedTuple):
    """The facts after the moment `since`, by time; `is_cut`: it is later than asked, since there are too many."""

    facts: list[Fact]
    since: datetime
    is_cut: bool


def read_window(top: int, ids: Sequence[int], since: datetime, until: datetime, most: int) -> RelevantFacts:
    """The newest facts between two moments, at most so many of each sort; `ids` are those of `lineage_ever`."""
    between = Fact.objects.filter(at__gt=since, at__lte=until)
    sorts = (
        between.annotate(of=_METALAKE).filter(of=top, topic__in=LINKS),
        between.filter(topic="members", holder=top),
        between.filter(topic="object", about__in=ids),
        between.filter(Q(about__in=ids) | Q(about=0, holder__in=_roles_ever(ids)), topic="grants"),
    )
    facts: list[Fact] = []
    begin = since
    for sort in sorts:
        some = list(sort.order_by("-at", "-id")[: most + 1])
        if len(some) > most:
            begin = max(begin, some[-1].at)
        facts += some
    in_order = sorted((fact for fact in facts if fact.at > begin), key=lambda fact: (fact.at, fact.pk))
    return RelevantFacts(in_order, begin, begin > since)


def lineage_ever(target: Located) -> list[int]:
    """The ids of the target and of all objects that were ever above it."""
    ids = {node.id for node in target.nodes}
    for state in Fact.objects.filter(topic="object", about=target.id).values_list("state", flat=True):
        ids.update(lineage_in(state))
    return sorted(ids)


def _roles_ever(ids: Sequence[int]) -> Any:
    """The ids of the roles that ever had grants on these objects."""
    return Fact.objects.filter(topic="grants", about__in=ids).values("holder")


@dataclass(frozen=True)
class Names:
    """The last names of a metalake's users and groups, and of the roles that ever had grants on these objects."""

    top: int
    ids: Sequence[int]

    @cached_property
    def users(self) -> dict[int, str]:
        return _names(Q(topic="members", holder=self.top))

    @cached_property
    def groups(self) -> dict[int, str]:
        return _names(Q(topic="group", holder=self.top))

    @cached_property
    def roles(self) -> dict[int, str]:
        return _names(Q(topic="object", about__in=_roles_ever(self.ids)))


def _names(which: Q) -> dict[int, str]:
    return dict(Fact.objects.filter(which).exclude(name="").order_by("id").values_list("about", "name"))


VERBS = {Effect.DENY: "denies", Effect.ALLOW: "allows"}


def granted(role: str, on: str, before: Sequence[GrantRow], after: Sequence[GrantRow]) -> list[str]:
    """["Role readers allows select_table on catalog lake."], or that it does so no longer, or at other times."""
    old = {(row.effect, row.privilege): (row.starts_at, row.ends_at) for row in before}
    new = {(row.effect, row.privilege): (row.starts_at, row.ends_at) for row in after}
    says = []
    for effect, verb in VERBS.items():
        for pairs, words, when in (
            (old.keys() - new.keys(), f"no longer {verb}", ""),
            (new.keys() - old.keys(), verb, ""),
            ({pair for pair in old.keys() & new.keys() if old[pair] != new[pair]}, verb, " at other times than before"),
        ):
            if names := sorted(privilege for of, privilege in pairs if of is effect):
                says.append(f"Role {role} {words} {', '.join(names)} on {on}{when}.")
    return says


def membership(who: str, *, is_in: bool) -> str:
    return f"{who} is a member." if is_in else f"{who} is no longer a member."


def placed(event: str, *, was_there: bool, is_there: bool) -> str:
    """What became of the object itself; a store from before the history has it from the history's beginning."""
    if event == "history.begun":
        return "The history begins."
    if was_there and is_there:
        return "It was moved."
    return "It was made." if is_there else "It was dropped."
