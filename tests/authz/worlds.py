"""Random worlds and questions, small enough to read when one fails and odd enough to find a wrong rule.

The same seed gives the same world. Names are look-alikes, so that whoever compares names instead of ids is caught.
"""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import count
from typing import NamedTuple

from tests.authz.model import ALLOW, BARE, DENY, Grant, Group, Party, Request, Securable, User, World

LOOK_ALIKES = ("A", "B", "A:B", "AB", "a", ".")  # `A` > `B` beside `A:B` is the rarest, so the first three come first
MAX_DEPTH = 8
LAST_MOMENT = 5  # of those that questions are asked at; at moment 0 nothing that starts has started, nothing has ended

_M, _MC, _MCS = ("metalake",), ("metalake", "catalog"), ("metalake", "catalog", "schema")
GRANTABLE_ON: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("create_catalog", "create_role", "manage_users", "manage_groups"), _M),
    **dict.fromkeys(("create_tag", "create_policy", "register_job_template", "run_job"), _M),
    **dict.fromkeys(("use_catalog", "bootstrap_namespace"), _MC),
    **dict.fromkeys(("create_schema", "use_schema", "create_table", "create_view", "create_topic"), _MCS),
    **dict.fromkeys(("create_fileset", "register_model", "register_function"), _MCS),
    **dict.fromkeys(("select_table", "modify_table"), (*_MCS, "table")),
    **dict.fromkeys(("select_view", "alter_view", "drop_view"), (*_MCS, "view")),
    **dict.fromkeys(("consume_topic", "produce_topic"), (*_MCS, "topic")),
    **dict.fromkeys(("read_fileset", "write_fileset"), (*_MCS, "fileset")),
    **dict.fromkeys(("use_model", "link_model_version"), (*_MCS, "model")),
    **dict.fromkeys(("execute_function", "modify_function"), (*_MCS, "function")),
    "manage_grants": (*_MCS, "table", "view", "topic", "fileset", "model", "function"),
    "apply_tag": (*_M, "tag"),
    "apply_policy": (*_M, "policy"),
    "use_job_template": (*_M, "job_template"),
}
"""Every privilege, and what it may be granted on."""

_ALL = ("metalake", "catalog", "schema", "table", "view")
ASKED_ON: dict[str, tuple[str, ...]] = {
    "create_metalake": (),
    **dict.fromkeys(("load_metalake", "alter_metalake", "drop_metalake", "enable_metalake"), _M),
    **dict.fromkeys(("create_catalog", "list_catalogs", "create_role", "manage_users", "manage_groups"), _M),
    **dict.fromkeys(
        ("load_catalog", "alter_catalog", "drop_catalog", "enable_catalog", "refresh_catalog", "choose_places"),
        ("catalog",),
    ),
    **dict.fromkeys(("list_schemas", "create_schema"), ("catalog", "schema")),
    **dict.fromkeys(("load_schema", "alter_schema", "drop_schema"), ("schema",)),
    **dict.fromkeys(("list_tables", "create_table", "register_table"), ("schema",)),
    **dict.fromkeys(("list_views", "create_view", "register_view"), ("schema",)),
    **dict.fromkeys(("load_table", "alter_table", "drop_table", "commit_table", "rename_table"), ("table",)),
    "release_places": ("table",),
    "vend_credentials": ("table",),
    **dict.fromkeys(("load_view", "alter_view", "drop_view"), ("view",)),
    **dict.fromkeys(("set_owner", "load_owner"), (*_ALL, "role")),
    **dict.fromkeys(("grant_privilege", "revoke_privilege", "lift_deny"), _ALL),
    **dict.fromkeys(("assign_role", "override_role", "load_role", "drop_role"), ("role",)),
}
"""Every operation, and the kinds of object it may be asked on."""

# Privileges of the objects that these worlds hold, the more telling ones more often; the rest come in now and then.
_WEIGHTS = {
    **dict.fromkeys(("use_catalog", "use_schema", "bootstrap_namespace"), 5),
    **dict.fromkeys(("create_schema", "create_table", "manage_grants"), 4),
    **dict.fromkeys(("select_table", "modify_table", "create_view", "select_view", "alter_view", "drop_view"), 2),
    **dict.fromkeys(("create_catalog", "manage_users", "manage_groups", "create_role", "run_job"), 2),
}
_READING = ("select_table", "modify_table", "create_table", "create_schema", "select_view", "drop_view")


def _privileges_on(kind: str) -> tuple[str, ...]:
    return tuple(p for p, weight in _WEIGHTS.items() if kind in GRANTABLE_ON[p] for _ in range(weight))


_PRIVILEGES_ON = {kind: _privileges_on(kind) for kind in _ALL}
_GRANTABLE_HERE = {kind: tuple(p for p, kinds in GRANTABLE_ON.items() if kind in kinds) for kind in _ALL}


