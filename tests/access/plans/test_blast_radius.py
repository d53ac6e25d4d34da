"""The blast radius is exactly what an application does: counted object by object and user by user, on random worlds."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest

from access.explain import reach
from access.plans import apply, blast_radius, plan, undo
from access.plans.blast_report import SHOWN, BlastRadius
from access.plans.desired import Wanted, WantedGrant, WantedRole
from access.plans.export import export
from authz import policy, snapshot
from authz.actor import Actor
from authz.models import Member, User
from authz.objects import by_ids
from authz.services import people, roles
from authz.services.grant_entries import Given
from metalake.kinds import Kind, grantable_on
from metalake.models import Securable
from metalake.privileges import Effect, Privilege
from tests.authz.plan_files import change
from tests.authz.small_world import World

pytestmark = pytest.mark.store

P = Privilege
OFTEN = (P.USE_CATALOG, P.USE_SCHEMA, P.SELECT_TABLE, P.MODIFY_TABLE, P.CREATE_SCHEMA, P.CREATE_TABLE, P.MANAGE_GRANTS)
Lines = dict[tuple[Privilege, Kind], tuple[tuple[int, int, list[str]], tuple[int, int, list[str]]]]


class Random:
    """A world of up to 8 users, 3 groups, 6 roles, and 30 objects with all sorts of owners."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.rng = world, random.Random(seed)
        rng = self.rng
        for n in range(rng.randint(1, 4)):
            people.add_user(world.olga, "acme", f"user{n}")
        self.users = list(Member.objects.values_list("user__username", flat=True).order_by("pk"))
        self.groups = [f"group{n}" for n in range(rng.randint(0, 3))]
        for group in self.groups:
            world.group(group, *rng.sample(self.users, rng.randint(1, len(self.users))))
        schemas = [world.a, world.ab]
        for n in range(rng.randint(1, 6)):
            schemas.append(world.schema(f"s{n}", rng.choice([None, *schemas])))
        for n in range(rng.randint(1, 20)):
            world.table(f"t{n}", rng.choice(schemas))
        self.objects = list(Securable.objects.exclude(kind=Kind.ROLE).order_by("pk"))
        self._own()
        self.roles = [f"role{n}" for n in range(rng.randint(1, 6))]

    def _own(self) -> None:
        from authz.models import Group

        rng = self.rng
        users, groups = list(User.objects.filter(username__in=self.users)), list(Group.objects.all())
        for row in self.objects:
            if row.kind != Kind.METALAKE and rng.random() < 0.3:
                rows = Securable.objects.filter(pk=row.pk)
                if groups and rng.random() < 0.4:
                    rows.update(owner_user=None, owner_group=rng.choice(groups))
                else:
                    rows.update(owner_user=rng.choice(users))

    def file(self) -> Wanted:
        """Any state of this world's grants, times included, in the order that an export has."""
        rng = self.rng
        named = sorted(rng.sample(self.roles, rng.randint(1, len(self.roles))))
        return Wanted("acme", None, [self._role(f"roles[{n}]", name) for n, name in enumerate(named)])

    def _role(self, place: str, name: str) -> WantedRole:
        rng = self.rng
        located = by_ids(row.pk for row in self.objects)
        wanted = []
        for row in rng.sample(self.objects, rng.randint(0, min(8, len(self.objects)))):
            on = located[row.pk]
            if on.name == "files":
                continue
            some = [privilege for privilege in OFTEN if row.kind in grantable_on(privilege)]
            given = {privilege: self._given() for privilege in rng.sample(some, rng.randint(1, min(3, len(some))))}
            wanted.append(WantedGrant("", on.kind, ".".join(on.full_name), given))
        wanted.sort(key=lambda grant: (grant.kind != Kind.METALAKE, grant.full_name, grant.kind))
        users = sorted(rng.sample(self.users, rng.randint(0, len(self.users))))
        groups = sorted(rng.sample(self.groups, rng.randint(0, len(self.groups))))
        return WantedRole(
            place, name, users, groups, [grant._replace(place=f"{place}.{n}") for n, grant in enumerate(wanted)]
        )

    def _given(self) -> Given:
        from datetime import UTC, datetime

        effect = Effect.DENY if self.rng.random() < 0.3 else Effect.ALLOW
        if self.rng.random() < 0.15:
            return Given(effect, datetime(2999, 1, 1, tzinfo=UTC), None)
        return Given(effect, None, datetime(2999, 1, 1, tzinfo=UTC) if self.rng.random() < 0.2 else None)

    def usable(self) -> dict[tuple[str, int], set[Privilege]]:
        """policy.usable of every user on every object, as it is stored now."""
        snapshot.forget()
        now = snapshot.latest()
        located = by_ids(row.pk for row in self.objects)
        return {
            (name, id): {
                privilege
                for privilege in policy.usable(policy.rights_on(Actor(user, name, now), on), on.kind)
                if reach.fits(privilege, reach.type_of(on))
            }
            for name, user in User.objects.filter(username__in=self.users).values_list("username", "pk")
            for id, on in located.items()
        }


