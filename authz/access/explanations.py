"""Why somebody may do something on an object or may not, now or at a moment, and what would change a no."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from authz import policy
from authz.access.asking import open_state, subject
from authz.access.cases import Case, Reason, is_ahead, spoken
from authz.access.reasons import Pieces, What, remedies, supports
from authz.access.remedies import Remedies, Step
from authz.actor import NOBODY, Actor
from authz.callers.guessing import missed, misses_counted
from authz.history.state import GrantRow
from authz.operations import FAMILIES, OPERATIONS, SELF, Operation, use_of
from authz.policy import Rights
from authz.services.owners import Owner
from authz.snapshot import member_change
from metalake.errors import Invalid
from metalake.kinds import Kind, grantable_on
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege, parse_privilege
from metalake.wire import quote

MAX_GRANTS = 10


@dataclass(frozen=True)
class Wanted:
    """What is asked about, on an object of one kind: a row of the operation table, or the use of a privilege."""

    operation: Operation
    privilege: Privilege | None = None


@dataclass(frozen=True)
class Explanation:
    """`changes` are sets of steps, each of which is enough; None for the past, which nobody changes."""

    allowed: bool
    user: str
    wanted: Wanted
    on: Located
    as_of: datetime | None
    because: tuple[Reason, ...]
    changes: tuple[tuple[Step, ...], ...] | None = None


def read_wanted(kind: Kind, privilege: str | None, operation: str | None) -> Wanted:
    """Raises Invalid unless one of them is named, and known, and has a meaning on objects of this kind."""
    if (privilege is None) == (operation is None):
        raise Invalid("Name a privilege or an operation, and not both.")
    if kind not in FAMILIES["read_access"]:
        raise Invalid(f"Access is explained on {_listed(FAMILIES['read_access'])}, not on a {kind}.", kind="object")
    if privilege is not None:
        known = known_privilege(privilege)
        if kind not in grantable_on(known):
            raise Invalid(f"Privilege {known} has no meaning on a {kind}, but on: {_listed(grantable_on(known))}.")
        return Wanted(use_of(known, kind), known)
    row = OPERATIONS.get(str(operation).lower())
    if row is None:
        raise Invalid(f"{quote(str(operation))} is no operation; known are {_listed(OPERATIONS)}.")
    if kind not in row.on:
        raise Invalid(f"Operation {row.name} is not asked on a {kind}, but on: {_listed(row.on)}.")
    return Wanted(row)


def known_privilege(name: str) -> Privilege:
    """Raises Invalid for a name that no privilege has."""
    privilege = parse_privilege(name)
    if privilege is None:
        raise Invalid(f"{quote(name)} is no privilege; known are {_listed(Privilege)}.", kind="privilege")
    return privilege


@misses_counted("user")
def explain(
    actor: Actor, metalake: str, kind: Kind, full_name: str, wanted: Wanted, user: str | None, as_of: datetime | None
) -> Explanation:
    """Why the user (None: the caller) may use what is wanted on the object, or may not.

    Raises NotFound for an object that the caller may not know of, Forbidden for questions about others.
    """
    state = open_state(actor, metalake, as_of)
    target = state.locate(kind, full_name, actor)
    if policy.everybody_may():
        off = Reason("Authorization is off: everybody may do everything.")
        return Explanation(True, user or actor.name, wanted, target, as_of, (off,))
    about = subject(actor, state, target, user, [node.id for node in target.nodes])
    if about.id == NOBODY and user not in (None, actor.name):
        missed(actor, metalake, "user")
    case = Case(actor, state, about, target, wanted.operation)
    allowed, because, changes = decided(case)
    return Explanation(allowed, about.name, wanted, target, as_of, because, changes)


def decided(case: Case) -> tuple[bool, tuple[Reason, ...], tuple[tuple[Step, ...], ...] | None]:
    """The evaluator's answer, its reasons, and for a no of today the sets of steps."""
    held = held_in(case)
    if policy.decide(case.operation, held, case.found.kind):
        return True, _why_yes(case, held), None
    levels = {SELF, *(node.kind for node in case.found.nodes)}
    sets = remedies(case.operation, held, case.found.kind, levels)
    changes = None
    if case.state.at is None:
        way_out = Remedies(case)
        changes = tuple(way_out.steps(pieces) for pieces in sets)
    return False, _why_no(case, held, sets), changes


