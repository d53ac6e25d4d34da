"""Explanations of random worlds: the evaluator agrees with each, and no part of one can be left out."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from access.explain.cases import Case, Reason
from access.explain.explanations import decide, rights_in
from access.explain.permissions import reads_access
from access.explain.reasons import given, remedies, supports
from access.explain.remedies import Step
from access.history.current import Now
from authz import operations, policy
from authz.actor import Actor
from authz.operations import OPERATIONS, Operation, use_of
from authz.policy import Rights
from authz.services.authority import may_give, may_lift
from authz.snapshot import Snapshot, mask_of
from metalake.kinds import Kind, grantable_on
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege
from tests.authz.stored import Stored, batches
from tests.profiles import share

pytestmark = [pytest.mark.store, pytest.mark.django_db]

WORLDS, QUESTIONS = 100, 16
FRESH = 10**9  # a role that is made for a remedy
KINDS = (Kind.METALAKE, Kind.CATALOG, Kind.SCHEMA, Kind.TABLE)


def asked_of(kind: Kind) -> list[Operation]:
    rows = [row for row in OPERATIONS.values() if kind in row.on]
    return rows + [use_of(privilege, kind) for privilege in Privilege if kind in grantable_on(privilege)]


ASKED = {kind: asked_of(kind) for kind in KINDS}


def cases() -> Iterator[tuple[Stored, int, Case]]:
    for first, stored in batches(share(WORLDS)):
        for place, world in enumerate(stored.worlds):
            rng = random.Random(first + place)
            objects = [obj.id for obj in world.objects.values() if obj.kind in KINDS]
            for _ in range(QUESTIONS):
                found = Located(nodes=stored.line(place, rng.choice(objects)).nodes)
                subject = stored.actor(place, rng.choice(list(world.users)))
                operation, top = rng.choice(ASKED[found.kind]), Located(nodes=found.nodes[:1])
                if asker := next((one for one in people(stored, place) if reads_access(one, top)), None):
                    yield stored, place, Case(asker, Now(top), subject, found, operation)


Decision = tuple[bool, tuple[Reason, ...], tuple[tuple[Step, ...], ...] | None]
DECISIONS: dict[int, Decision] = {}


def decided() -> Iterator[tuple[Stored, int, Case, Decision]]:
    """The cases and what `decide` answers, asked once for all tests here: theirs are the same, under the same ids."""
    for number, (stored, place, case) in enumerate(cases()):
        if number not in DECISIONS:
            DECISIONS[number] = decide(case)
        yield stored, place, case, DECISIONS[number]


def people(stored: Stored, place: int) -> list[Actor]:
    return [replace(stored.actor(place, user), name=f"{place}-{user}") for user in stored.worlds[place].users]


def test_a_yes_needs_every_piece_of_each_of_its_supports() -> None:
    seen = set()
    for _, _, case in cases():
        held, kind = policy.rights_on(case.subject, case.target), case.target.kind
        if not policy.decide(case.operation, held, kind):
            continue
        found = supports(case.operation, held, kind)
        assert found
        bare = Rights(member=False, mask=held.mask & ~allowed_of(held), owned=frozenset())
        for pieces in found:
            assert policy.decide(case.operation, given(bare, pieces), kind)
            for piece in pieces:
                less = [other for other in pieces if other != piece]
                assert not policy.decide(case.operation, given(bare, less), kind), (case.operation, pieces, piece)
            seen |= {piece.what for piece in pieces}
    assert len(seen) == 3, "being a member, an ALLOW and owning"


def allowed_of(held: Rights) -> int:
    return sum(privilege.bit for privilege in Privilege if held.allows(privilege))


def test_a_no_needs_every_piece_of_each_of_its_remedies() -> None:
    seen = set()
    for _, _, case in cases():
        held, kind = rights_in(case), case.target.kind
        if policy.decide(case.operation, held, kind):
            continue
        levels = {operations.SELF, *(node.kind for node in case.target.nodes)}
        found = remedies(case.operation, held, kind, levels)
        assert found
        for pieces in found:
            assert policy.decide(case.operation, given(held, pieces), kind)
            for piece in pieces:
                less = [other for other in pieces if other != piece]
                assert not policy.decide(case.operation, given(held, less), kind), (case.operation, pieces, piece)
            seen |= {piece.what for piece in pieces}
    assert len(seen) == 4


def test_the_answer_is_the_evaluators_and_a_yes_falls_with_what_it_names() -> None:
    answers = {True: 0, False: 0}
    for stored, place, case, (allowed, because, _) in decided():
        assert allowed == policy.permits(case.subject, case.operation, case.target)
        answers[allowed] += 1
        if allowed and case.operation.sufficient != operations.ANYONE:
            assert not without(stored, place, case, flat(because)), because
    assert min(answers.values()) > share(100)


def flat(reasons: tuple[Reason, ...]) -> list[Reason]:
    return [one for reason in reasons for one in (reason, *flat(reason.because))]


def without(stored: Stored, place: int, case: Case, named: list[Reason]) -> bool:
    """Whether it would still be allowed without these grants and this ownership."""
    grants = in_force(case.subject)
    for told in filter(None, (reason.grant for reason in named)):
        assert told.on is not None
        grants[role_id(stored, place, told.role)][told.on.id] &= ~told.privilege.bit
    owned = {reason.on.id for reason in named if reason.on}
    nodes = [
        node._replace(owner_user_id=None, owner_group_id=None) if node.id in owned else node
        for node in case.target.nodes
    ]
    subject = replace(case.subject, policy=replace(case.subject.policy, grants=grants, timed={}))
    return policy.permits(subject, case.operation, Located(nodes=tuple(nodes)))


def in_force(actor: Actor) -> dict[int, dict[int, int]]:
    """All grants as they count for the actor's moment, those for a time among them."""
    grants = {role: dict(of_role) for role, of_role in actor.policy.grants.items()}
    for role, of_role in actor.policy.timed.items():
        for on in of_role:
            grants.setdefault(role, {})[on] = actor.policy.mask([role], [on], actor.now)
    return grants


