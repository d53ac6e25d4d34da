"""Invitations: a link by which a person whose account was just made sets its first password, once.

A link is given for an account that the same act makes, or that is no more than if it did: for any other one it would be
a way to take it over. Only the metalake's owner makes one for an account that was used already, by a token say, and
only if it has no password and never was anywhere else; its tokens end with the new password. A link is dead once the
account is more than it was (`_live`). Where an issuer names people there are none: a name that the issuer will vouch
for must not be somebody else's first.

Whoever has a link can sign in as the person, with all the rights that these are given later. So it is made by those who
assign roles, and the account is its metalake's guest (`User.guest_of`): no other takes it in before somebody vouches.
"""

from __future__ import annotations

import hashlib
import secrets
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.utils import timezone

from authz import models, operations, policy
from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.callers.run_tokens import require_person
from authz.models import AuditEntry, Member, Token, Use, UseCaller, User
from authz.name_rules import JOBS_PRINCIPAL, check_user_name
from authz.passwords import count_failure, require_few_failures
from authz.services import people
from authz.services.change import change, event, publish_events
from authz.services.people import Person
from authz.transactions import write
from authz.usage_counter import HOUR
from metalake.errors import AlreadyExists, Forbidden, Invalid, NotFound, Unsupported
from metalake.lineage import Located
from metalake.models import Securable

GOOD_FOR = timedelta(days=7)
GONE = "This link is good no more: it was used, replaced or withdrawn, or is too old. Ask its sender for a new one."


@dataclass(frozen=True)
class Invitation:
    """A link's secret, which is shown this once, and until when it is good."""

    secret: str
    expires_at: datetime


@dataclass(frozen=True)
class Added:
    """A new member; `invitation` is None for an account that existed already.

    It is None too where the account waits for a link (`is_waiting`) that the actor may not make.
    """

    person: Person
    user_id: int
    invitation: Invitation | None
    is_waiting: bool


def add_person(actor: Actor, metalake: str, name: str) -> Added:
    """Add a member; a new account waits for a link, which is made at once if the actor may. Raises as add_user does."""
    require_person(actor, "invites nobody")
    check_user_name(name)
    return change(actor, metalake, _add_person, name, kind="user")


def _add_person(actor: Actor, top: Located, name: str) -> Added:
    is_new = not User.objects.filter(username=name).exists()
    person = people.add_member(actor, top, name)
    user = User.objects.get(username=name)
    waits = is_waiting(top.id, name)
    made = _keep(top, user) if is_new and waits else None
    if made and not policy.uses(actor, operations.ASSIGN_ROLES, top):
        made = None  # nobody has its secret; who may make a link replaces it
    return Added(person, user.pk, made and _announce(actor, top, user, made), waits)


def invite(actor: Actor, metalake: str, name: str) -> Invitation:
    """A link for a person: the account is made and added if there is none; an unused link is replaced.

    Takes the rights to manage users and to assign roles, and for who owns something or used the account already the
    metalake's owner. Raises AlreadyExists for an account with a password, or that is or was in another metalake,
    Unsupported where there are no links.
    """
    require_person(actor, "invites nobody")
    check_user_name(name)
    if not may_be_invited(name):
        raise Unsupported(_reason(name), kind="user")
    return change(actor, metalake, _invite, name, kind="user")


def _invite(actor: Actor, top: Located, name: str) -> Invitation:
    policy.require(actor, operations.MANAGE_USERS, top)
    if not policy.uses(actor, operations.ASSIGN_ROLES, top):
        raise Forbidden(
            "Whoever has a link can sign in as the person, so it is made by who may assign roles: it takes "
            f"manage_grants on metalake {top.name}.",
            kind="user",
        )
    if not User.objects.filter(username=name).exists():
        people.add_member(actor, top, name)
    elif not may_have_link(actor, top, name):
        raise AlreadyExists(
            f"{name} has an account already and signs in as before, so there is no link; add them as a user.",
            kind="user",
        )
    user = User.objects.get(username=name)
    if Securable.objects.filter(Q(owner_user=user) | Q(owner_group__users=user)).exists():
        policy.require(actor, operations.OWN_METALAKE, top)  # a link would be a way to ownership
    return _announce(actor, top, user, _keep(top, user))


def may_be_invited(name: str) -> bool:
    """Whether a new account of this name may have a link; some names are the operators' or the server's own."""
    reserved = {*settings.METALAKE_SERVICE_ADMINS, JOBS_PRINCIPAL}
    return "oauth" not in settings.METALAKE_AUTHENTICATORS and name not in reserved


def is_waiting(metalake_id: int, name: str) -> bool:
    """Whether the account may be invited: it is this metalake's alone, has no password, and was never used."""
    user = User.objects.filter(username=name).first()
    return user is not None and _is_untouched(user, metalake_id)


