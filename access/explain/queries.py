"""Who reaches an object, what somebody reaches, and bulk checks; access.explain.permissions decides who may ask."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from access.explain import reach
from access.explain.explanations import Wanted
from access.explain.permissions import Place, as_of_today, locate, open_on, open_state, require_reader, subject
from access.explain.reach import Access, Reached
from access.history.current import State
from authz import policy
from authz.actor import NOBODY, Actor
from authz.callers.enumeration import count_misses, misses_counted
from authz.models import Group, Member
from authz.objects import address_of, batches, finder
from authz.operations import read_access
from authz.services.authority import require
from authz.snapshot import Snapshot
from metalake.errors import NotFound, at
from metalake.kinds import family
from metalake.lineage import Address, Located
from metalake.privileges import Privilege

MAX_QUESTIONS = 1000


class Whom(NamedTuple):
    """A "user", a "group" or a "role" by name."""

    sort: str
    name: str


def ids_of(top: Located, sort: str, names: Collection[str] | None = None) -> dict[str, int]:
    """The ids of a metalake's users or groups, of these names or of all; those that do not exist are left out."""
    rows: Any = Member.objects.filter(metalake_id=top.id).values_list("user__username", "user_id")
    if sort == "group":
        rows = Group.objects.filter(metalake_id=top.id).values_list("name", "pk")
    if names is None:
        return dict(rows)
    field = "name" if sort == "group" else "user__username"
    return dict(pair for some in batches(names) for pair in rows.filter(**{f"{field}__in": some}))


class Question(NamedTuple):
    """Whether a user (None: the caller) may do an operation on an object."""

    user: str | None
    wanted: Wanted
    on: Place


def who_reaches(
    actor: Actor, metalake: str, on: Place, as_of: datetime | None, privilege: Privilege | None, after: str
) -> tuple[Located, Iterator[Access]]:
    """The object, and the members who can use a privilege on it, by name, from the one after `after`.

    Raises NotFound and Forbidden unless the caller may read who has access there.
    """
    state, target = open_on(actor, metalake, on, as_of)
    require_reader(actor, state, target)
    return target, reach.access_to(state, target, privilege, after)


@misses_counted("user", "group", "role")
def what_is_reached(
    actor: Actor,
    metalake: str,
    whom: Whom,
    below: Place | None,
    as_of: datetime | None,
    privilege: Privilege | None,
    after: str = "",
) -> Iterator[Reached]:
    """What somebody reaches at or below an object (None: the metalake), by lineage, from the one after `after`.

    Everybody may ask about themselves; asking about others requires the right to read access to that object. Raises
    NotFound and Forbidden, and NotFound of kind "user", "group" or "role", before the first object.
    """
    state = open_state(actor, metalake, as_of)
    target = locate(actor, state, below) if below else state.top
    if whom.sort == "user":
        about = subject(actor, state, target, whom.name)
        if about.id == NOBODY and whom.name != actor.name:
            raise _missing(whom)
    else:
        require_reader(actor, state, target)
        about = _group_or_role(state, whom, state.policy_on())
    return reach.reach(state, about, target, privilege, after)


def _group_or_role(state: State, whom: Whom, snapshot: Snapshot) -> Actor:
    """A member with only the rights of this group or role. Raises NotFound if there is none of that name."""
    names = state.groups() if whom.sort == "group" else state.roles()
    id = next((id for id, name in names.items() if name == whom.name), None)
    if id is None:
        raise _missing(whom)
    make = reach.group_alone if whom.sort == "group" else reach.role_alone
    return make(id, whom.name, snapshot, state.at)


def _missing(whom: Whom) -> NotFound:
    return NotFound(f"{whom.sort.capitalize()} {whom.name} does not exist.", kind=whom.sort)