def role_id(stored: Stored, place: int, name: str) -> int:
    return stored.id(place, int(name.removeprefix("role")))


def test_every_set_of_changes_is_enough_and_none_of_them_can_be_left_out() -> None:
    changes_seen = set()
    for stored, place, case, (allowed, _, sets) in decided():
        if allowed:
            continue
        assert sets
        for steps in sets:
            assert permits_after(stored, place, case, steps), steps
            for step in steps:
                less = tuple(other for other in steps if other is not step)
                assert not permits_after(stored, place, case, less), (steps, step)
            changes_seen |= {step.change for step in steps}
    assert changes_seen == {"addMember", "grant", "liftDeny", "own"}


def permits_after(stored: Stored, place: int, case: Case, steps: tuple[Step, ...]) -> bool:
    held, subject, nodes = case.subject.policy, case.subject, list(case.target.nodes)
    members, user_roles = dict(held.members), dict(held.user_roles)
    grants = in_force(subject)
    for step in steps:
        assert step.on is not None
        if step.change == "addMember":
            members[step.on.id] = members.get(step.on.id, frozenset()) | {subject.id}
        elif step.change == "own":
            at = next(depth for depth, node in enumerate(nodes) if node.id == step.on.id)
            nodes[at] = nodes[at]._replace(owner_user_id=subject.id, owner_group_id=None)
        elif step.change == "grant":
            assert step.privilege is not None
            user_roles[subject.id] = (*held.user_roles.get(subject.id, ()), FRESH)
            of_role = grants.setdefault(FRESH, {})
            of_role[step.on.id] = of_role.get(step.on.id, 0) | step.privilege.bit
        else:
            assert step.change == "liftDeny" and step.privilege is not None and step.role is not None
            grants[role_id(stored, place, step.role)][step.on.id] &= ~mask_of(step.privilege, Effect.DENY)
    changed: Snapshot = replace(held, members=members, user_roles=user_roles, grants=grants, timed={}, _roles={})
    return policy.permits(replace(subject, policy=changed), case.operation, Located(nodes=tuple(nodes)))


def test_who_is_named_may_make_the_change_and_nobody_else() -> None:
    named = 0
    for stored, place, case, (_, _, sets) in decided():
        for step in {step for steps in sets or () for step in steps}:
            assert step.by is not None
            if step.by.names is not None:
                able = {actor.name for actor in people(stored, place) if may(actor, case, step)}
                assert set(step.by.names) <= able, step
                assert len(able) == len(step.by.names) + step.by.more, (step, able)
                named += len(able)
    assert named > share(300)


def may(actor: Actor, case: Case, step: Step) -> bool:
    on, top = step.on, Located(nodes=case.target.nodes[:1])
    assert on is not None
    if step.change == "addMember":
        return policy.permits(actor, operations.MANAGE_USERS, top)
    if step.change == "own":
        return policy.permits(actor, operations.own(on.kind), on)
    if step.change == "liftDeny":
        return may_lift(actor, on)
    assert step.privilege is not None
    if "assign it" in step.says and not policy.permits(actor, operations.ASSIGN_ROLES, top):
        return False
    return may_give(actor, on, step.privilege)