def may_have_link(actor: Actor, top: Located, name: str) -> bool:
    """Whether the account is one that this manager of its metalake's users may make a link for."""
    user = User.objects.filter(username=name).first()
    if user is None or not _is_ours_alone(user, top.id):
        return False
    return not _was_used(user) or (
        policy.uses(actor, operations.OWN_METALAKE, top) and not _was_elsewhere(user, top.id)
    )


def invited(secret: str) -> User:
    """The account that a link is for. Raises NotFound if it is good no more, TooManyRequests after many of these."""
    require_few_failures()
    row = _live(secret)
    if row is None:
        count_failure()
        raise NotFound(GONE, kind="invitation")
    return row.user


def accept(secret: str, password: str) -> User:
    """Set the account's first password, which ends the link, and return the account.

    Raises NotFound and TooManyRequests as `invited`, and Invalid for a password that breaks the rules.
    """
    user = invited(secret)
    try:
        validate_password(password, user)
    except ValidationError as weak:
        raise Invalid(" ".join(weak.messages), kind="password") from None
    user.set_password(password)  # hashed before the transaction, which others wait for
    user.changed_by = user.username

    def act(actor: Actor) -> User:
        User.objects.select_for_update().get(pk=user.pk)
        row = _live(secret)
        if row is None:
            raise NotFound(GONE, kind="invitation")
        account = copy(user)  # saving forgets that the password is new, and a transaction may run again
        account.guest_of = row.metalake_id
        account.save(update_fields=["password", "guest_of"])
        models.Invitation.objects.filter(user=account).delete()
        return account

    return write(actor_of(user), act, holds=None, kind="user")


def _keep(top: Located, user: User) -> Invitation:
    secret, expires_at = secrets.token_urlsafe(32), timezone.now() + GOOD_FOR
    values = {"metalake_id": top.id, "digest": _digest(secret), "expires_at": expires_at}
    models.Invitation.objects.update_or_create(user=user, defaults=values)
    return Invitation(secret, expires_at)


def _announce(actor: Actor, top: Located, user: User, made: Invitation) -> Invitation:
    until = made.expires_at.isoformat()
    publish_events(event(actor, top, "user.invited", "user", user.pk, [user.username], expiresAt=until))
    return made


def _live(secret: str) -> models.Invitation | None:
    row = models.Invitation.objects.filter(digest=_digest(secret)).select_related("user").first()
    if row is None or row.expires_at <= timezone.now() or not _is_ours_alone(row.user, row.metalake_id):
        return None
    if _was_used(row.user) and _was_elsewhere(row.user, row.metalake_id):
        return None
    return None if _became_more(row.user, since=row.expires_at - GOOD_FOR) else row


def _is_untouched(user: User, metalake_id: int) -> bool:
    """Whether the account is only what an invitation makes."""
    return _is_ours_alone(user, metalake_id) and not _was_used(user)


def _is_ours_alone(user: User, metalake_id: int) -> bool:
    """Whether the account has no password, is no operator's, and is in this metalake alone."""
    if user.has_usable_password() or user.last_login or user.is_staff or user.is_superuser or not user.is_active:
        return False
    if not may_be_invited(user.username):
        return False
    return set(Member.objects.filter(user=user).values_list("metalake_id", flat=True)) == {metalake_id}


def _was_elsewhere(user: User, metalake_id: int) -> bool:
    """Whether the account ever was in another metalake, or did something there."""
    joined = Q(object_id=user.pk, kind="user", event="user.added")
    there = AuditEntry.objects.filter(joined | Q(actor=user.username), metalake_id__isnull=False)
    return there.exclude(metalake_id=metalake_id).exists()


def _was_used(user: User) -> bool:
    """Whether somebody acted as the account, or could have: by a token, or named by an issuer when there was one."""
    return (
        Token.objects.filter(user=user).exists()
        or UseCaller.objects.filter(user_id=user.pk).exists()
        or AuditEntry.objects.filter(actor=user.username).exists()
    )


def _became_more(user: User, since: datetime) -> bool:
    """Whether the account was used for the first time since then, or got a token."""
    if Token.objects.filter(user=user, created_at__gt=since).exists():
        return True
    first = AuditEntry.objects.filter(actor=user.username).order_by("pk").first()
    if first is not None and first.at > since:
        return True
    callers = UseCaller.objects.filter(user_id=user.pk).values_list("pk", flat=True)
    use = Use.objects.filter(caller__in=list(callers)).order_by("hour", "first").first()
    return use is not None and use.hour * HOUR + use.first > since.timestamp()


def _reason(name: str) -> str:
    if "oauth" not in settings.METALAKE_AUTHENTICATORS:
        return f"{name} is a service administrator's or the server's own, whose account an operator makes."
    return "People are named by an issuer here and sign in with its tokens, so there are no links: add them as users."


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
