"""Personal access tokens of the caller."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.db.models import Q, QuerySet
from django.utils import timezone

from authz.actor import Actor
from authz.callers import token_uses
from authz.callers.identity import digest_of, issue_token
from authz.callers.run_tokens import require_person
from authz.models import Token, User
from authz.name_rules import check_name
from authz.transactions import write
from metalake.errors import AlreadyExists, Forbidden, Invalid, NotFound
from metalake.events import record


class Issued(NamedTuple):
    """A new token; the secret is shown only once."""

    row: Token
    secret: str


def issue(actor: Actor, name: str, expires_at: datetime | None = None, user: str | None = None) -> Issued:
    """Issue a token for the caller, or for another user if an operator asks, who could set that user's password too.

    A token of that name is replaced for another user; for the caller it raises AlreadyExists.
    """
    require_person(actor, "makes no token")
    check_name(name, "token")
    if expires_at is not None and expires_at <= timezone.now():
        raise Invalid("A token's expiry lies ahead.", kind="token")

    def act(actor: Actor) -> Issued:
        holder = User.objects.select_for_update().filter(username=user or actor.name).first()
        if user not in (None, actor.name):
            _require_operator(actor)
            if holder is None:
                raise NotFound(f"There is no user {user}.", kind="user")
            _good_tokens(user).filter(name=name).update(revoked_at=timezone.now())
        if holder is None:
            raise Forbidden(f"{actor.name} has no account, so no token either.")
        good = _good_tokens(holder.username)
        if good.filter(name=name).exists():
            raise AlreadyExists(f"A token {name} already exists.", kind="token")
        secret = issue_token(holder, name, expires_at)
        row = good.get(name=name)
        record(row.event("token.issued", actor.name))
        return Issued(row, secret)

    return write(actor, act, holds=None, kind="token")


def _require_operator(actor: Actor) -> None:
    if not User.objects.filter(pk=actor.id, is_superuser=True, is_active=True).exists():
        raise Forbidden("Only operators issue tokens for others.")


def list_tokens(actor: Actor) -> QuerySet[Token]:
    """The caller's tokens that are neither revoked nor expired."""
    require_person(actor, "lists and ends no tokens")
    return _good_tokens(actor.name)


class Listed(NamedTuple):
    """A token, and when it was last used; None if that is not known."""

    row: Token
    last_use: datetime | None


def list_with_use(actor: Actor, most: int) -> list[Listed]:
    """The caller's first tokens with their last use, which is exact to ten minutes."""
    rows = list(list_tokens(actor)[:most])
    uses = token_uses.last_uses(row.digest for row in rows)
    return [Listed(row, uses.get(row.digest)) for row in rows]


def shown_before(actor: Actor, secret: str) -> Issued | None:
    """The caller's good token of this secret, which their page still shows."""
    row = list_tokens(actor).filter(digest=digest_of(secret)).first()
    return Issued(row, secret) if row else None


def _good_tokens(username: str | None) -> QuerySet[Token]:
    good = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
    return Token.objects.filter(good, user__username=username, revoked_at__isnull=True).order_by("name")


def revoke(actor: Actor, token_id: int) -> bool:
    """Revoke a token; False if the caller has no such token."""

    def act(actor: Actor) -> bool:
        row = list_tokens(actor).filter(pk=token_id).first()
        if row is None:
            return False
        Token.objects.filter(pk=row.pk).update(revoked_at=timezone.now())
        record(row.event("token.revoked", actor.name))
        return True

    return write(actor, act, holds=None, kind="token")
