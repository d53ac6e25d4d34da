"""Random histories of everything that changes rights, through the real services and through the model at once."""

from __future__ import annotations

import random
from copy import copy
from typing import ClassVar

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from authz import snapshot
from tests.authz.comparing import compare
from tests.authz.mirror import USERS
from tests.authz.model import ALLOW, DENY, Party
from tests.authz.stateful import Twin
from tests.authz.worlds import GRANTABLE_ON
from tests.profiles import share

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

# Look-alikes, so that whoever compares names instead of ids is caught; few, so that they are taken, freed and reused.
CATALOGS = st.sampled_from(("A", "a", "AB"))
SCHEMAS = st.sampled_from(("A", "B", "AB", "a", "A.B"))
TABLES = st.sampled_from(("A", "B", "A:B", "AB", "a", "A.B"))
GROUPS = st.sampled_from(("A", "a", "A:B"))
ROLES = st.sampled_from(("A", "a", "A/B", "AB", "B"))

ANY = st.integers(0, 59)  # which one of those there are
WHO = st.sampled_from((None, None, None, None, *range(len(USERS))))  # mostly the metalake's owner, who succeeds
PRIVILEGES = st.sampled_from(
    (
        *("use_catalog", "use_schema", "select_table", "create_schema", "create_table", "manage_grants") * 3,
        *("modify_table", "bootstrap_namespace", "create_catalog", "create_role", "manage_users", "manage_groups"),
    )
)


