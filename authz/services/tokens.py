"""Personal access tokens: each caller's own."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.db.models import Q, QuerySet
from django.utils import timezone

from authz.callers import issue_token
from authz.models import Token, User
from authz.policy import Actor
from authz.services.naming import check_name
from authz.writing import write
from metalake.errors import AlreadyExists, Forbidden, Invalid
from metalake.events import Event, record


class Issued(NamedTuple):
    """A new token; the secret is shown this once."""

    row: Token
    secret: str


def issue(actor: Actor, name: str, expires_at: datetime | None = None) -> Issued:
    """A token of the caller's. Raises AlreadyExists where one of that name is still good."""
    check_name(name, "token")
    if expires_at is not None and expires_at <= timezone.now():
        raise Invalid("A token's expiry lies ahead.", kind="token")

    def act(actor: Actor) -> Issued:
        user = User.objects.select_for_update().filter(username=actor.name).first()
        if user is None:
            raise Forbidden(f"{actor.name} has no account, so no token either.")
        if list_tokens(actor).filter(name=name).exists():
            raise AlreadyExists(f"A token {name} already exists.", kind="token")
        secret = issue_token(user, name, expires_at)
        row = list_tokens(actor).get(name=name)
        record(_event(actor, "token.issued", row))
        return Issued(row, secret)

    return write(actor, act, kind="token")


def list_tokens(actor: Actor) -> QuerySet[Token]:
    """The caller's that are still good."""
    good = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
    return Token.objects.filter(good, user__username=actor.name, revoked_at__isnull=True).order_by("name")


def revoke(actor: Actor, token_id: int) -> bool:
    """False where the caller has no such token."""

    def act(actor: Actor) -> bool:
        row = list_tokens(actor).filter(pk=token_id).first()
        if row is None:
            return False
        Token.objects.filter(pk=row.pk).update(revoked_at=timezone.now())
        record(_event(actor, "token.revoked", row))
        return True

    return write(actor, act, kind="token")


def _event(actor: Actor, name: str, row: Token) -> Event:
    return Event(name=name, actor=actor.name, kind="token", object_id=row.pk, full_name=row.name, metalake_id=None)