def check(actor: Actor, metalake: str, questions: Sequence[Question], as_of: datetime | None) -> list[bool]:
    """The answers in order, all as of one moment; a missing, hidden or not yet imported object is a no.

    Raises Invalid for a malformed name, and Forbidden for a question about somebody else on an object that the caller
    sees but may not read access to; both name the question.
    """
    state = open_state(actor, metalake, as_of)
    located = _locate_all(state, questions)
    snapshot = state.policy_on({node.id for each in located.values() for node in each.nodes})
    myself = actor if state.at is None else state.actor(actor.name, snapshot)
    members = state.members() if any(question.user not in (None, actor.name) for question in questions) else {}
    subjects = {None: myself, actor.name: myself}
    may_read: dict[int, bool] = {}
    today = _today(state, questions, located, actor)
    types = _types(questions, located)
    answers = []
    for place, (user, wanted, on) in enumerate(questions):
        target = located.get(on)
        if target is not None and user not in (None, actor.name):
            if target.id not in may_read:
                may_read[target.id] = _may_read(actor, today[target.id], place)
            if not may_read[target.id]:
                target = None
        if user not in subjects:
            subjects[user] = Actor(members.get(user or "", NOBODY), user or "", snapshot, at=state.at)
        answers.append(target is not None and _allowed(subjects[user], wanted, target, types))
    return answers


@misses_counted("user")
def nobodys_names(actor: Actor, metalake: str, questions: Sequence[Question], as_of: datetime | None) -> frozenset[str]:
    """The users of the questions that nobody is called, for a caller who may read access to one of the objects.

    A miss counts as a guess; for others the answer is empty. Raises as `check` does, and TooManyRequests.
    """
    users = {question.user for question in questions if question.user not in (None, actor.name)}
    if not users:
        return frozenset()
    state = open_state(actor, metalake, as_of)
    located = _locate_all(state, questions).values()
    today = located if state.at is None else as_of_today(list(located))
    if not any(policy.permits(actor, read_access(on.kind), on) for on in today):
        return frozenset()
    nobodys = frozenset(user for user in users if user is not None and user not in state.members())
    count_misses(actor, metalake, "user", len(nobodys))
    return nobodys


def _locate_all(state: State, questions: Sequence[Question]) -> dict[Place, Located]:
    addresses: dict[Place, Address] = {}
    for place, question in enumerate(questions):
        if question.on not in addresses:
            with at(f"questions[{place}]"):
                addresses[question.on] = address_of(state.top.name, *question.on)
    located = state.locate_all(addresses.values())
    return {on: located[address] for on, address in addresses.items() if address in located}


def _types(questions: Sequence[Question], located: Mapping[Place, Located]) -> dict[int, str]:
    """The type of each catalog that is asked about with a privilege that only one type of catalog has."""
    asked = [question.on for question in questions if question.wanted.privilege and family(question.wanted.privilege)]
    ids = {located[on].nodes[1].id for on in asked if on in located and len(located[on].nodes) > 1}
    return finder().catalog_types(ids) if ids else {}


def _today(
    state: State, questions: Sequence[Question], located: Mapping[Place, Located], actor: Actor
) -> dict[int, Located]:
    """The objects of questions about others, by id, as they are today, to check the right to read access on."""
    about_others = [on for user, _, on in questions if on in located and user not in (None, actor.name)]
    targets = [located[on] for on in dict.fromkeys(about_others)]
    present = targets if state.at is None else as_of_today(targets)
    return {each.id: now for each, now in zip(targets, present, strict=True)}


def _may_read(actor: Actor, today: Located, place: int) -> bool:
    try:
        with at(f"questions[{place}]"):
            require(actor, read_access(today.kind), today)
    except NotFound:
        return False
    return True


def _allowed(about: Actor, wanted: Wanted, target: Located, types: Mapping[int, str]) -> bool:
    catalog_type = types.get(target.nodes[1].id) if len(target.nodes) > 1 else None
    return wanted.applies(catalog_type) and policy.permits(about, wanted.operation, target)