class Histories(RuleBasedStateMachine):
    """A run starts from the same small world, in a savepoint of its own."""

    start: ClassVar[Twin]

    def __init__(self) -> None:
        super().__init__()
        self.savepoint = transaction.savepoint()
        snapshot.forget()
        self.twin = copy(self.start)
        self.twin.steps = []

    def teardown(self) -> None:
        transaction.savepoint_rollback(self.savepoint)
        snapshot.forget()
        for step in self.twin.steps:
            note(step)

    @invariant()
    def both_sides_agree(self) -> None:
        compare(self.twin, random.Random(len(self.twin.steps)))

    # Who and what.

    def one(self, n: int, *kinds: str, metalake: int | None = None) -> int | None:
        there = [obj for kind in kinds for obj in self.twin.all(kind, metalake)]
        return there[n % len(there)] if there else None

    def a_metalake(self, n: int) -> int:
        return self.twin.all("metalake")[n % 4 == 3]  # mostly the first

    def user(self, who: int | None, metalake: int) -> int:
        return self.twin.owner(metalake) if who is None else list(self.twin.accounts)[who]

    # Objects.

    @rule(who=WHO, n=ANY, name=CATALOGS)
    def create_catalog(self, who: int | None, n: int, name: str) -> None:
        metalake = self.a_metalake(n)
        self.twin.create_catalog(self.user(who, metalake), metalake, name)

    @rule(who=WHO, n=ANY, levels=st.lists(SCHEMAS, min_size=1, max_size=3))
    def create_schema(self, who: int | None, n: int, levels: list[str]) -> None:
        container = self.one(n, "catalog", "schema")
        if container and len(self.twin.world.lineage(container)) < 7:
            self.twin.create_schema(self.user(who, self.twin.metalake(container)), container, *levels)

    @rule(who=WHO, n=ANY, name=TABLES)
    def create_table(self, who: int | None, n: int, name: str) -> None:
        if schema := self.one(n, "schema"):
            self.twin.create_table(self.user(who, self.twin.metalake(schema)), schema, name)

    @rule(who=WHO, n=ANY)
    def drop_catalog(self, who: int | None, n: int) -> None:
        self.drop(who, self.one(n, "catalog"))

    @rule(who=WHO, n=ANY)
    def drop_schema(self, who: int | None, n: int) -> None:
        self.drop(who, self.one(n, "schema"))

    @rule(who=WHO, n=ANY)
    def drop_table(self, who: int | None, n: int) -> None:
        self.drop(who, self.one(n, "table"))

    def drop(self, who: int | None, obj: int | None) -> None:
        if obj:
            self.twin.drop(self.user(who, self.twin.metalake(obj)), obj)

    @rule(who=WHO, n=ANY, to=ANY, name=TABLES)
    def rename_table(self, who: int | None, n: int, to: int, name: str) -> None:
        if table := self.one(n, "table"):
            catalog, metalake = self.twin.world.lineage(table)[-2:]
            homes = [s for s in self.twin.all("schema", metalake) if catalog in self.twin.world.lineage(s)]
            self.twin.rename_table(self.user(who, metalake), table, homes[to % len(homes)], name)

    @rule(who=WHO, n=ANY, name=CATALOGS)
    def rename_catalog(self, who: int | None, n: int, name: str) -> None:
        if catalog := self.one(n, "catalog"):
            self.twin.rename_catalog(self.user(who, self.twin.metalake(catalog)), catalog, name)

    @rule(who=WHO, n=ANY, kind=st.sampled_from(("metalake", "catalog", "schema", "schema", "table", "role")), to=ANY)
    def set_owner(self, who: int | None, n: int, kind: str, to: int) -> None:
        if obj := self.one(n, kind):
            parties = self.twin.parties(self.twin.metalake(obj))
            self.twin.set_owner(self.user(who, self.twin.metalake(obj)), obj, parties[to % len(parties)])

    # Grants and roles.

    @rule(who=WHO, n=ANY, on=ANY, privilege=PRIVILEGES)
    def allow(self, who: int | None, n: int, on: int, privilege: str) -> None:
        self.grant(who, n, on, privilege, ALLOW)

    @rule(who=WHO, n=ANY, on=ANY, privilege=PRIVILEGES)
    def deny(self, who: int | None, n: int, on: int, privilege: str) -> None:
        self.grant(who, n, on, privilege, DENY)

    def grant(self, who: int | None, n: int, on: int, privilege: str, effect: str) -> None:
        if role := self.one(n, "role"):
            metalake = self.twin.metalake(role)
            if obj := self.one(on, *GRANTABLE_ON[privilege], metalake=metalake):
                self.twin.grant(self.user(who, metalake), role, privilege, effect, obj)

    @rule(who=WHO, n=ANY)
    def revoke(self, who: int | None, n: int) -> None:
        if there := self.twin.world.grants:
            grant = there[n % len(there)]
            self.twin.revoke(self.user(who, self.twin.metalake(grant.obj)), grant)

    @rule(who=WHO, n=ANY, name=ROLES)
    def create_role(self, who: int | None, n: int, name: str) -> None:
        metalake = self.a_metalake(n)
        self.twin.create_role(self.user(who, metalake), metalake, name)

    @rule(who=WHO, n=ANY)
    def drop_role(self, who: int | None, n: int) -> None:
        if role := self.one(n, "role"):
            self.twin.drop_role(self.user(who, self.twin.metalake(role)), role)

    @rule(who=WHO, n=ANY, to=ANY)
    def assign(self, who: int | None, n: int, to: int) -> None:
        if role := self.one(n, "role"):
            parties = self.twin.parties(self.twin.metalake(role))
            self.twin.assign(self.user(who, self.twin.metalake(role)), role, parties[to % len(parties)])

    @rule(who=WHO, n=ANY)
    def unassign(self, who: int | None, n: int) -> None:
        if held := sorted(self.twin.world.assignments):
            role, holder = held[n % len(held)]
            self.twin.unassign(self.user(who, self.twin.metalake(role)), role, holder)

    # People.

    @rule(who=WHO, n=ANY, added=ANY, enabled=st.sampled_from((True, True, False)))
    def add_user(self, who: int | None, n: int, added: int, enabled: bool) -> None:
        metalake = self.a_metalake(n)
        users = list(self.twin.accounts)
        self.twin.add_user(self.user(who, metalake), metalake, users[added % len(users)], enabled)

    @rule(who=WHO, n=ANY, removed=ANY)
    def remove_user(self, who: int | None, n: int, removed: int) -> None:
        metalake = self.a_metalake(n)
        users = self.twin.belonging(metalake)
        self.twin.remove_user(self.user(who, metalake), metalake, users[removed % len(users)])

    @rule(who=WHO, n=ANY, name=GROUPS)
    def add_group(self, who: int | None, n: int, name: str) -> None:
        metalake = self.a_metalake(n)
        self.twin.add_group(self.user(who, metalake), metalake, name)

    @rule(who=WHO, n=ANY)
    def remove_group(self, who: int | None, n: int) -> None:
        if groups := list(self.twin.world.groups.values()):
            group = groups[n % len(groups)]
            self.twin.remove_group(self.user(who, group.metalake), group.id)

    @rule(who=WHO, n=ANY, add=st.lists(ANY, max_size=2), remove=st.lists(ANY, max_size=2))
    def set_group_users(self, who: int | None, n: int, add: list[int], remove: list[int]) -> None:
        if groups := list(self.twin.world.groups.values()):
            group = groups[n % len(groups)]
            users = self.twin.belonging(group.metalake)
            inside = sorted({*users, *group.members})  # former members too
            added, removed = ([of[i % len(of)] for i in some] for of, some in ((users, add), (inside, remove)))
            self.twin.set_group_users(self.user(who, group.metalake), group.id, added, removed)