class Question(NamedTuple):
    user: int
    operation: str
    obj: int | None
    missing: int = 0
    privilege: str = ""
    how: Request = BARE


def random_world(seed: int, *, strays: bool = True, timed: bool = True) -> World:
    """At most 3 metalakes, 4 catalogs, 60 objects, 8 levels, 8 roles, 4 groups and 6 users; about a quarter is DENY.

    With `strays` some users own, hold roles or sit in groups where they are no members. With `timed` most grants of
    every third world, about, are for a time.
    """
    rng = random.Random(seed)
    ids = count(1)
    accounts = [User(next(ids), f"user{n}", service_admin=rng.random() < 0.2) for n in range(rng.randint(3, 6))]
    users = {user.id: user for user in accounts}
    metalakes = [next(ids) for _ in range(rng.choice((1, 1, 1, 2, 2, 3)))]
    founder = rng.choice(list(users))
    members = frozenset((m, u) for m in metalakes for u in users if u == founder or rng.random() < 0.8)
    near = {m: [u for u in users if (m, u) in members or (strays and rng.random() < 0.3)] for m in metalakes}
    groups = _random_groups(rng, ids, near)
    parties = {m: _parties(near[m], groups, m) for m in metalakes}
    objects = _random_objects(rng, ids, parties)
    roles = {next(ids): rng.choice(metalakes) for _ in range(rng.randint(1, 8))}
    grants = _random_grants(rng, objects, roles)
    for role, metalake in roles.items():
        objects[role] = Securable(role, "role", f"role{role}", metalake, rng.choice(parties[metalake]))
    assignments = frozenset((r, p) for r, m in roles.items() for p in parties[m] if rng.random() < 0.45)
    if timed:
        grants = _for_a_time(random.Random(f"times of {seed}"), grants)
    return World(users, groups, objects, members, assignments, grants)


def _for_a_time(rng: random.Random, grants: tuple[Grant, ...]) -> tuple[Grant, ...]:
    if rng.random() > 1 / 3:
        return grants
    share = {ALLOW: 0.5, DENY: 0.8}
    return tuple(_with_a_span(rng, grant) if rng.random() < share[grant.effect] else grant for grant in grants)


def _with_a_span(rng: random.Random, grant: Grant) -> Grant:
    starts, ends = sorted(rng.sample(range(1, LAST_MOMENT + 1), 2))
    return rng.choice((grant._replace(starts=starts), grant._replace(ends=ends), Grant(*grant[:4], starts, ends)))


