"""Explains why somebody may or may not do something on an object, now or at a moment, and how to fix a no."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from access.explain.cases import Case, Reason, in_words, is_ahead
from access.explain.permissions import Place, open_on, subject
from access.explain.reach import fits, type_of
from access.explain.reasons import Pieces, What, remedies, supports
from access.explain.remedies import Remedies, Step
from access.history.current import GrantRow
from authz import policy
from authz.actor import NOBODY, Actor
from authz.callers.enumeration import count_misses, misses_counted
from authz.operations import FAMILIES, OPERATIONS, SELF, Operation, use_of
from authz.policy import Rights
from authz.services.owners import Owner
from authz.snapshot import member_change
from metalake.errors import Invalid
from metalake.kinds import CONTAINERS, Kind, family, grantable_on
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege
from metalake.wire import known_privilege, quote

MAX_GRANTS = 10


@dataclass(frozen=True)
class Wanted:
    """The operation in question; `privilege` is set if it is the use of a privilege."""

    operation: Operation
    privilege: Privilege | None = None

    def applies(self, catalog_type: str | None) -> bool:
        """Whether it means something in a catalog of that type; where it does not, nobody may."""
        return self.privilege is None or fits(self.privilege, catalog_type)


@dataclass(frozen=True)
class Explanation:
    """`changes` are alternative sets of steps, each sufficient; None for a yes, and for the past."""

    allowed: bool
    user: str
    wanted: Wanted
    on: Located
    as_of: datetime | None
    because: tuple[Reason, ...]
    changes: tuple[tuple[Step, ...], ...] | None = None


def read_wanted(kind: Kind, privilege: str | None, operation: str | None) -> Wanted:
    """Raises Invalid unless exactly one of the two is given, exists and applies to objects of this kind."""
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


@misses_counted("user")
def explain(
    actor: Actor, metalake: str, on: Place | Located, wanted: Wanted, user: str | None, as_of: datetime | None
) -> Explanation:
    """Why the user (None: the caller) may or may not do the operation on the object.

    Raises NotFound for an object hidden from the caller, Forbidden if they may not ask about others.
    """
    state, target = open_on(actor, metalake, on, as_of)
    is_off = policy.authorization_is_off()
    about = actor if is_off else subject(actor, state, target, user, [node.id for node in target.nodes])
    if about.id == NOBODY and user not in (None, actor.name):
        count_misses(actor, metalake, "user")
    catalog_type = type_of(target) if wanted.privilege and target.kind in CONTAINERS else None
    if wanted.privilege and not wanted.applies(catalog_type):
        says = f"{wanted.privilege} is for {family(wanted.privilege)} catalogs, and this one is {catalog_type}."
        misfit = Reason(says)
        return Explanation(False, user or actor.name, wanted, target, as_of, (misfit,), None if as_of else ())
    if is_off:
        off = Reason("Authorization is off: everybody may do everything.")
        return Explanation(True, user or actor.name, wanted, target, as_of, (off,))
    case = Case(actor, state, about, target, wanted.operation)
    allowed, because, changes = decide(case)
    return Explanation(allowed, about.name, wanted, target, as_of, because, changes)


def decide(case: Case) -> tuple[bool, tuple[Reason, ...], tuple[tuple[Step, ...], ...] | None]:
    """The evaluator's answer, its reasons, and for a no about the present the sets of steps that would change it."""
    rights = rights_in(case)
    if policy.decide(case.operation, rights, case.target.kind):
        return True, _why_yes(case, rights), None
    levels = {SELF, *(node.kind for node in case.target.nodes)}
    sets = remedies(case.operation, rights, case.target.kind, levels)
    changes = None
    if case.state.at is None:
        way_out = Remedies(case)
        changes = tuple(way_out.steps(pieces) for pieces in sets)
    return False, _why_no(case, rights, sets), changes


def rights_in(case: Case) -> Rights:
    """The subject's rights; for a non-member those they would have as a member, marked as non-member."""
    rights = policy.rights_on(case.subject, case.target)
    if rights.member:
        return rights
    now = case.subject.policy
    joined = now.after(now.epoch, now.stamp, [member_change(case.top.id, case.subject.id, True)])
    return replace(policy.rights_on(replace(case.subject, policy=joined), case.target), member=False)


def _why_yes(case: Case, rights: Rights) -> tuple[Reason, ...]:
    """Membership, which is always needed; then each sufficient set of rights with the reasons for it."""
    member = Reason(f"{case.who} is a member of {policy.describe(case.top)}.")
    ways = [way[1:] for way in supports(case.operation, rights, case.target.kind)]
    if len(ways) == 1:
        return (member, *_reasons_for(case, ways[0]))
    return (member, *(Reason(_way(case, way), _reasons_for(case, way)) for way in ways))


def _way(case: Case, way: Pieces) -> str:
    """ "Owning catalog lake is enough." and "use_catalog, use_schema and select_table together are enough." """
    words = [
        piece.of if piece.what is What.ALLOW else f"owning {case.named(case.owned_at(piece.of)[0])}" for piece in way
    ]
    if len(words) > 1:
        return f"{', '.join(words[:-1])} and {words[-1]} together are enough."
    return f"{words[0][0].upper()}{words[0][1:]} is enough." if way[0].what is What.OWN else f"{words[0]} is enough."


def _reasons_for(case: Case, way: Pieces) -> tuple[Reason, ...]:
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


def _why_no(case: Case, rights: Rights, sets: list[Pieces]) -> tuple[Reason, ...]:
    """One reason per missing piece; for a non-member only the missing membership."""
    if not rights.member:
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
    """The reason that no ALLOW is active, with those that start later or whose role this request omitted."""
    now, ahead, left_out = case.subject.moment, [], []
    for row in _allows(case, privilege):
        if is_ahead(row, now) and row.starts_at is not None:
            ahead.append(case.grant_reason(row, f", but only from {in_words(row.starts_at)}"))
        elif case.in_force([row]):
            left_out.append(case.grant_reason(row, ", but this request leaves that role out"))
    on = case.nearest(privilege)
    above = "" if on.kind is Kind.METALAKE else " or above it"
    says = f"No role of {case.who} allows {privilege} on {case.named(on)}{above}."
    return Reason(says, (*left_out, *ahead)[:MAX_GRANTS], lacks=privilege, on=case.shown(on))


def _allows(case: Case, privilege: Privilege) -> list[GrantRow]:
    return case.given(privilege, Effect.ALLOW)


def _grants(case: Case, rows: list[GrantRow]) -> tuple[Reason, ...]:
    reasons = [case.grant_reason(row) for row in rows[:MAX_GRANTS]]
    if more := len(rows) - len(reasons):
        reasons.append(Reason(f"So do {more} more grants."))
    return tuple(reasons)


def _listed(names: object) -> str:
    return ", ".join(sorted(names))  # type: ignore[call-overload]