def beginning() -> Twin:
    """acme: catalog A > A > B > table A, and AB > B beside; Acme is another metalake. What is seldom met is near.

    mia owns the table and may create others, so that she could move it away from the DENY on A:B. nils has a role with
    that DENY and schema AB by a group; Olga, who manages grants but not on A, could free him of it. mi may use A:B if A
    were not denied to her, sees AB as the way to AB:B, and makes schemas whose parents are missing.
    """
    twin = Twin()
    acme, other = twin.create_metalake("acme"), twin.create_metalake("Acme")
    users = list(twin.accounts)
    olga, manager, mia, mi, nils = users
    for user in users[1:]:
        twin.add_user(olga, acme, user)
    twin.add_user(olga, other, mia)
    for metalake in (acme, other):
        twin.create_catalog(olga, metalake, "A")
        twin.create_role(olga, metalake, "A")
    catalog = twin.all("catalog", acme)[0]
    twin.create_schema(olga, catalog, "A", "B")
    twin.create_schema(olga, catalog, "AB", "B")
    above, inner, beside, far = twin.all("schema")
    twin.create_table(olga, inner, "A")
    for name in ("a", "AB", "A/B"):
        twin.create_role(olga, acme, name)
    reads, passes, manages, paths = twin.all("role", acme)
    twin.add_group(olga, acme, "A")
    group = Party("group", twin.groups(acme)[0])
    twin.set_group_users(olga, group.id, [nils])
    for role, holder, allowed, denied in (
        (reads, mia, [(p, catalog) for p in ("use_catalog", "use_schema", "select_table", "create_table")], []),
        (passes, None, [("use_catalog", acme), ("use_schema", acme)], [("create_schema", inner)]),
        (manages, manager, [("use_catalog", acme), ("manage_grants", acme)], [("manage_grants", above)]),
        (paths, mi, [(p, catalog) for p in ("use_catalog", "bootstrap_namespace")], [("use_schema", above)]),
        (paths, mi, [("use_schema", inner), ("use_schema", far)], []),
    ):
        for effect, pairs in ((ALLOW, allowed), (DENY, denied)):
            for privilege, obj in pairs:
                twin.grant(olga, role, privilege, effect, obj)
        twin.assign(olga, role, Party("user", holder) if holder else group)
    twin.set_owner(olga, twin.all("table")[0], Party("user", mia))
    twin.set_owner(olga, beside, group)
    twin.set_owner(olga, passes, group)
    return twin


def run(runs: int, steps: int, *, same: bool) -> None:
    Histories.start = beginning()
    asked = settings(
        max_examples=runs,
        stateful_step_count=steps,
        derandomize=same,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Histories, settings=asked)


@pytest.mark.store
@pytest.mark.timeout(600)  # a failure is made small, which takes its time
def test_histories() -> None:
    run(share(60), 30, same=True)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_many_histories() -> None:
    run(share(1_000), 80, same=False)