def _random_groups(rng: random.Random, ids: count[int], near: dict[int, list[int]]) -> dict[int, Group]:
    groups = {}
    for n in range(rng.randint(0, 4)):
        metalake = rng.choice(list(near))
        joined = rng.sample(near[metalake], rng.randint(1, (len(near[metalake]) + 1) // 2))
        group = Group(next(ids), f"group{n}", metalake, frozenset(joined))
        groups[group.id] = group
    return groups


def _parties(users: list[int], groups: dict[int, Group], metalake: int) -> list[Party]:
    return [Party("user", u) for u in users] + [Party("group", g.id) for g in groups.values() if g.metalake == metalake]


def _random_objects(rng: random.Random, ids: count[int], parties: dict[int, list[Party]]) -> dict[int, Securable]:
    objects: dict[int, Securable] = {}
    room: list[tuple[int, int, int]] = []  # what may hold more: id, its metalake, its depth
    names: dict[int | None, list[str]] = {}

    def add(kind: str, parent: int | None, metalake: int, owner: Party, depth: int) -> None:
        free = names.setdefault(parent, rng.sample(LOOK_ALIKES[3:], 3) + rng.sample(LOOK_ALIKES[:3], 3))
        obj = metalake if kind == "metalake" else next(ids)
        objects[obj] = Securable(obj, kind, free.pop() if free else f"A{obj}", parent, owner)
        if kind == "catalog" or (kind == "schema" and depth < MAX_DEPTH):
            room.append((obj, metalake, depth))

    # Mostly one user, and the owner of what is above, or else nearly everyone owns an ancestor of everything.
    for metalake, near in parties.items():
        add("metalake", None, metalake, rng.choice(near[:1] * 3 + near), 1)
    for _ in range(rng.randint(1, 4)):
        metalake = rng.choice(list(parties))
        owner = objects[metalake].owner if rng.random() < 0.6 else rng.choice(parties[metalake])
        add("catalog", metalake, metalake, owner, 2)
    for _ in range(rng.randint(4, 60 - len(objects))):
        parent, metalake, depth = rng.choice(room[-6:] if rng.random() < 0.5 else room)
        owner = objects[parent].owner if rng.random() < 0.88 else rng.choice(parties[metalake])
        in_catalog = objects[parent].kind == "catalog"
        below_is_room = depth + 1 < MAX_DEPTH and rng.random() < 0.5
        kind = "schema" if in_catalog or below_is_room else rng.choice(("table", "table", "view"))
        add(kind, parent, metalake, owner, depth + 1)
    return objects


def _random_grants(rng: random.Random, objects: dict[int, Securable], roles: dict[int, int]) -> tuple[Grant, ...]:
    within = _ids_by_metalake(objects)
    grants: dict[tuple[int, str, int], Grant] = {}
    for role, metalake in roles.items():
        catalogs = [obj for obj in within[metalake] if objects[obj].kind == "catalog"]
        tops = (metalake, *catalogs)
        schemas = [obj for obj in within[metalake] if objects[obj].kind == "schema"] or tops
        traversal = (("use_catalog", tops), ("use_catalog", tops), ("use_schema", tops), ("use_schema", schemas))
        # Few get anywhere without some of these.
        for privilege, places in (*traversal[: rng.randint(2, 4)], (rng.choice(_READING), tops)):
            obj = rng.choice(places)
            grants[role, privilege, obj] = Grant(role, privilege, DENY if rng.random() < 0.08 else ALLOW, obj)
        chosen = []
        for _ in range(rng.randint(4, 12)):
            obj = rng.choice(tops) if rng.random() < 0.4 else rng.choice(within[metalake])
            kind = objects[obj].kind
            chosen.append((rng.choice((_PRIVILEGES_ON if rng.random() < 0.95 else _GRANTABLE_HERE)[kind]), obj))
        for privilege, obj in chosen:
            effect = DENY if rng.random() < 0.32 else ALLOW
            grants[role, privilege, obj] = Grant(role, privilege, effect, obj)
    return tuple(grants.values())


def _ids_by_metalake(objects: dict[int, Securable]) -> dict[int, list[int]]:
    metalake_of: dict[int, int] = {}
    within: dict[int, list[int]] = {}
    for obj in objects.values():  # parents come first
        metalake_of[obj.id] = obj.id if obj.parent is None else metalake_of[obj.parent]
        within.setdefault(metalake_of[obj.id], []).append(obj.id)
    return within


def random_questions(world: World, seed: int, number: int) -> list[Question]:
    """Questions that make sense in this world, on every operation that has an object; most often on create_schema.

    They are asked at any moment, a sixth of them with narrowed roles, a sixth with groups that a token claims.
    """
    rng, other = random.Random(seed), random.Random(f"requests of {seed}")
    by_kind: dict[str, list[int]] = {}
    for obj in world.objects.values():
        by_kind.setdefault(obj.kind, []).append(obj.id)
    operations = [op for op, kinds in ASKED_ON.items() if not kinds or any(kind in by_kind for kind in kinds)]
    operations += ["create_schema"] * 4  # it has the most to get wrong
    operations += ["drop_role"] * 4 * any(grant.ends for grant in world.grants)
    questions = [_random_question(rng, world, by_kind, rng.choice(operations)) for _ in range(number)]
    return [question._replace(how=random_request(other, world)) for question in questions]


def random_request(rng: random.Random, world: World, share: float = 1 / 6) -> Request:
    """Narrowed, or with claimed groups, with this chance each."""
    active, claimed = None, frozenset[int]()
    if rng.random() < share:
        roles = [obj.id for obj in world.objects.values() if obj.kind == "role"]
        active = frozenset(rng.sample(roles, rng.randint(0, len(roles) // 2)))
    if rng.random() < share and world.groups:
        claimed = frozenset(rng.sample(list(world.groups), rng.randint(1, min(2, len(world.groups)))))
    return Request(rng.randint(0, LAST_MOMENT), active, claimed)


def _random_question(rng: random.Random, world: World, by_kind: dict[str, list[int]], operation: str) -> Question:
    user = rng.choice(list(world.users))
    kinds = [kind for kind in ASKED_ON[operation] if kind in by_kind]
    if not kinds:
        return Question(user, operation, None)
    obj = rng.choice(by_kind[rng.choice(kinds)])
    if operation == "drop_role" and world.objects[obj].owner.kind == "user" and rng.random() < 0.7:
        user = world.objects[obj].owner.id  # nearly everyone else is stopped before the DENYs of the role are looked at
    if operation == "create_schema":
        return Question(user, operation, obj, missing=rng.choice((0, 0, 1, 3)))
    if operation in ("grant_privilege", "revoke_privilege"):
        return Question(user, operation, obj, privilege=rng.choice(_PRIVILEGES_ON[world.kind(obj)]))
    return Question(user, operation, obj)


def with_grant(world: World, grant: Grant) -> World:
    return replace(world, grants=(*world.grants, grant))


def with_owner(world: World, obj: int, owner: Party) -> World:
    return replace(world, objects={**world.objects, obj: replace(world.objects[obj], owner=owner)})
