"""Who reaches an object, what somebody reaches, and many checks at once; who may ask is what asking says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from authz import policy
from authz.access import reach
from authz.access.asking import open_state, require_reader, standing, subject
from authz.access.explanations import Wanted
from authz.access.reach import Access, Reached
from authz.actor import NOBODY, Actor
from authz.callers.guessing import misses_counted
from authz.history.state import State
from authz.objects import address_of, finder
from authz.operations import FAMILIES, read_access
from authz.services.authority import require
from authz.snapshot import Snapshot
from metalake.errors import Invalid, NotFound, at
from metalake.kinds import Kind, family
from metalake.lineage import Address, Located
from metalake.privileges import Privilege

MAX_QUESTIONS = 1000


class Place(NamedTuple):
    """An object by its dotted full name."""

    kind: Kind
    full_name: str


class Whom(NamedTuple):
    """A "user", a "group" or a "role" by name."""

    sort: str
    name: str


class Question(NamedTuple):
    """Whether a user (None: the caller) may do what is wanted on an object."""

    user: str | None
    wanted: Wanted
    on: Place


def who_reaches(
    actor: Actor, metalake: str, on: Place, as_of: datetime | None, privilege: Privilege | None, after: str
) -> tuple[Located, Iterator[Access]]:
    """The object, and the members who can use a privilege on it, by name, behind one.

    Raises NotFound and Forbidden unless the caller may read who has access there.
    """
    state = open_state(actor, metalake, as_of)
    found = _locate(actor, state, on)
    require_reader(actor, state, found)
    return found, reach.access_to(state, found, privilege, after)


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
    """What somebody reaches at or below an object (None: the metalake), by lineage, behind one.

    Everybody asks about themselves; others are for whoever may read access to that object. Raises NotFound and
    Forbidden, and NotFound of kind "user", "group" or "role", before the first object.
    """
    state = open_state(actor, metalake, as_of)
    found = _locate(actor, state, below) if below else state.top
    if whom.sort == "user":
        about = subject(actor, state, found, whom.name)
        if about.id == NOBODY and whom.name != actor.name:
            raise _nobody(whom)
    else:
        require_reader(actor, state, found)
        about = _alone(state, whom, state.policy_on())
    return reach.reach(state, about, found, privilege, after)


def _alone(state: State, whom: Whom, held: Snapshot) -> Actor:
    names = state.groups() if whom.sort == "group" else state.roles()
    id = next((id for id, name in names.items() if name == whom.name), None)
    if id is None:
        raise _nobody(whom)
    make = reach.group_alone if whom.sort == "group" else reach.role_alone
    return make(id, whom.name, held, state.at)


def _nobody(whom: Whom) -> NotFound:
    return NotFound(f"{whom.sort.capitalize()} {whom.name} does not exist.", kind=whom.sort)


def _locate(actor: Actor, state: State, on: Place) -> Located:
    if on.kind not in FAMILIES["read_access"]:
        kinds = ", ".join(FAMILIES["read_access"])
        raise Invalid(f"Access is asked about on {kinds}, not on a {on.kind}.", kind="object")
    return state.locate(*on, actor)


def check(actor: Actor, metalake: str, questions: Sequence[Question], as_of: datetime | None) -> list[bool]:
    """The answers in order, all of them at one moment; what is missing or unseen is a no.

    Raises Invalid for a malformed name, and Forbidden for a question about somebody else on an object that the caller
    sees without being allowed to read access there; both name the question.
    """
    state = open_state(actor, metalake, as_of)
    located = _locate_all(state, questions)
    held = state.policy_on({node.id for found in located.values() for node in found.nodes})
    myself = actor if state.at is None else state.actor(actor.name, held)
    members = state.members() if any(question.user not in (None, actor.name) for question in questions) else {}
    subjects = {None: myself, actor.name: myself}
    may_read: dict[int, bool] = {}
    today = _today(state, questions, located, actor)
    types = _types(questions, located)
    answers = []
    for place, (user, wanted, on) in enumerate(questions):
        found = located.get(on)
        if found is not None and user not in (None, actor.name):
            if found.id not in may_read:
                may_read[found.id] = _may_read(actor, today[found.id], place)
            if not may_read[found.id]:
                found = None
        if user not in subjects:
            subjects[user] = Actor(members.get(user or "", NOBODY), user or "", held, at=state.at)
        answers.append(found is not None and _allowed(subjects[user], wanted, found, types))
    return answers


def _locate_all(state: State, questions: Sequence[Question]) -> dict[Place, Located]:
    addresses: dict[Place, Address] = {}
    for place, question in enumerate(questions):
        if question.on not in addresses:
            with at(f"questions[{place}]"):
                addresses[question.on] = address_of(state.top.name, *question.on)
    located = state.locate_all(addresses.values())
    return {on: located[address] for on, address in addresses.items() if address in located}


def _types(questions: Sequence[Question], located: Mapping[Place, Located]) -> dict[int, str]:
    """The types of the catalogs that privileges of one type are asked about in."""
    asked = [question.on for question in questions if question.wanted.privilege and family(question.wanted.privilege)]
    ids = {located[on].nodes[1].id for on in asked if on in located and len(located[on].nodes) > 1}
    return finder().catalog_types(ids) if ids else {}


def _today(
    state: State, questions: Sequence[Question], located: Mapping[Place, Located], actor: Actor
) -> dict[int, Located]:
    """Where it is asked who may read access to what questions about others are about."""
    about_others = [on for user, _, on in questions if on in located and user not in (None, actor.name)]
    found = [located[on] for on in dict.fromkeys(about_others)]
    stands = found if state.at is None else standing(found)
    return {each.id: now for each, now in zip(found, stands, strict=True)}


def _may_read(actor: Actor, today: Located, place: int) -> bool:
    try:
        with at(f"questions[{place}]"):
            require(actor, read_access(today.kind), today)
    except NotFound:
        return False
    return True


def _allowed(about: Actor, wanted: Wanted, target: Located, types: Mapping[int, str]) -> bool:
    catalog_type = types.get(target.nodes[1].id) if len(target.nodes) > 1 else None
    fits = wanted.privilege is None or reach.fits(wanted.privilege, catalog_type)
    return fits and policy.permits(about, wanted.operation, target)
