"""Invitations: a link by which a person whose account was just made sets its first password, once.

A link is given for an account that the same act makes, or that is no more than if it did: for any other one it would be
a way to take it over. It is dead once the account is more than that (`_is_untouched`). Where an issuer names people
there are none: a name that the issuer will vouch for must not be somebody else's first.

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
from authz.models import AuditEntry, Member, Token, UseCaller, User
from authz.name_rules import JOBS_PRINCIPAL, check_user_name
from authz.passwords import count_failure, require_few_failures
from authz.services import people
from authz.services.change import change, event, publish_events
from authz.services.people import Person
from authz.transactions import write
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

    Takes the rights to manage users and to assign roles, and for who owns something the metalake's owner. Raises
    AlreadyExists for an account that was used, is in another metalake or in none, Unsupported where there are no links.
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
    elif not is_waiting(top.id, name):
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
    return row if row and row.expires_at > timezone.now() and _is_untouched(row.user, row.metalake_id) else None


def _is_untouched(user: User, metalake_id: int) -> bool:
    """Whether the account is only what an invitation makes: in that metalake alone, never used, and no operator's."""
    if user.has_usable_password() or user.last_login or user.is_staff or user.is_superuser or not user.is_active:
        return False
    if not may_be_invited(user.username) or Token.objects.filter(user=user).exists():
        return False
    if UseCaller.objects.filter(user_id=user.pk).exists():  # an issuer named them, when there was one
        return False
    metalakes = set(Member.objects.filter(user=user).values_list("metalake_id", flat=True))
    return metalakes == {metalake_id} and not AuditEntry.objects.filter(actor=user.username).exists()


def _reason(name: str) -> str:
    if "oauth" not in settings.METALAKE_AUTHENTICATORS:
        return f"{name} is a service administrator's or the server's own, whose account an operator makes."
    return "People are named by an issuer here and sign in with its tokens, so there are no links: add them as users."


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