def held_in(case: Case) -> Rights:
    """The subject's rights; who is no member shows what would count if they were."""
    held = policy.rights(case.subject, case.found)
    if held.member:
        return held
    now = case.subject.policy
    joined = now.after(now.epoch, now.stamp, [member_change(case.top.id, case.subject.id, True)])
    return replace(policy.rights(replace(case.subject, policy=joined), case.found), member=False)


def _why_yes(case: Case, held: Rights) -> tuple[Reason, ...]:
    """Membership, which every way needs; then the one way, or all of them, each with what it rests on."""
    member = Reason(f"{case.who} is a member of {policy.describe(case.top)}.")
    ways = [way[1:] for way in supports(case.operation, held, case.found.kind)]
    if len(ways) == 1:
        return (member, *_held(case, ways[0]))
    return (member, *(Reason(_way(case, way), _held(case, way)) for way in ways))


def _way(case: Case, way: Pieces) -> str:
    """ "Owning catalog lake is enough." and "use_catalog, use_schema and select_table together are enough." """
    words = [
        piece.of if piece.what is What.ALLOW else f"owning {case.named(case.owned_at(piece.of)[0])}" for piece in way
    ]
    if len(words) > 1:
        return f"{', '.join(words[:-1])} and {words[-1]} together are enough."
    return f"{words[0][0].upper()}{words[0][1:]} is enough." if way[0].what is What.OWN else f"{words[0]} is enough."


def _held(case: Case, way: Pieces) -> tuple[Reason, ...]:
    reasons: list[Reason] = []
    for piece in way:
        if piece.what is What.OWN:
            reasons += (_owning(case, on) for on in case.owned_at(piece.of))
        else:
            rows = [row for row in _allows(case, piece.privilege) if row.role_id in case.subject.allowing_roles]
            reasons.append(Reason(f"{case.who} is allowed {piece.of}.", _grants(case, case.in_force(rows))))
    return tuple(reasons)


def _owning(case: Case, on: Located) -> Reason:
    node = on.nodes[-1]
    if node.owner_group_id is None:
        return Reason(f"{case.who} owns {case.named(on)}.", owner=Owner(case.who, "user"), on=case.shown(on))
    group = case.groups.get(node.owner_group_id, "")
    says = f"Group {group} owns {case.named(on)}, and {case.who} is in it."
    return Reason(says, group=group, owner=Owner(group, "group"), on=case.shown(on))


def _why_no(case: Case, held: Rights, sets: list[Pieces]) -> tuple[Reason, ...]:
    """What every piece of the remedies is about, once; of who is no member nothing else is told."""
    if not held.member:
        return (Reason(f"{case.who} is no member of {policy.describe(case.top)}."),)
    reasons = []
    for what, of in dict.fromkeys(piece for pieces in sets for piece in pieces):
        if what is What.OWN:
            reasons.append(Reason(f"{case.who} does not own {case.named(case.at_level(of)[0])}."))
        elif what is What.NO_DENY:
            rows = case.in_force(case.given(Privilege(of), Effect.DENY))
            reasons.append(Reason(f"{case.who} is denied {of}, and a DENY wins.", _grants(case, rows)))
        else:
            reasons.append(_lacking(case, Privilege(of)))
    return tuple(reasons)


def _lacking(case: Case, privilege: Privilege) -> Reason:
    """No ALLOW counts; those that will, or that this request left out, are named."""
    now, ahead, left_out = case.subject.moment, [], []
    for row in _allows(case, privilege):
        if is_ahead(row, now) and row.starts_at is not None:
            ahead.append(case.grant_reason(row, f", but only from {spoken(row.starts_at)}"))
        elif case.in_force([row]):
            left_out.append(case.grant_reason(row, ", but this request leaves that role out"))
    on = case.nearest(privilege)
    above = "" if on.kind is Kind.METALAKE else " or above it"
    says = f"No role of {case.who} allows {privilege} on {case.named(on)}{above}."
    return Reason(says, (*left_out, *ahead)[:MAX_GRANTS])


def _allows(case: Case, privilege: Privilege) -> list[GrantRow]:
    return case.given(privilege, Effect.ALLOW)


def _grants(case: Case, rows: list[GrantRow]) -> tuple[Reason, ...]:
    told = [case.grant_reason(row) for row in rows[:MAX_GRANTS]]
    if more := len(rows) - len(told):
        told.append(Reason(f"So do {more} more grants."))
    return tuple(told)


def _listed(names: object) -> str:
    return ", ".join(sorted(names))  # type: ignore[call-overload]
