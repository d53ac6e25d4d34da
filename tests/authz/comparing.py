"""What must be the same on both sides after each step: the rows, the lists, the decisions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace

from authz import policy, snapshot
from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import Grant as StoredGrant
from authz.models import Member
from authz.objects import by_ids
from authz.services import authority, roles
from authz.services.snapshot_changes import GroupRole, GroupUser, UserRole
from catalogs.services import catalogs, schemas, tables
from metalake.errors import Forbidden, NotFound
from metalake.lineage import Address, Located
from metalake.models import Securable
from metalake.privileges import Privilege
from tests.authz import model
from tests.authz.mirror import FORBIDDEN, OK, UNSEEN, Mirror
from tests.authz.small_world import held
from tests.authz.test_policy import ask, supported
from tests.authz.worlds import Question, random_questions

QUESTIONS = 20


def compare(twin: Mirror, rng: random.Random) -> None:
    """The rows, the lists of one user and some decisions, or AssertionError."""
    for what, (found, wanted) in _rows(twin).items():
        assert found == wanted, f"{what}: {found - wanted} should not be stored, {wanted - found} should be"
    published = snapshot.latest()
    assert held(published) == held(snapshot.load()), "what was published is not what is stored"
    user = rng.choice([user for user in twin.accounts if user != twin.founder])  # who mostly sees everything
    _compare_lists(twin, user, rng.choice(twin.all("metalake")))
    _compare_decisions(twin, random_questions(twin.world, rng.randrange(2**32), 2 * QUESTIONS), published)


def _rows(twin: Mirror) -> dict[str, tuple[set, set]]:
    """Everything that rights depend on, as it is stored and as the model has it."""
    world = twin.world
    fields = ("id", "kind", "name", "parent_id", "owner_user_id", "owner_group_id", "lineage")
    objects = {
        (
            *(o.id, o.kind, o.name, o.parent),
            *((o.owner.id, None) if o.owner.kind == "user" else (None, o.owner.id)),
            "".join(f"/{above}" for above in reversed(world.lineage(o.id))),
        )
        for o in world.objects.values()
    }
    members = {(*pair, pair in world.members) for pair in world.members | twin.disabled}
    of_users = {(holder.id, role) for role, holder in world.assignments if holder.kind == "user"}
    of_groups = {(holder.id, role) for role, holder in world.assignments if holder.kind == "group"}
    return {
        "objects": (set(Securable.objects.values_list(*fields)), objects),
        "grants": (
            set(StoredGrant.objects.values_list("group__role", "permission__codename", "effect", "content_object")),
            {grant[:4] for grant in world.grants},
        ),
        "members": (set(Member.objects.values_list("metalake", "user", "enabled")), members),
        "users' roles": (set(UserRole.objects.values_list("user", "group__role")), of_users),
        "groups' roles": (set(GroupRole.objects.values_list("group", "role")), of_groups),
        "groups' users": (
            set(GroupUser.objects.values_list("group", "user")),
            {(group.id, user) for group in world.groups.values() for user in group.members},
        ),
    }


def _compare_lists(twin: Mirror, user: int, metalake: int) -> None:
    actor = actor_of(twin.accounts[user])
    found, wanted = set(_listed(actor, twin.name(metalake))), set(_shown(twin, user, metalake))
    assert found == wanted, f"{actor.name} is shown {found}, where the model shows {wanted}"


def _shown(twin: Mirror, user: int, container: int, *above: str) -> Iterable[tuple[str, ...]]:
    for kind in ("role", "catalog", "schema", "table"):
        for child in model.visible(twin.world, user, container, kind):
            path = (*above, twin.name(child))
            yield kind, *path
            if kind in ("catalog", "schema"):
                yield from _shown(twin, user, child, *path)


def _compare_decisions(twin: Mirror, questions: Sequence[Question], published: snapshot.Snapshot) -> None:
    asked = [question for question in questions if question.obj and _is_asked(twin, question)]
    decided = _Decided(
        published, {id: a.username for id, a in twin.accounts.items()}, by_ids(q.obj or 0 for q in asked)
    )
    for question in asked[:QUESTIONS]:
        found, wanted = decided(question), model.answer(twin.world, *question)
        assert found in (wanted, None), f"{question} is answered {found}, where the model says {wanted}"


def _is_asked(twin: Mirror, question: Question) -> bool:
    if question.operation == "grant_privilege":  # where only another privilege is given, see _gives
        return question.privilege not in ("manage_grants", "bootstrap_namespace")
    return question.operation == "load_role" or (
        question.operation not in ("revoke_privilege", "create_role") and supported(twin.world, question)
    )


class _Decided:
    """The evaluator's answers on the rows as they are stored."""

    def __init__(self, published: snapshot.Snapshot, names: dict[int, str], lines: dict[int, Located]) -> None:
        self.policy, self.names, self.lines = published, names, lines

    def actor(self, place: int, user: int, how: model.Request = model.BARE) -> Actor:
        active = None if how.active is None else tuple(how.active)
        return Actor(user, self.names[user], self.policy, claimed=tuple(how.claimed), active=active)

    def line(self, place: int, obj: int) -> Located:
        return self.lines[obj]

    def __call__(self, question: Question) -> str | None:
        actor, line = self.actor(0, question.user, question.how), self.line(0, question.obj or 0)
        try:
            match question.operation:
                case "grant_privilege":
                    authority.require_give(actor, line, [Privilege(question.privilege)])
                case "lift_deny":
                    authority.require_lift(actor, line)
                case "load_role":
                    return OK if policy.sees(actor, line) else UNSEEN
                case _:
                    return ask(self, 0, question)  # type: ignore[arg-type]
        except Forbidden:
            return FORBIDDEN
        except NotFound:
            return UNSEEN
        return OK


def _listed(actor: Actor, metalake: str) -> Iterable[tuple[str, ...]]:
    """Everything that the lists of the services lead this actor to."""
    try:
        names = roles.list_roles(actor, metalake)
        found = [catalog.name for catalog in catalogs.list_catalogs(actor, metalake)]
    except NotFound:
        return
    yield from (("role", name) for name in names)
    for catalog in found:
        yield "catalog", catalog
        yield from _listed_schemas(actor, Address(metalake=metalake, catalog=catalog))


def _listed_schemas(actor: Actor, container: Address) -> Iterable[tuple[str, ...]]:
    for path in schemas.list_schemas(actor, container).paths:
        ident = replace(container, schema=list(path.segments))
        yield "schema", container.catalog or "", *path.segments
        for table in tables.list_tables(actor, ident).names:
            yield "table", container.catalog or "", *path.segments, table
        yield from _listed_schemas(actor, ident)