def counted(before: dict[tuple[str, int], set[Privilege]], after: dict[tuple[str, int], set[Privilege]]) -> Lines:
    kinds = dict(Securable.objects.values_list("pk", "kind"))
    found: dict[Any, Any] = defaultdict(lambda: (set(), set()))
    for (name, id), held in before.items():
        for at, privileges in ((0, after[name, id] - held), (1, held - after[name, id])):
            for privilege in privileges:
                users, objects = found[privilege, Kind(kinds[id]), at]
                users.add(name)
                objects.add(id)
    lines = {key[:2] for key in found}

    def side(key: tuple[Privilege, Kind], at: int) -> tuple[int, int, list[str]]:
        users, objects = found[(*key, at)]
        return len(users), len(objects), sorted(users)[:SHOWN]

    return {key: (side(key, 0), side(key, 1)) for key in lines}


def shown(told: BlastRadius) -> Lines:
    return {
        (line.privilege, line.kind): (
            (line.gain.users, line.gain.objects, line.gain.names),
            (line.lose.users, line.lose.objects, line.lose.names),
        )
        for line in told.lines
    }


@pytest.mark.store(once=True)
@pytest.mark.parametrize("seed", range(6))
def test_it_is_what_happens_on_random_worlds(world: World, seed: int) -> None:
    made = Random(world, seed)
    for _ in range(3):
        file = made.file()
        before = made.usable()
        planned = plan.plan(world.olga, "acme", file)
        assert not planned.blast.is_cut
        apply.apply_plan(world.olga, "acme", planned.token)
        assert shown(planned.blast) == counted(before, made.usable())
        exported = export(world.olga, "acme")
        assert plan.plan(world.olga, "acme", exported).changes == []
        assert plan.plan(world.olga, "acme", file).changes == []
        wanted = {role.name: role.grants for role in file.roles}
        for role in exported.roles:
            assert plain(role.grants) == plain(wanted.get(role.name, []))


@pytest.mark.parametrize("seed", range(4))
def test_changes_come_to_the_same_and_undo_gives_all_back(world: World, seed: int) -> None:
    made = Random(world, seed)
    apply.apply_plan(world.olga, "acme", plan.plan(world.olga, "acme", made.file()).token)
    before = export(world.olga, "acme")
    whole = plan.plan(world.olga, "acme", made.file())
    changes = plan.plan_changes(world.olga, "acme", whole.changes)
    assert (changes.changes, changes.blast) == (whole.changes, whole.blast)
    apply.apply_plan(world.olga, "acme", changes.token)
    inverse = undo.plan_undo(world.olga, "acme", changes.token)
    assert inverse.left == ()
    assert {key: sides[::-1] for key, sides in shown(inverse.blast).items()} == shown(whole.blast)
    apply.apply_plan(world.olga, "acme", inverse.token)
    assert export(world.olga, "acme") == before


def plain(grants_: list[WantedGrant]) -> list[tuple[Any, ...]]:
    return [grant[1:] for grant in grants_]


def test_random_worlds_change_something(world: World) -> None:
    made = Random(world, 3)
    sizes = []
    for _ in range(4):
        planned = plan.plan(world.olga, "acme", made.file())
        apply.apply_plan(world.olga, "acme", planned.token)
        sizes.append(len(planned.blast.lines))
    assert max(sizes) > 5


