"""guardian's readers say what the evaluator says, its writers are the services'; docs/decisions/guardian.md."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import AnonymousUser, Permission
from django.contrib.auth.models import Group as RoleGroup
from django.db import transaction
from django.template import Context, Template
from django.utils import timezone
from guardian import shortcuts as typed
from guardian.core import ObjectPermissionChecker
from guardian.models import GroupObjectPermission, UserObjectPermission

from authz import operations, policy, snapshot
from authz.callers.identity import actor_of
from authz.guardian_adapter.writers import acting_as
from authz.models import AuditEntry, Fact, Grant, PolicyEpoch, Role, User
from authz.objects import by_ids
from authz.services import grants, people, roles
from catalogs.models import Table
from metalake.errors import Forbidden, Invalid, NotFound, Unsupported
from metalake.kinds import Kind
from metalake.models import Securable
from metalake.privileges import Privilege
from tests.architecture.rooms import ROOMS
from tests.authz import model
from tests.authz.small_world import World
from tests.authz.stored import Stored
from tests.authz.worlds import random_world
from tests.profiles import share

pytestmark = pytest.mark.django_db

shortcuts: Any = typed  # its types know neither querysets nor lists


def group_of(role: str) -> RoleGroup:
    return Role.objects.get(name=role).group


# What it reads


@pytest.mark.store
def test_an_inherited_allow_is_a_permission_and_a_denied_one_is_none(world: World) -> None:
    mia, t = world.users["mia"], world.t
    allows = world.give("mia", "select_table@lake", "modify_table@acme")
    bars = world.give("mia", "deny select_table@lake.A")
    assert shortcuts.get_perms(mia, t) == ["modify_table"]
    assert shortcuts.get_perms(mia, world.lake) == ["modify_table", "select_table"]
    assert shortcuts.get_perms(group_of(allows), t) == ["modify_table", "select_table"]
    assert shortcuts.get_perms(group_of(bars), world.a) == []  # the row itself, which is a DENY
    assert list(shortcuts.get_group_perms(mia, t)) == ["modify_table"] and not shortcuts.get_user_perms(mia, t)
    checker = ObjectPermissionChecker(mia)
    checker.prefetch_perms(Table.objects.all())
    assert checker.has_perm(perm="metalake.modify_table", obj=t) and not checker.has_perm("select_table", t)
    tag = Template('{% load guardian_tags %}{% get_obj_perms who for it as "held" %}{{ held|join:"," }}')
    assert tag.render(Context({"who": mia, "it": t})) == "modify_table"
    assert set(shortcuts.get_objects_for_user(mia, "metalake.select_table")) == set(
        Securable.objects.filter(pk__in=[world.lake.pk])
    )
    assert list(shortcuts.get_objects_for_user(mia, "modify_table", Table)) == [t]
    assert not shortcuts.get_objects_for_user(mia, ["select_table", "modify_table"], Table)
    assert list(shortcuts.get_objects_for_user(mia, ["select_table", "modify_table"], Table, any_perm=True)) == [t]
    assert not shortcuts.get_objects_for_group(group_of(bars), "metalake.select_table")
    assert list(shortcuts.get_objects_for_group(group_of(allows), "select_table", Table.objects.all())) == [t]
    assert list(shortcuts.get_users_with_perms(t)) == [mia]
    assert shortcuts.get_users_with_perms(t, attach_perms=True) == {mia: ["modify_table"]}
    assert not shortcuts.get_users_with_perms(t, only_with_perms_in=["select_table"])
    assert shortcuts.get_groups_with_perms(t, attach_perms=True) == {group_of(allows): ["modify_table", "select_table"]}
    assert {p.codename for p in shortcuts.get_perms_for_model(Table)} == {p.value for p in Privilege}


def test_every_part_of_guardian_has_the_same_readers() -> None:
    """Its admin is imported before we start, its mixins are not."""
    for part in (import_module(f"guardian.{name}") for name in ("admin", "mixins", "forms", "managers")):
        for name in ("get_objects_for_user", "get_users_with_perms", "get_groups_with_perms"):
            assert getattr(part, name, None) in (None, getattr(shortcuts, name))
    assert import_module("guardian.mixins").get_objects_for_user is shortcuts.get_objects_for_user


def test_a_permission_has_its_time(world: World) -> None:
    role = world.give("mia", "select_table@lake", "modify_table@lake")
    now = timezone.now()
    held = Grant.rows.filter(group=group_of(role))
    held.filter(permission__codename="select_table").update(starts_at=now + timedelta(hours=1))
    held.filter(permission__codename="modify_table").update(ends_at=now - timedelta(hours=1))
    snapshot.forget()
    assert shortcuts.get_perms(world.users["mia"], world.t) == [] == shortcuts.get_perms(group_of(role), world.lake)
    assert not shortcuts.get_objects_for_user(world.users["mia"], "metalake.modify_table")
    assert not shortcuts.get_groups_with_perms(world.lake)


def test_who_is_out_has_no_permission(world: World) -> None:
    mia, t = world.users["mia"], world.t
    world.give("mia", "select_table@lake", "deny modify_table@lake")
    people.remove_user(world.olga, "acme", "mia")  # the role is kept, for its DENY
    assert shortcuts.get_perms(mia, t) == [] and not shortcuts.get_objects_for_user(mia, "metalake.select_table")
    people.add_user(world.olga, "acme", "mia")
    assert mia.has_perm("metalake.select_table", t)
    User.objects.filter(pk=mia.pk).update(is_active=False)
    mia.refresh_from_db()
    assert shortcuts.get_perms(mia, t) == [] and not mia.has_perm("metalake.select_table", t)
    assert not shortcuts.get_users_with_perms(t)
    assert not shortcuts.get_objects_for_user(AnonymousUser(), "metalake.select_table")


def test_an_operator_has_the_permissions_of_their_roles_and_no_more(world: World) -> None:
    root = User.objects.create_superuser("root", "a long enough password")
    assert not root.has_perm("metalake.select_table", world.t) and shortcuts.get_perms(root, world.t) == []
    assert not async_to_sync(root.ahas_perm)("metalake.select_table", world.t)
    assert not root.has_perm("metalake.select_table") and not root.has_perm("authz.load_table", world.t)
    assert not shortcuts.get_objects_for_user(root, "metalake.select_table")
    assert root.get_all_permissions(world.t) == set()
    assert root.has_perm("metalake.operate") and root.has_perm("metalake.see_pages")
    clerk = User.objects.create_user("clerk", is_staff=True)
    assert clerk.has_perm("metalake.see_pages") and not clerk.has_perm("metalake.operate")
    assert not world.users["mia"].has_perm("metalake.see_pages")


def test_an_operation_is_asked_with_ownership_and_traversal(world: World) -> None:
    mia, olga = world.users["mia"], world.users["olga"]
    world.give("mia", "select_table@lake")
    for user in (mia, olga):
        for name, row in operations.OPERATIONS.items():
            for obj in (world.acme, world.lake, world.a, world.t):
                wanted = obj.kind in row.on and policy.permits(actor_of(user), row, by_ids([obj.pk])[obj.pk])
                assert user.has_perm(f"authz.{name}", obj) == wanted, (user, name, obj)
    assert olga.has_perm("authz.load", world.t) and not mia.has_perm("authz.load", world.t)
    assert mia.has_perm("metalake.select_table", world.t) and not olga.has_perm("metalake.select_table", world.t)
    assert not olga.has_perm("authz.nothing", world.t)


@pytest.mark.store
@pytest.mark.timeout(300)
def test_parity_with_the_evaluator() -> None:
    compare(share(500))


def compare(number: int) -> None:
    """Random worlds: a user and three objects of each, through every reader."""
    stored = Stored([random_world(seed, timed=False) for seed in range(number)])
    rng = random.Random(12)
    users = {user.pk: user for user in User.objects.all()}
    rows = {row.pk: row for row in Securable.objects.all()}
    answers: list[bool] = []
    for place, world in enumerate(stored.worlds):
        local = rng.choice(list(world.users))
        user, asked = users[stored.id(place, local)], model.Actor(world, local)
        objects = [obj for obj in world.objects if world.kind(obj) != "role"]
        for obj in rng.sample(objects, min(3, len(objects))):
            row, line = rows[stored.id(place, obj)], stored.line(place, obj)
            held = policy.rights_on(actor_of(user), line)
            wanted = {p.value for p in Privilege if held.holds(p)}
            top = world.lineage(obj)[-1]
            assert wanted == {p.value for p in Privilege if asked.is_member(top) and asked.holds(p.value, obj)}
            assert set(shortcuts.get_perms(user, row)) == wanted, (place, local, obj)
            answers += [bool(wanted)]
            one = rng.choice(list(Privilege)).value
            assert user.has_perm(f"metalake.{one}", row) == (one in wanted)
        _agree_on_lists(stored, place, user, asked, rng.choice(objects), rows)
    assert answers.count(True) > number // 2 < answers.count(False)


def _agree_on_lists(
    stored: Stored, place: int, user: User, asked: model.Actor, obj: int, rows: dict[int, Securable]
) -> None:
    """The lists of objects, users and roles, on every 25th world."""
    if place % 25:
        return
    world = stored.worlds[place]
    for name in ("select_table", "use_schema"):
        reached = {
            stored.id(place, o)
            for o in world.objects
            if world.kind(o) != "role" and asked.is_member(world.lineage(o)[-1]) and asked.holds(name, o)
        }
        listed = shortcuts.get_objects_for_user(user, f"metalake.{name}").exclude(kind="role")
        assert set(listed.values_list("pk", flat=True)) == reached
    top, row = world.lineage(obj)[-1], rows[stored.id(place, obj)]
    everybody = [model.Actor(world, id) for id in world.users]
    able = {a.user for a in everybody if a.is_member(top) and any(a.holds(p.value, obj) for p in Privilege)}
    found = shortcuts.get_users_with_perms(row).values_list("pk", flat=True)
    assert set(found) == {stored.id(place, id) for id in able}
    for group, names in shortcuts.get_groups_with_perms(row, attach_perms=True).items():
        assert names == shortcuts.get_perms(group, row)
        assert all(row in shortcuts.get_objects_for_group(group, f"metalake.{name}") for name in names[:2])


# What it writes


def written() -> tuple[Any, ...]:
    """All that a grant leaves behind."""
    epoch = PolicyEpoch.objects.values_list("value", "stamp").get()
    return epoch, AuditEntry.objects.count(), Fact.objects.count(), sorted(Grant.objects.values_list("pk", "effect"))


@pytest.mark.store
def test_a_named_actor_grants_and_takes_through_the_service(world: World) -> None:
    role = group_of(world.give("mia"))
    before = written()
    with acting_as(world.olga):
        row = shortcuts.assign_perm("select_table", role, world.t)
        shortcuts.assign_perm("metalake.modify_table", role, world.t)
    assert isinstance(row, Grant) and (row.grantor, row.effect) == ("olga", "allow")
    assert world.users["mia"].has_perm("metalake.select_table", world.t)
    assert [entry.actor for entry in world.events("privileges.granted")] == ["olga", "olga"]
    after = written()
    assert all(was != now for was, now in zip(before, after, strict=True))
    with acting_as(world.olga):
        assert shortcuts.assign_perm("select_table", role, world.t) == row
        assert shortcuts.remove_perm("select_table", role, world.t) == (1, {"authz.Grant": 1})
        assert shortcuts.remove_perm("select_table", role, world.t) == (0, {})
    assert shortcuts.get_perms(world.users["mia"], world.t) == ["modify_table"]
    assert len(world.events("privileges.revoked")) == 1


@pytest.mark.store
def test_many_at_once_are_one_change(world: World) -> None:
    one, other = group_of(world.give("mia")), group_of(world.give("nils"))
    second = world.table("u")
    many = Permission.objects.get(codename="select_table", content_type__model="securable")
    with acting_as(world.olga):
        assert len(shortcuts.assign_perm(many, one, Table.objects.all()) or []) == 2
        assert len(shortcuts.assign_perm("modify_table", [one, other], second) or []) == 2
        with pytest.raises(Invalid):  # there is none such on a table: nothing is given on the catalog either
            shortcuts.assign_perm("use_catalog", one, [world.lake, world.t])
        assert shortcuts.remove_perm("modify_table", RoleGroup.objects.all(), second) == (2, {"authz.Grant": 2})
        assert shortcuts.remove_perm("select_table", one, [world.t, second]) == (2, {"authz.Grant": 2})
    assert not Grant.objects.exists()


def test_whoever_may_not_grant_may_not_by_guardian(world: World) -> None:
    role = group_of(world.give("nils", "deny select_table@lake.A", "use_catalog@lake"))
    world.give("mia", "use_catalog@lake", "use_schema@lake")
    before = written()
    with acting_as(world.mia), pytest.raises(Forbidden):
        shortcuts.assign_perm("use_schema", role, world.a)
    with acting_as(world.mia), pytest.raises(NotFound):
        shortcuts.assign_perm("select_table", role, world.t)
    with acting_as(world.mia), pytest.raises(Forbidden):
        shortcuts.remove_perm("use_catalog", role, world.lake)
    with acting_as(world.olga), pytest.raises(Invalid):  # the opposite is revoked first
        shortcuts.assign_perm("select_table", role, world.a)
    with acting_as(world.olga):
        assert shortcuts.remove_perm("select_table", role, world.a) == (0, {})  # a DENY is no permission
        with pytest.raises(Invalid):
            shortcuts.assign_perm("fly", role, world.a)
    assert written() == before


def raw(world: World, role: RoleGroup) -> dict[str, Any]:
    permission = Permission.objects.get(codename="select_table", content_type__model="securable")
    return {"group": role, "permission": permission, "content_object": Securable.objects.get(pk=world.t.pk)}


def generic(world: World) -> dict[str, Any]:
    permission = Permission.objects.filter(content_type__model="user")[0]
    return {
        "permission": permission,
        "content_type": permission.content_type,
        "user": world.users["mia"],
        "object_pk": str(world.users["mia"].pk),
    }


WRITES: dict[str, Callable[[World, RoleGroup], Any]] = {
    "assign_perm by nobody": lambda w, r: shortcuts.assign_perm("select_table", r, w.t),
    "remove_perm by nobody": lambda w, r: shortcuts.remove_perm("use_catalog", r, w.lake),
    "in bulk by nobody": lambda w, r: shortcuts.assign_perm("select_table", r, Table.objects.all()),
    "to many by nobody": lambda w, r: shortcuts.assign_perm("select_table", [r], w.t),
    "from many by nobody": lambda w, r: shortcuts.remove_perm("use_catalog", [r], w.lake),
    "by the group": lambda w, r: r.add_obj_perm("select_table", w.t),  # type: ignore[attr-defined]
    "off the group": lambda w, r: r.del_obj_perm("use_catalog", w.lake),  # type: ignore[attr-defined]
    "to a user": lambda w, r: shortcuts.assign_perm("select_table", w.users["mia"], w.t),
    "to users": lambda w, r: shortcuts.assign_perm("select_table", User.objects.all(), w.t),
    "off a user": lambda w, r: shortcuts.remove_perm("select_table", w.users["mia"], w.t),
    "by the user": lambda w, r: w.users["mia"].add_obj_perm("select_table", w.t),  # type: ignore[attr-defined]
    "on everything, to a role": lambda w, r: shortcuts.assign_perm("metalake.select_table", r),
    "on everything, to a user": lambda w, r: shortcuts.assign_perm("metalake.select_table", w.users["mia"]),
    "on what is no securable": lambda w, r: shortcuts.assign_perm("change_user", r, w.users["mia"]),
    "create": lambda w, r: Grant.objects.create(**raw(w, r)),
    "get_or_create": lambda w, r: Grant.objects.get_or_create(**raw(w, r)),
    "update_or_create": lambda w, r: Grant.objects.update_or_create(**raw(w, r)),
    "bulk_create": lambda w, r: Grant.objects.bulk_create([Grant(**raw(w, r))]),
    "save": lambda w, r: Grant(**raw(w, r)).save(),
    "save again": lambda w, r: Grant.objects.get().save(),
    "update": lambda w, r: Grant.objects.update(effect="deny"),
    "delete": lambda w, r: Grant.objects.all().delete(),
    "delete one": lambda w, r: Grant.objects.get().delete(),
    "acreate": lambda w, r: async_to_sync(Grant.objects.all().acreate)(**raw(w, r)),
    "from the object": lambda w, r: Securable.objects.get(pk=w.lake.pk).grants.all().delete(),
    "a user's row": lambda w, r: UserObjectPermission.objects.create(**generic(w)),
    "a user's rows": lambda w, r: UserObjectPermission.objects.bulk_create([UserObjectPermission(**generic(w))]),
    "a user's row, saved": lambda w, r: UserObjectPermission(**generic(w)).save(),
    "a group's row": lambda w, r: GroupObjectPermission.objects.assign_perm("select_table", r, w.t),
    "a group's row, saved": lambda w, r: GroupObjectPermission(group=r).save(),
}


@pytest.mark.store
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_what_goes_past_the_services_is_refused_in_words(
    world: World, write: Callable[[World, RoleGroup], Any]
) -> None:
    role = group_of(world.give("mia", "use_catalog@lake"))
    before = written()
    with pytest.raises(Unsupported) as refused, transaction.atomic():
        write(world, role)
    assert "authz.services" in refused.value.message
    assert written() == before
    assert not UserObjectPermission.objects.exists() and not GroupObjectPermission.objects.exists()
    assert not role.permissions.exists() and not world.users["mia"].user_permissions.exists()


def test_acting_ends_with_its_block(world: World) -> None:
    role = group_of(world.give("mia"))
    with acting_as(world.olga), acting_as(world.mia), pytest.raises(NotFound):
        shortcuts.assign_perm("select_table", role, world.t)
    with pytest.raises(Unsupported):
        shortcuts.assign_perm("select_table", role, world.t)


def test_only_the_services_of_grants_write_rows() -> None:
    root = Path(__file__).parents[3]
    sources = [path for room in ROOMS for path in (root / room).rglob("*.py")]
    writers = {path.relative_to(root).as_posix() for path in sources if "Grant.rows" in path.read_text()}
    assert writers == {"authz/managers.py", "authz/services/grant_entries.py", "authz/services/grants.py"}


def test_dropping_takes_the_grants_with_it(world: World) -> None:
    """Rows that hang on an object or a role go with it, past no manager."""
    role = world.give("mia", "use_schema@lake.A")
    roles.drop_role(world.olga, "acme", role)
    assert not Grant.objects.exists()
    world.give("mia", "use_catalog@lake")
    grants.revoke_privileges(world.olga, "acme", "r2", Kind.CATALOG, "lake", [("use_catalog", "allow")])
    assert not Grant.objects.exists()
