"""The policy in memory: followed by differences, never mixed from two epochs, never left at one that was undone."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.db import transaction

from authz import snapshot
from authz.models import PolicyChange, PolicyEpoch
from authz.services import grants as granting
from authz.services import roles
from authz.snapshot import Snapshot
from metalake.kinds import Kind
from metalake.privileges import Privilege
from tests.authz.small_world import World

pytestmark = [pytest.mark.store, pytest.mark.django_db]


def empty(**tables: Any) -> Snapshot:
    nothing: dict[str, Any] = {"members": {}, "user_roles": {}, "user_groups": {}, "group_roles": {}, "grants": {}}
    return Snapshot(epoch=1, stamp="s", **(nothing | tables))


class Counting(dict):
    """A dict that counts how often it is copied."""

    copies = 0

    def __iter__(self) -> Any:
        return super().__iter__()

    def keys(self) -> Any:  # what a copy asks of a dict that iterates in its own way
        type(self).copies += 1
        return super().keys()


USE = [{"privilege": "use_catalog", "effect": "allow"}]


def test_a_table_is_copied_once_for_all_changes_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counting, "copies", 0)
    before = empty(grants=Counting({role: {1: 1} for role in range(100)}))
    after = before.after(2, "t", [snapshot.grants_change(role, 2, USE) for role in range(100)])
    assert after.grants[99] == {1: 1, 2: Privilege.USE_CATALOG.bit}
    assert before.grants[99] == {1: 1}
    assert Counting.copies == 1


def test_a_change_is_absolute() -> None:
    changes = [snapshot.grants_change(1, 2, USE), snapshot.role_gone(3), snapshot.member_change(1, 7, True)]
    once = empty(grants={3: {1: 1}}).after(2, "t", changes)
    assert once.after(3, "u", changes).grants == once.grants == {1: {2: Privilege.USE_CATALOG.bit}, 3: {}}
    assert once.is_member(7, 1)


def test_a_change_between_the_statements_of_a_load_is_not_mixed_in(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The users' roles are read before the change, the grants after it: nobody ever held both."""
    role = world.give("mia", "use_catalog@lake")
    mia, lake = world.users["mia"].pk, world.lake.pk
    grants = snapshot._grants

    def late(cursor: Any) -> Any:
        monkeypatch.setattr(snapshot, "_grants", grants)
        roles.unassign_roles(world.olga, "acme", "user", "mia", [role])
        granting.grant_privileges(world.olga, "acme", role, Kind.CATALOG, "lake", [("create_table", "allow")])
        return grants(cursor)

    snapshot.forget()
    monkeypatch.setattr(snapshot, "_grants", late)
    read = snapshot.load()
    held = read.mask(read.roles_of(mia), [lake], time.time())
    assert held in (0, Privilege.USE_CATALOG.bit)


def test_an_undone_change_is_not_remembered(world: World) -> None:
    before = world.mia
    with transaction.atomic():
        snapshot.publish([snapshot.grants_change(1, world.lake.pk, USE)])
        inside = snapshot.latest()
        assert inside.grants[1]
        transaction.set_rollback(True)
    after = snapshot.latest()
    assert (after.epoch, after.stamp) == (before.policy.epoch, before.policy.stamp)
    assert not after.grants.get(1)


def test_another_change_of_the_same_number_is_not_taken_for_it(world: World) -> None:
    snapshot.latest()
    with transaction.atomic():
        snapshot.publish([snapshot.member_change(1, 1, True)])
        undone = snapshot.latest()
        transaction.set_rollback(True)
    snapshot.publish([snapshot.member_change(world.acme.pk, world.users["mia"].pk, True)])
    now = snapshot.latest()
    assert (now.epoch, now.is_member(1, 1), undone.is_member(1, 1)) == (undone.epoch, False, True)


def test_what_was_not_kept_is_read_anew(world: World) -> None:
    world.give("mia", "use_catalog@lake")
    PolicyChange.objects.all().delete()
    assert snapshot.latest().epoch == PolicyEpoch.objects.get().value
    assert snapshot.latest().roles_of(world.users["mia"].pk)