def test_traversal_opens_what_was_granted_below(world: World) -> None:
    world.give("mia", "use_schema@lake.A", "select_table@lake.A:B.t")
    roles.create_role(world.olga, "acme", "way")
    roles.assign_roles(world.olga, "acme", "user", "mia", ["way"])
    data = export(world.olga, "acme")
    way = next(role for role in data.roles if role.name == "way")
    way.grants.append(WantedGrant("here", Kind.CATALOG, "lake", {P.USE_CATALOG: Given(Effect.ALLOW)}))
    planned = plan.plan(world.olga, "acme", data)
    assert shown(planned.blast) == {
        (P.SELECT_TABLE, Kind.TABLE): ((1, 1, ["mia"]), (0, 0, [])),
        (P.USE_SCHEMA, Kind.SCHEMA): ((1, 2, ["mia"]), (0, 0, [])),
        (P.USE_CATALOG, Kind.CATALOG): ((1, 1, ["mia"]), (0, 0, [])),
    }
    assert planned.summary == (
        "1 user gains select_table on 1 table; 1 user gains use_schema on 2 schemas; "
        "1 user gains use_catalog on 1 catalog"
    )


def test_many_tables_and_users_are_few_steps(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 tables and 300 users who hold the same take no more steps than a handful."""
    tables(world, 1999)
    users = User.objects.bulk_create([User(username=f"u{n:03}") for n in range(300)])
    Member.objects.bulk_create(Member(metalake=world.acme, user=user, creator="olga") for user in users)
    snapshot.forget()
    monkeypatch.setattr(blast_radius, "BUDGET", 200)
    names = [user.username for user in users]
    given = {P.USE_CATALOG: Given(Effect.ALLOW), P.USE_SCHEMA: Given(Effect.ALLOW), P.SELECT_TABLE: Given(Effect.ALLOW)}
    file = Wanted("acme", None, [WantedRole("r", "all", names, None, [WantedGrant("g", Kind.CATALOG, "lake", given)])])
    planned = plan.plan(world.olga, "acme", file)
    assert not planned.blast.is_cut
    assert shown(planned.blast)[P.SELECT_TABLE, Kind.TABLE] == ((300, 2000, names[:5]), (0, 0, []))
    assert planned.summary.startswith("300 users gain select_table on 2,000 tables, 2 schemas and 1 catalog; ")


def test_a_preview_reads_only_so_many_objects(world: World) -> None:
    tables(world, 299)
    wish = [change("grant", world.give("mia", "use_catalog@lake", "use_schema@lake"), "select_table@lake")]
    cut, whole = (plan.plan_changes(world.olga, "acme", wish, budget=budget).blast for budget in (100, 1000))
    assert cut.is_cut and cut.summary == "at least: 1 user gains select_table on 98 tables, 2 schemas and 1 catalog"
    assert not whole.is_cut and shown(whole)[P.SELECT_TABLE, Kind.TABLE] == ((1, 300, ["mia"]), (0, 0, []))


def tables(world: World, count: int) -> None:
    """That many tables more in lake.A:B."""
    first = world.table("first")
    Securable.objects.bulk_create(
        Securable(
            id=first.pk + n,
            kind=Kind.TABLE,
            slot="tabular",
            name=f"t{n}",
            parent_id=world.ab.pk,
            lineage=f"{world.ab.lineage}/{first.pk + n}",
            owner_user=world.users["olga"],
            creator="olga",
        )
        for n in range(1, count)
    )


def test_what_takes_too_long_is_told_as_the_least(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blast_radius, "BUDGET", 3)
    given = {P.USE_CATALOG: Given(Effect.ALLOW)}
    file = Wanted(
        "acme", None, [WantedRole("r", "all", ["mia"], None, [WantedGrant("g", Kind.CATALOG, "lake", given)])]
    )
    planned = plan.plan(world.olga, "acme", file)
    assert planned.blast.is_cut and planned.summary == "more than could be counted in time"
    assert apply.apply_plan(world.olga, "acme", planned.token)


def test_what_is_denied_below_is_not_gained(world: World) -> None:
    world.give("mia", "use_catalog@lake", "use_schema@lake", "deny select_table@lake.A:B.t")
    roles.create_role(world.olga, "acme", "reader")
    roles.assign_roles(world.olga, "acme", "user", "mia", ["reader"])
    file = export(world.olga, "acme")
    reader = next(role for role in file.roles if role.name == "reader")
    reader.grants.append(WantedGrant("here", Kind.CATALOG, "lake", {P.SELECT_TABLE: Given(Effect.ALLOW)}))
    planned = plan.plan(world.olga, "acme", file)
    assert shown(planned.blast) == {
        (P.SELECT_TABLE, Kind.SCHEMA): ((1, 2, ["mia"]), (0, 0, [])),
        (P.SELECT_TABLE, Kind.CATALOG): ((1, 1, ["mia"]), (0, 0, [])),
    }


def test_what_a_deny_keeps_refused_is_named(world: World) -> None:
    """At or below what is granted, by the nearest DENY; owners are denied nothing, nor is who holds no such role."""
    (c, d), no_pii = (world.schema(name, world.a) for name in "CD"), "r1"
    for n in range(2):
        world.table(f"t{n}", c)
    own = world.table("own", d)
    assert world.give("mia", "deny select_table@lake.A:B.t", "deny use_schema@lake.A:C") == no_pii
    roles.assign_roles(world.olga, "acme", "user", "nils", [world.give("mia", "deny select_table@lake.A:D.own")])
    world.own("mia", own)
    people.add_user(world.olga, "acme", "sam")
    wish = [change("createRole", "r"), *(change("assign", "r", f"user {name}") for name in ("mia", "nils", "sam"))]
    reader = ("use_catalog@lake", "use_schema@lake.A", "select_table@lake.A")
    planned = plan.plan_changes(world.olga, "acme", [*wish, *(change("grant", "r", one) for one in reader)])
    assert [(one.full_name, one.role, one.privileges, one.names) for one in planned.blast.refused] == [
        ("lake.A:B.t", no_pii, (P.SELECT_TABLE,), ("mia",)),
        ("lake.A:C", no_pii, (P.SELECT_TABLE, P.USE_SCHEMA), ("mia",)),
        ("lake.A:D.own", "r2", (P.SELECT_TABLE,), ("nils",)),
    ]
    assert planned.blast.refused[1].says == "schema lake.A:C and everything below it: role r1 denies use_schema"
    assert planned.summary.endswith(
        "; refused still: select_table on table lake.A:B.t: role r1 denies select_table; "
        "select_table and use_schema on schema lake.A:C and everything below it: role r1 denies use_schema; "
        "select_table on table lake.A:D.own: role r2 denies select_table"
    )
    assert plan.read_blast(plan.BLAST.dump_python(planned.blast, mode="json")) == planned.blast
    assert apply.apply_plan(world.olga, "acme", planned.token)
    above = plan.plan_changes(world.olga, "acme", [change("grant", "r", "deny modify_table@lake")])
    assert above.blast.refused == []
    apply.apply_plan(world.olga, "acme", above.token)
    again = plan.plan_changes(world.olga, "acme", [change("grant", no_pii, "modify_table@lake.A:D")])
    assert [one.says for one in again.blast.refused] == [
        "schema lake.A:D and everything below it: role r denies modify_table on catalog lake"
    ]


def test_refusals_are_named_to_who_may_read_them(world: World) -> None:
    world.give("mia", "use_catalog@lake", "use_schema@lake", "deny select_table@lake.A:B.t")
    world.give("nils", "use_catalog@lake", "manage_grants@lake.A", "deny manage_grants@lake.A:B")
    wish = [change("grant", world.give("mia"), "select_table@lake.A")]
    told, kept = (plan.plan_changes(world.actor(name), "acme", wish).blast for name in ("olga", "nils"))
    assert (told.refused_total, kept.refused_total, kept.refused) == (1, 0, [])


def test_every_level_is_named_and_managing_is_told_in_words(world: World) -> None:
    wish = [change("grant", world.give("mia", "use_catalog@acme"), "manage_grants@acme")]
    assert plan.plan_changes(world.olga, "acme", wish).summary == (
        "1 user gains manage_grants on 2 schemas, 2 catalogs and 1 metalake, and can give all of this to others"
    )
