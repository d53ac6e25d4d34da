"""The people of an access request, and their existing access to the object and its ancestors.

The caller may grant on the object, and so may read who has access there, through which roles and groups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from access.explain.cases import Case, in_words
from access.explain.queries import Whom, ids_of
from access.explain.reach import group_alone
from access.explain.remedies import By, Remedies
from access.history.current import GrantRow, Now
from authz import policy
from authz.actor import Actor
from authz.operations import Traversal, use_of
from authz.policy import Rights
from authz.services.authority import may_give
from authz.services.grant_entries import Entries, Given
from metalake.errors import NotFound, TooLarge
from metalake.kinds import KINDS, Kind, grantable_on
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege

MAX_PEOPLE = 500
_BESIDE = {kind for kind, declared in KINDS.items() if declared.lies_in == (Kind.METALAKE,)} - {Kind.CATALOG}


USES = frozenset({Privilege.USE_CATALOG, Privilege.USE_SCHEMA})


class Note(NamedTuple):
    """The effect of a request for one person and privilege, and why.

    `verdict`: "new"; "effective" already; "later", starts later; "beaten" by a DENY; "broken", since a USE_* is
    missing or the user is disabled.
    """

    whom: Whom
    privilege: Privilege
    verdict: str
    says: str


class Use(NamedTuple):
    """A USE_* privilege that people lack on an ancestor.

    `is_offered`: the caller may grant it, and it helps; otherwise `by` says who may.
    """

    privilege: Privilege
    on: Located
    lacking: tuple[Whom, ...]
    is_offered: bool
    is_added: bool
    says: str
    by: By | None = None


class Party(NamedTuple):
    """A user, or a group modelled as a member with only its rights; `direct` are its directly assigned roles."""

    whom: Whom
    id: int
    actor: Actor
    direct: frozenset[int]


def find_parties(actor: Actor, top: Located, people: Collection[Whom]) -> list[Party]:
    """Raises NotFound of kind "user" or "group" for a name that does not exist, TooLarge for too many names."""
    if len(people) > MAX_PEOPLE:
        raise TooLarge(f"{MAX_PEOPLE} users and groups may be named at once, not {len(people)}: make a group of them.")
    ids = {sort: ids_of(top, sort, {name for each, name in people if each == sort}) for sort in ("user", "group")}
    snapshot, parties = actor.policy, []
    for whom in dict.fromkeys(people):
        id = ids[whom.sort].get(whom.name)
        if id is None:
            raise NotFound(f"{whom.sort.capitalize()} {whom.name} does not exist.", kind=whom.sort)
        if whom.sort == "user":
            about, direct = Actor(id, whom.name, snapshot), snapshot.user_roles.get(id, ())
        else:
            about, direct = group_alone(id, whom.name, snapshot, None), snapshot.group_roles.get(id, ())
        parties.append(Party(whom, id, about, frozenset(direct)))
    return parties


@dataclass(frozen=True)
class Standing:
    """The rights of a request's people on an object's lineage; two queries plus names, regardless of their number."""

    asker: Actor
    target: Located
    parties: Sequence[Party]

    @cached_property
    def state(self) -> Now:
        return Now(self.target.top)

    @cached_property
    def case(self) -> Case:
        """A case about the object, used to phrase sentences for the asker."""
        return Case(self.asker, self.state, self.asker, self.target, use_of(Privilege.MANAGE_GRANTS, self.target.kind))

    @cached_property
    def rights(self) -> dict[Whom, Rights]:
        return {party.whom: policy.rights_on(party.actor, self.target) for party in self.parties}

    @cached_property
    def rows(self) -> list[GrantRow]:
        """Active grants on the lineage, of the roles of all these people, nearest first."""
        roles = {role for party in self.parties for role in party.actor.roles}
        if not roles:
            return []
        depths = {node.id: depth for depth, node in enumerate(self.target.nodes)}
        rows = [row for row in self.state.grants(depths, roles) if _is_in_force(row, self.asker)]
        return sorted(rows, key=lambda row: -depths[row.object_id])

    @cached_property
    def roles(self) -> dict[int, str]:
        return self.state.roles({row.role_id for row in self.rows})

    @cached_property
    def groups(self) -> dict[int, str]:
        return self.state.groups({group for party in self.parties for group in party.actor.groups})

    # USE_* on the ancestors

    def uses(self, entries: Entries, with_use: Collection[Privilege]) -> tuple[Use, ...]:
        """The USE_* privileges that the ALLOWs of a request require and some of the people lack."""
        asked = {p for p, given in entries.items() if given.effect is Effect.ALLOW}
        needed = {use for privilege in asked for use in _needed(privilege, self.target)} - asked
        uses = (self._use(privilege, with_use) for privilege in sorted(needed))
        return tuple(use for use in uses if use)

    def _use(self, privilege: Privilege, with_use: Collection[Privilege]) -> Use | None:
        on = carrier(privilege, self.target)
        lacking = tuple(
            party.whom
            for party in self.parties
            if (rights := self.rights[party.whom]).member and _lacks(rights, privilege)
        )
        if not lacking:
            return None
        says = f"{some_of(lacking)} {_s('lack', lacking)} {privilege} on {self.case.named(on)}"
        if all(self.rights[whom].denies(privilege) for whom in lacking):
            return Use(privilege, on, lacking, False, False, f"{says}: it is denied there or above.")
        if may_give(self.asker, on, privilege):
            is_added = privilege in with_use
            return Use(privilege, on, lacking, True, is_added, f"{says}{': it is given too' if is_added else ''}.")
        by = Remedies(self.case).by(on, lambda other: may_give(other, on, privilege))
        return Use(privilege, on, lacking, False, False, f"{says}, and you may not give it.", by)

    # SharedDict

    def notes(self, entries: Entries, uses: Sequence[Use]) -> Iterator[Note]:
        """The effect of the request for each person and privilege."""
        broken = {whom: use for use in reversed(uses) if not use.is_added for whom in use.lacking}
        for party in self.parties:
            for privilege, given in entries.items():
                verdict, says = self._verdict(party, privilege, given, broken.get(party.whom))
                yield Note(party.whom, privilege, verdict, says)

    def _verdict(self, party: Party, privilege: Privilege, given: Given, use: Use | None) -> tuple[str, str]:
        who, rights = party.whom.name, self.rights[party.whom]
        if not rights.member:
            return "broken", f"{who} is no enabled member of {policy.describe(self.target.top)}."
        owned = next((node for node in self.target.nodes if party.actor.owns(node)), None)
        owning = f"{who} owns {self.case.named(self.case.at(owned.id))}" if owned else ""
        rows = [row for row in self.rows if row.privilege is privilege and row.role_id in party.actor.roles]
        standing = next((row for row in rows if row.effect is given.effect and _given(row).covers(given)), None)
        if given.effect is Effect.DENY:
            if owned:
                return "broken", f"{owning}, and a DENY does not cut what owners may do."
            if standing:
                return "effective", self._through(party, standing)
            return _when(given, f"{who} is denied {privilege}")
        denied = next((row for row in rows if row.effect is Effect.DENY), None)
        if denied and not owned:
            return "beaten", self._through(party, denied)
        if use and not (owned and owned.kind in (Kind.METALAKE, Kind.CATALOG)):
            return "broken", f"{who} gets no use of {privilege} without {use.privilege} on {self.case.named(use.on)}."
        if owned:
            return "effective", f"{owning}."
        if standing:
            return "effective", self._through(party, standing)
        return _when(given, f"{who} gets {privilege}")

    def _through(self, party: Party, row: GrantRow) -> str:
        """ "Role analysts allows select_table on catalog lake, and mia is in group crew, which holds it." """
        verb = "denies" if row.effect is Effect.DENY else "allows"
        on = self.case.named(self.case.at(row.object_id))
        says = f"Role {self.roles.get(row.role_id, '')} {verb} {row.privilege} on {on}"
        if row.role_id in party.direct:
            return f"{says}, and {party.whom.name} holds it."
        snapshot = party.actor.policy
        names = [
            self.groups.get(id, "") for id in party.actor.groups if row.role_id in snapshot.group_roles.get(id, ())
        ]
        return f"{says}, and {party.whom.name} is in group {names[0]}, which holds it." if names else f"{says}."


def carrier(privilege: Privilege, target: Located) -> Located:
    """Where a USE_* privilege is granted for an object: its catalog or schema, or itself if it is above these."""
    kind = Kind.CATALOG if privilege is Privilege.USE_CATALOG else Kind.SCHEMA
    depth = max((n for n, node in enumerate(target.nodes) if node.kind == kind), default=len(target.nodes) - 1)
    return Located(nodes=target.nodes[: depth + 1])


def _needed(privilege: Privilege, target: Located) -> set[Privilege]:
    """The USE_* privileges without which a privilege on an object has no effect there or below."""
    kinds = grantable_on(privilege) - _BESIDE
    lowest = max(kinds, key=lambda kind: KINDS[kind].depth)
    # Granting on an object requires USE_* on its ancestors only.
    traversal = use_of(privilege, target.kind if privilege is Privilege.MANAGE_GRANTS else lowest).traversal
    if traversal is Traversal.NONE:
        return set()
    return {Privilege.USE_CATALOG} | ({Privilege.USE_SCHEMA} if traversal is Traversal.SCHEMA else set())


def _lacks(rights: Rights, use: Privilege) -> bool:
    if not rights.owned.isdisjoint((Kind.METALAKE, Kind.CATALOG)) or rights.holds(use):
        return False
    return use is Privilege.USE_CATALOG or Kind.SCHEMA not in rights.owned


def _is_in_force(row: GrantRow, actor: Actor) -> bool:
    return row.starts_at is None or row.starts_at <= actor.moment


def _given(row: GrantRow) -> Given:
    """The terms of an active grant, from now on."""
    return Given(row.effect, None, row.ends_at)


def _when(given: Given, says: str) -> tuple[str, str]:
    return ("later", f"{says} from {in_words(given.starts)}.") if given.starts else ("new", f"{says}.")


def some_of(people: Sequence[Whom]) -> str:
    """ "mia", "mia and nils", "mia, nils and 3 more"."""
    names = [whom.name for whom in people]
    if len(names) > 3:
        return f"{', '.join(names[:2])} and {len(names) - 2} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _s(verb: str, people: Sequence[Whom]) -> str:
    return verb + ("s" if len(people) == 1 else "")
