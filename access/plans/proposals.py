"""Proposes a role for an access request: grants belong to roles, but users think of people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from access.explain.queries import Place, Whom
from access.explain.remedies import Remedies, Step
from access.plans import blast_radius
from access.plans.desired import Change
from access.plans.plan import Planned, plan_changes
from access.plans.recipients import USES, Note, Standing, Use, find_parties, some_of
from access.plans.role_choice import Alternative, Choice, Choosing, Grants, OtherHolders, assignments, lines_for
from authz import operations, policy
from authz.actor import Actor
from authz.callers.enumeration import misses_counted
from authz.models import Grant, Role, unended
from authz.name_rules import check_role_name
from authz.objects import find_object
from authz.services import grant_entries
from authz.services.authority import may_give, require_give
from authz.services.change import enter
from authz.services.grant_entries import Entries, Given
from authz.services.roles import located
from metalake.errors import Invalid, NotFound
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege


@dataclass(frozen=True)
class AccessRequest:
    """Users and groups, an object, and how they are to be given privileges there.

    `role` chooses a role by name, or names a new one; people may be left out then. `with_use` are the USE_* privileges
    to grant as well where they lack them on the ancestors. `answers` is the stored request that this fulfils, if any.
    """

    people: tuple[Whom, ...]
    on: Place
    entries: Entries
    role: str | None = None
    with_use: frozenset[Privilege] = USES
    answers: int | None = None


@dataclass(frozen=True)
class Proposal:
    """A role for a request, and why this one; `role` is None if there is nothing to do or others have to be asked.

    `changes` are what to plan and `planned` their plan; both are empty if everything is already effective, and if the
    caller may not do all of it: then `asks` says whom to ask. `other_holders` is None if the caller may not see who
    holds the role. `alternatives` are roles of others with exactly these grants.
    """

    role: str | None
    is_new: bool
    reason: str
    changes: tuple[Change, ...] = ()
    planned: Planned | None = None
    notes: tuple[Note, ...] = ()
    use: tuple[Use, ...] = ()
    asks: tuple[Step, ...] = ()
    other_holders: OtherHolders | None = None
    alternatives: tuple[Alternative, ...] = ()


@misses_counted("user", "group", "role")
def propose(actor: Actor, metalake: str, request: AccessRequest) -> Proposal:
    """Choose the role that gives people privileges on an object, with its plan, counted within a time budget.

    Raises NotFound and Forbidden unless the caller may grant these privileges there, NotFound of kind "user", "group"
    or "role", and Invalid for a request without people or privileges, or for a role with conflicting grants.
    """
    top = enter(actor, metalake)
    if not request.entries:
        raise Invalid("Name at least one privilege.", kind="privilege")
    for privilege in request.entries:
        grant_entries.check_kind(privilege, request.on.kind)
    target = find_object(metalake, *request.on, actor)
    require_give(actor, target, request.entries)
    if not request.people and request.role is None:
        raise Invalid("Name a user, a group or a role.", kind="user")
    grant_entries.check_spans(request.entries, actor.moment)
    grant_entries.check_families([(target, request.entries)])
    if request.role is not None:
        check_role_name(request.role)
    return _Proposing(actor, top, target, request).proposal()


class _Proposing:
    def __init__(self, actor: Actor, top: Located, target: Located, request: AccessRequest) -> None:
        self.actor, self.top, self.target, self.request = actor, top, target, request
        self.parties = find_parties(actor, top, request.people)
        self.standing = Standing(actor, target, self.parties)
        self.use = self.standing.uses(request.entries, request.with_use)
        self.notes = tuple(self.standing.notes(request.entries, self.use))

    def proposal(self) -> Proposal:
        is_done = all(note.verdict == "effective" for note in self.notes)
        if self.notes and is_done and not any(use.is_added for use in self.use) and self.request.role is None:
            return self._without("All of it is effective already.")
        if not policy.permits(self.actor, operations.ASSIGN_ROLES, self.top):
            return self._by_a_granter()
        choosing = Choosing(self.top, self.parties, self._grants(), self.actor)
        choice = choosing.choose() if self.request.role is None else choosing.named(self.request.role)
        alternatives = choosing.alternatives() if self.request.role is None else ()
        if choice.row is None and not policy.permits(self.actor, operations.CREATE_ROLE, self.top):
            proposal = self._ask(f"making a role takes create_role on {policy.describe(self.top)}", self._may_make)
        else:
            proposal = self._planned(choice, choice.others)
        return replace(proposal, alternatives=alternatives)

    def _grants(self) -> Grants:
        """The request's grants, then the added USE_* grants on the ancestors."""
        spans = {(given.starts, given.ends) for given in self.request.entries.values() if given.effect is Effect.ALLOW}
        span = spans.pop() if len(spans) == 1 else (None, None)
        use = [(use.on, {use.privilege: Given(Effect.ALLOW, *span)}) for use in self.use if use.is_added]
        return _merged([(self.target, self.request.entries), *use])

    def _planned(self, choice: Choice, others: OtherHolders | None) -> Proposal:
        lines = lines_for(choice.name, choice.standing, self._grants(), self.actor.moment)
        if lines is None:
            raise Invalid(
                f"Role {choice.name} holds one of these privileges there with another effect or for other times: "
                "choose another role, or revoke that first.",
                kind="role",
            )
        make = [Change("createRole", choice.name)] if choice.row is None else []
        changes = [*make, *lines, *assignments(choice.name, choice.row, self.parties)]
        answers = self.request.answers
        planned = plan_changes(self.actor, self.top.name, changes, budget=blast_radius.PREVIEW, answers=answers)
        return Proposal(
            choice.name,
            choice.row is None,
            choice.reason,
            tuple(changes),
            planned,
            self.notes,
            self.use,
            other_holders=others,
        )

    def _without(self, reason: str, *asks: Step) -> Proposal:
        return Proposal(None, False, reason, notes=self.notes, use=self.use, asks=asks)

    # For callers who may grant on the object but not create or assign roles

    def _by_a_granter(self) -> Proposal:
        """A plan for the role chosen by name, if it needs no new assignment; else whom to ask."""
        top = policy.describe(self.top)
        if self.request.role is None:
            return self._ask(f"assigning a role takes manage_grants on {top}", self._may_make)
        row = Role.objects.filter(parent_id=self.top.id, name=self.request.role).first()
        if row is None:
            raise NotFound(f"Role {self.request.role} does not exist.", kind="role")
        is_known = self._is_known(row)
        if self.parties and not (is_known and all(row.pk in party.actor.roles for party in self.parties)):
            return self._ask(f"assigning role {row.name} takes manage_grants on {top}", self._may_assign)
        self.parties = []
        choice = Choosing(self.top, [], self._grants(), self.actor).named(row.name, says_all=False)
        return self._planned(choice, choice.others if is_known else None)

    def _is_known(self, row: Role) -> bool:
        """Whether the caller, who may read access to the object, can see there who holds the role."""
        ids = [node.id for node in self.target.nodes]
        grants = Grant.objects.filter(unended(self.actor.moment), group=row.group_id, content_object__in=ids)
        return policy.sees(self.actor, located(self.top, row)) or grants.exists()

    def _ask(self, why: str, may: Callable[[Actor], bool]) -> Proposal:
        """No plan, since a partial one would be useless, but whom to ask for all of it."""
        who = some_of([party.whom for party in self.parties]) if self.parties else f"role {self.request.role}"
        what = ", ".join(grant_entries.spelled(self.request.entries))
        says = f"Give {who} {what} on {policy.describe(self.target)}: {why}."
        by = Remedies(self.standing.case).by(self.target, may)
        step = Step("grant", says, self.target, role=self.request.role, by=by)
        return self._without(f"You may not do all of it: {why}.", step)

    def _may_assign(self, other: Actor) -> bool:
        return policy.permits(other, operations.ASSIGN_ROLES, self.top) and all(
            may_give(other, self.target, privilege) for privilege in self.request.entries
        )

    def _may_make(self, other: Actor) -> bool:
        return self._may_assign(other) and policy.permits(other, operations.CREATE_ROLE, self.top)


def _merged(grants: Grants) -> Grants:
    """Merge grants on the same object, in order of first occurrence."""
    by_id: dict[int, tuple[Located, Entries]] = {}
    for on, privileges in grants:
        there = by_id.get(on.id, (on, {}))[1]
        by_id[on.id] = on, there | privileges
    return list(by_id.values())
