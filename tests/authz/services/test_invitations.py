"""Invitations: a link sets the first password of an account that was made for it, once, and takes over no other."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from typing import Any
from unittest.mock import patch

import pytest
from django.apps import apps
from django.utils import timezone

from authz import models, passwords
from authz.callers.identity import actor_of, issue_token
from authz.models import AuditEntry, Member, Use, UseCaller, User
from authz.name_rules import JOBS_PRINCIPAL
from authz.services import invitations, owners, people
from authz.services.invitations import accept, add_person, invite, invited
from catalogs.services import metalakes
from metalake.errors import AlreadyExists, Forbidden, Invalid, NotFound, TooManyRequests, Unsupported
from metalake.kinds import Kind
from metalake.request_context import address
from tests.authz.small_world import Wire, World

pytestmark = [pytest.mark.store, pytest.mark.django_db]

PASSWORD = "a first password of hers"


def secret_of(world: World, name: str = "nora") -> str:
    made = add_person(world.olga, "acme", name).invitation
    assert made is not None
    return made.secret


def is_dead(secret: str) -> bool:
    with pytest.raises(NotFound):
        accept(secret, PASSWORD)
    return True


def test_a_link_sets_a_password_once(world: World) -> None:
    secret = secret_of(world)
    assert invited(secret).username == "nora"
    assert invitations.is_waiting(world.acme.id, "nora")
    account = accept(secret, PASSWORD)
    assert User.objects.get(pk=account.pk).check_password(PASSWORD)
    assert is_dead(secret) and not invitations.is_waiting(world.acme.id, "nora")
    with pytest.raises(AlreadyExists):
        invite(world.olga, "acme", "nora")
    assert [(entry.actor, entry.full_name) for entry in world.events("account.password_set")] == [("nora", "nora")]


def test_neither_the_store_nor_the_audit_has_the_secret(world: World) -> None:
    secret = secret_of(world)
    row = models.Invitation.objects.get()
    assert secret not in str(vars(row)) and 6 <= (row.expires_at - timezone.now()).days <= 7
    (entry,) = world.events("user.invited")
    assert secret not in str(list(AuditEntry.objects.values()))
    assert (entry.actor, entry.full_name) == ("olga", "nora")


def test_an_account_that_exists_gets_no_link(world: World) -> None:
    added = add_person(world.olga, "acme", "sam")
    assert added.invitation is None and added.person.name == "sam"
    for name in ("sam", "mia"):
        with pytest.raises(AlreadyExists):
            invite(world.olga, "acme", name)
    people.add_user(world.olga, "acme", JOBS_PRINCIPAL)
    with pytest.raises(Unsupported):
        invite(world.olga, "acme", JOBS_PRINCIPAL)
    assert not models.Invitation.objects.exists()


def test_a_member_without_a_password_gets_a_link_later(world: World) -> None:
    people.add_user(world.olga, "acme", "nora")
    assert invitations.is_waiting(world.acme.id, "nora")
    world.give("mia", "manage_users@acme", "manage_grants@acme")
    account = accept(invite(world.mia, "acme", "nora").secret, PASSWORD)
    assert (account.username, account.guest_of) == ("nora", world.acme.id)


def _asked(world: World) -> None:
    UseCaller.objects.create(user_id=User.objects.get(username="nora").pk, claimed=[], digest="d")


def _free(world: World) -> None:
    people.remove_user(world.olga, "acme", "nora")
    world.metalake("other", "sam")


@pytest.mark.parametrize(
    "more", ["a password", "in another metalake", "signed in", "a token", "acted", "asked", "no member"]
)
def test_an_account_that_is_more_gets_no_link(world: World, more: str) -> None:
    people.add_user(world.olga, "acme", "nora")
    {**DEATHS, "asked": _asked, "no member": _free}[more](world)
    world.give("mia", "manage_users@acme", "manage_grants@acme")
    was_only_used = more in USED
    for actor, metalake in (
        *([] if was_only_used else [(world.olga, "acme")]),
        (world.actor("mia"), "acme"),
        *([(world.actor("sam"), "other")] if more == "no member" else []),
    ):
        with pytest.raises(AlreadyExists):
            invite(actor, metalake, "nora")
    assert not models.Invitation.objects.exists()


USED = ("a token", "acted", "asked")


@pytest.mark.parametrize("use", USED)
def test_the_metalake_s_owner_invites_who_was_made_and_used_without_a_password(world: World, use: str) -> None:
    people.add_user(world.olga, "acme", "nora")
    {**DEATHS, "asked": _asked}[use](world)
    account = accept(invite(world.olga, "acme", "nora").secret, PASSWORD)
    assert account.guest_of == world.acme.id
    assert not models.Token.objects.filter(user=account, revoked_at=None).exists()


def test_who_was_used_in_another_metalake_gets_no_link_in_this_one(world: World) -> None:
    people.add_user(world.olga, "acme", "nora")
    issue_token(User.objects.get(username="nora"), "engine")
    people.remove_user(world.olga, "acme", "nora")
    world.metalake("other", "sam")
    people.add_user(world.actor("sam"), "other", "nora")
    with pytest.raises(AlreadyExists):
        invite(world.actor("sam"), "other", "nora")


def test_a_link_for_who_was_used_is_dead_once_they_were_elsewhere(world: World) -> None:
    people.add_user(world.olga, "acme", "nora")
    issue_token(User.objects.get(username="nora"), "engine")
    secret = invite(world.olga, "acme", "nora").secret
    world.metalake("other", "sam")
    people.add_user(world.actor("sam"), "other", "nora")
    people.remove_user(world.actor("sam"), "other", "nora")
    assert is_dead(secret)


def test_a_link_for_who_was_used_is_dead_once_they_have_another_token(world: World) -> None:
    people.add_user(world.olga, "acme", "nora")
    _asked(world)
    issue_token(User.objects.get(username="nora"), "engine")
    secret = invite(world.olga, "acme", "nora").secret
    assert invited(secret).username == "nora"
    issue_token(User.objects.get(username="nora"), "another")
    assert is_dead(secret)


def test_a_link_is_dead_once_the_account_asked_for_something(world: World) -> None:
    secret = secret_of(world)
    _asked(world)
    assert invited(secret).username == "nora"
    caller, later = UseCaller.objects.get(), timezone.now() + timedelta(seconds=2)
    hour, second = divmod(int(later.timestamp()), 3600)
    Use.objects.create(hour=hour, about=1, caller=caller.pk, question=1, times=1, first=second, last=second)
    assert is_dead(secret)


def test_a_link_to_who_owns_something_is_the_metalake_owner_s_to_make(world: World) -> None:
    people.add_user(world.olga, "acme", "nora")
    owners.set_owner(world.olga, "acme", Kind.CATALOG, "lake", "nora", "user")
    world.give("mia", "manage_users@acme", "manage_grants@acme")
    with pytest.raises(Forbidden):
        invite(world.mia, "acme", "nora")
    assert invite(world.olga, "acme", "nora")


def test_a_new_link_ends_the_old_one(world: World) -> None:
    old = secret_of(world)
    new = invite(world.olga, "acme", "nora").secret
    assert is_dead(old)
    assert accept(new, PASSWORD).username == "nora"


def test_an_invitation_makes_the_account_too(world: World) -> None:
    assert accept(invite(world.olga, "acme", "nora").secret, PASSWORD).username == "nora"
    assert Member.objects.filter(metalake=world.acme, user__username="nora").exists()


def _password(world: World) -> None:
    user = User.objects.get(username="nora")
    user.set_password("set by an operator!")
    user.save()


def _removed(world: World) -> None:
    people.remove_user(world.olga, "acme", "nora")
    people.add_user(world.olga, "acme", "nora")


def _elsewhere(world: World) -> None:
    world.metalake("other", "sam")
    people.add_user(world.actor("sam"), "other", "nora")


DEATHS: dict[str, Any] = {
    "a password": _password,
    "removed and added again": _removed,
    "in another metalake": _elsewhere,
    "signed in": lambda world: User.objects.filter(username="nora").update(last_login=timezone.now()),
    "a token": lambda world: issue_token(User.objects.get(username="nora"), "engine"),
    "acted": lambda world: AuditEntry.objects.create(at=timezone.now(), actor="nora", event="x", kind="x", object_id=1),
    "an operator": lambda world: User.objects.filter(username="nora").update(is_superuser=True),
    "disabled": lambda world: User.objects.filter(username="nora").update(is_active=False),
    "too old": lambda world: models.Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1)),
}


@pytest.mark.parametrize("death", DEATHS.values(), ids=list(DEATHS))
def test_a_link_is_dead_once_the_account_is_more_than_invited(world: World, death: Any) -> None:
    secret = secret_of(world)
    death(world)
    before = User.objects.get(username="nora").password
    assert is_dead(secret)
    assert User.objects.get(username="nora").password == before


def test_names_that_others_vouch_for_get_no_link(world: World, settings: Any) -> None:
    settings.METALAKE_SERVICE_ADMINS = frozenset({"root"})
    assert add_person(world.olga, "acme", "root").invitation is None
    with pytest.raises(Unsupported):
        invite(world.olga, "acme", "root")
    secret = secret_of(world)
    settings.METALAKE_AUTHENTICATORS = ("oauth",)
    assert is_dead(secret)
    assert add_person(world.olga, "acme", "nils2").invitation is None
    with pytest.raises(Unsupported):
        invite(world.olga, "acme", "tom")
    assert not User.objects.filter(username="tom").exists()


def test_only_who_manages_users_invites(world: World) -> None:
    for act in (add_person, invite):
        with pytest.raises(Forbidden):
            act(world.mia, "acme", "nora")
        with pytest.raises(NotFound):
            act(world.actor("sam"), "acme", "nora")
        with pytest.raises(Invalid):
            act(world.olga, "acme", "a\x00b")
    assert not User.objects.filter(username="nora").exists()
    world.give("mia", "manage_users@acme", "manage_grants@acme")
    assert add_person(world.mia, "acme", "nora").invitation


# Who has a link can sign in as the person, with all that these are given later


def test_who_only_manages_users_holds_nobody_s_link(world: World) -> None:
    world.give("mia", "manage_users@acme")
    added = add_person(world.mia, "acme", "cfo")
    assert (added.invitation, added.is_waiting) == (None, True)
    for name in ("cfo", "other"):
        with pytest.raises(Forbidden, match="it takes manage_grants on metalake acme"):
            invite(world.mia, "acme", name)
    assert world.events("user.invited") == [] and not User.objects.filter(username="other").exists()
    assert accept(invite(world.olga, "acme", "cfo").secret, PASSWORD).username == "cfo"


def guest(world: World) -> User:
    """nora set her password by a link of acme, and made a token."""
    account = accept(secret_of(world), PASSWORD)
    issue_token(account, "kept")
    world.metalake("other", "sam")
    return User.objects.get(pk=account.pk)


def joins(world: World) -> None:
    with pytest.raises(Invalid, match="another metalake, so that nobody has vouched") as refused:
        people.add_user(world.actor("sam"), "other", "nora")
    assert "acme" not in refused.value.message


def test_another_metalake_takes_in_no_guest(world: World) -> None:
    account = guest(world)
    joins(world)
    with pytest.raises(Invalid):
        add_person(world.actor("sam"), "other", "nora")
    account.set_password("another one of hers")
    account.changed_by = "nora"
    account.save()
    joins(world)
    people.remove_user(world.olga, "acme", "nora")
    joins(world)
    people.add_user(world.olga, "acme", "nora")


def test_an_operator_s_password_vouches_and_ends_what_the_guest_had(world: World) -> None:
    account = guest(world)
    account.set_password("set by an operator!")
    account.keeps_tokens = True
    account.save()
    assert not models.Token.objects.filter(user=account, revoked_at=None).exists()
    assert people.add_user(world.actor("sam"), "other", "nora").name == "nora"


def test_a_guest_creates_no_metalake_by_a_name_that_is_an_administrator_s_later(world: World, settings: Any) -> None:
    settings.METALAKE_SERVICE_ADMINS = frozenset({"sam"})
    account = guest(world)
    settings.METALAKE_SERVICE_ADMINS = frozenset({"nora"})
    with pytest.raises(Forbidden, match="was set by an invitation"):
        metalakes.create_metalake(actor_of(account), "hers", None, {})


def test_who_set_a_password_by_a_link_of_before_is_a_guest(world: World) -> None:
    account = guest(world)
    add_person(world.olga, "acme", "tom")
    User.objects.update(guest_of=None)
    import_module("authz.migrations.0016_guests").mark_guests(apps, None)
    assert dict(User.objects.exclude(guest_of=None).values_list("username", "guest_of")) == {"nora": world.acme.id}
    assert models.Invitation.objects.get().expires_at <= timezone.now()
    account.refresh_from_db()
    for by in ("metalake", "nora"):
        account.set_password("set by an operator!")
        account.changed_by = by
        account.save()
        import_module("authz.migrations.0016_guests").mark_guests(apps, None)
    assert not User.objects.exclude(guest_of=None).exists()


@pytest.mark.parametrize("weak", ["short", "passwordpassword1"[:8], ""])
def test_a_weak_password_leaves_the_link_as_it_is(world: World, weak: str) -> None:
    secret = secret_of(world)
    with pytest.raises(Invalid):
        accept(secret, weak)
    assert accept(secret, PASSWORD)


def test_guessing_links_is_counted_as_failed_sign_ins(world: World) -> None:
    secret = secret_of(world)
    token = address.set("192.0.2.1")
    try:
        with patch.object(passwords, "PER_ADDRESS", 3):
            for _ in range(3):
                with pytest.raises(NotFound):
                    invited("guess")
            with pytest.raises(TooManyRequests):
                invited(secret)
    finally:
        address.reset(token)
    assert invited(secret), "from another address"


def test_the_wire_answers_a_link(world: World, wire: Wire) -> None:
    status, body = wire("POST", "metalakes/acme/users/nora/invitation")
    assert status == 200
    assert accept(body["invitation"]["path"].removeprefix("/invitations/"), PASSWORD).username == "nora"
    assert wire("POST", "metalakes/acme/users/nora/invitation")[0] == 409
    assert wire("POST", "metalakes/acme/users/tom/invitation", user="mia")[0] == 403
    assert wire("POST", "metalakes/acme/users/a:b/invitation")[0] == 400
