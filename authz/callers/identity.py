"""Authenticates the caller of a request: Basic with a verified password, a personal token, a token of an OAuth issuer,
`simple` on loopback, or a page's session; and selects their active roles.

Identity and policy epoch are read in one statement, so a changed password or a disabled account takes effect at once.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, TypedDict, Unpack

import orjson
from django.conf import settings
from django.db import connection
from django.db.models import FilteredRelation, Q
from django.utils import timezone

from authz import snapshot
from authz.actor import NOBODY, Actor, standing_in
from authz.callers import token_uses
from authz.callers.accounts import vouch_for
from authz.models import Group, Token, User
from authz.name_rules import check_user_name
from authz.passwords import verify
from metalake.errors import Forbidden, Invalid, Unauthenticated
from metalake.kinds import Slot
from metalake.models import Securable
from metalake.statements import fetch

ANONYMOUS = "anonymous"  # `simple` without a name, as from unconfigured Gravitino clients
TOKEN_PREFIX = "mlk_"  # noqa: S105 (scanners recognize a leaked token by it)


class Credential(NamedTuple):
    """An Authorization header: its scheme in lower case, and the text after it."""

    scheme: str
    text: str


class Bounds(TypedDict, total=False):
    """A token's limits: the only metalake that it is valid in, and the standing that its bearer acts with."""

    within_id: int | None
    standing: dict[str, Any] | None


class Form(NamedTuple):
    """The SQL that reads a caller with the policy epoch, alone or joined to another statement; one parameter, last.

    The columns begin with the epoch, its stamp, and the account's id and name.
    """

    columns: str
    tables: str
    condition: str

    @property
    def statement(self) -> str:
        return f"SELECT {self.columns} FROM {self.tables} WHERE {self.condition}"  # noqa: S608 (constants)


BY_TOKEN = Form(
    "e.value, e.stamp, u.id, u.username, u.is_active, k.expires_at, k.within_id, k.standing",
    "authz_token k JOIN authz_user u ON u.id = k.user_id JOIN authz_policyepoch e ON e.id = 1",
    "k.digest = %s AND k.revoked_at IS NULL",
)
EPOCH = Form("e.value, e.stamp", "authz_policyepoch e", "e.id = %s")
BY_NAME = Form(
    "e.value, e.stamp, u.id, u.username, u.is_active, u.password",
    "authz_user u JOIN authz_policyepoch e ON e.id = 1",
    "u.username = %s",
)

Way = Callable[[Credential], Actor | None]
"""Returns the actor of a credential; None if it does not handle its kind or is not configured."""


def authenticate(authorization: str | None, active_roles: str | None = None, metalake: str | None = None) -> Actor:
    """The actor of an Authorization header, narrowed to the roles in X-Gravitino-Active-Roles.

    `metalake` is the one in the path. Raises Unauthenticated, TooManyRequests after too many wrong passwords,
    ProviderUnavailable if an issuer's keys cannot be read, Invalid for a malformed role list, Forbidden for a role that
    the caller does not hold.
    """
    credential = credential_in(authorization)
    for way in WAYS:
        if actor := way(credential):
            return with_active_roles(actor, active_roles, metalake)
    raise Unauthenticated


def credential_in(authorization: str | None) -> Credential:
    scheme, _, text = (authorization or "").partition(" ")
    return Credential(scheme.lower(), text.strip())


def actor_of(user: User) -> Actor:
    """The actor of a signed-in user, with the current policy."""
    return actor_at(user.pk, user.username, snapshot.latest())


def issue_token(user: User, name: str, expires_at: datetime | None = None, **bounds: Unpack[Bounds]) -> str:
    """Create a personal token and return its secret; only the hash is stored."""
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    Token.objects.create(user_id=user.pk, name=name, digest=digest_of(secret), expires_at=expires_at, **bounds)
    return secret


def by_issuer(credential: Credential) -> Actor | None:
    """The actor and stored groups named by a token of a pinned OAuth issuer."""
    if credential.scheme != "bearer" or "oauth" not in settings.METALAKE_AUTHENTICATORS:
        return None
    if credential.text.startswith(TOKEN_PREFIX):
        return None
    from authz.callers import oauth  # loading cryptography takes a tenth of a second

    user, groups = oauth.read(credential.text)
    account = _account(user)
    actor = _actor_by(account, user)
    if account.guest_of is not None:
        vouch_for(actor.id)
    if actor.id == NOBODY or not groups:
        return actor
    return replace(
        actor, claimed=tuple(Group.objects.filter(name__in=groups).order_by("pk").values_list("pk", flat=True))
    )


def by_token(credential: Credential) -> Actor | None:
    """The owner of a personal token. Raises Unauthenticated."""
    if credential.scheme != "bearer" or "token" not in settings.METALAKE_AUTHENTICATORS:
        return None
    digest = digest_of(credential.text)
    rows = fetch(BY_TOKEN.statement, [digest])
    if not rows or not is_valid(*rows[0][4:6]):
        raise Unauthenticated("The token is unknown, revoked or expired.")
    token_uses.note(digest)
    epoch, stamp, user_id, name = rows[0][:4]
    return actor_at(user_id, name, snapshot.at(epoch, stamp), *rows[0][6:])


def is_valid(is_active: bool, expires_at: datetime | str | None) -> bool:
    """Whether a token is still valid, given its account's state and its own expiry."""
    return bool(is_active) and not _is_past(expires_at)


def _is_past(moment: datetime | str | None) -> bool:
    if moment is None:
        return False
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    if timezone.is_naive(moment):
        moment = moment.replace(tzinfo=timezone.get_default_timezone())
    return moment <= timezone.now()


def by_simple(credential: Credential) -> Actor | None:
    """The actor of the name in the header, without proof; needs no account, and none is created here."""
    if "simple" not in settings.METALAKE_AUTHENTICATORS:
        return None
    name = name_and_password(credential.text)[0] if credential.scheme == "basic" else ANONYMOUS
    actor = _actor_by(_account(name), name)
    if actor.id != NOBODY:
        return actor
    try:
        check_user_name(name)
    except Invalid as wrong:
        raise Unauthenticated(wrong.message) from None
    return replace(actor, believed=True, service_admin=name in settings.METALAKE_SERVICE_ADMINS)


def by_password(credential: Credential) -> Actor | None:
    """The actor of a user name and password. Raises Unauthenticated, TooManyRequests."""
    if credential.scheme != "basic" or "basic" not in settings.METALAKE_AUTHENTICATORS:
        return None
    name, password = name_and_password(credential.text)
    account = _account(name)
    verify(name, password, account.password if account.is_active else None)
    return actor_at(account.user_id, account.username or name, snapshot.at(account.epoch, account.stamp))


# In this order: a bearer token without our prefix is an issuer's, and `simple` accepts names without passwords.
WAYS: tuple[Way, ...] = (by_issuer, by_token, by_simple, by_password)


def _actor_by(account: _Account, name: str) -> Actor:
    if account.user_id is not None and not account.is_active:
        raise Unauthenticated(f"The account {name} is disabled.")
    return actor_at(account.user_id, account.username or name, snapshot.at(account.epoch, account.stamp))


def with_active_roles(actor: Actor, active_roles: str | None, metalake: str | None) -> Actor:
    """The actor narrowed to the metalake's roles named in the header X-Gravitino-Active-Roles.

    Raises Invalid for a malformed list, Forbidden for a role that the actor does not hold.
    """
    names = None if active_roles is None else _listed(active_roles)
    if names is None or metalake is None:
        return actor
    if not names:
        return replace(actor, active=())
    rows = _roles_called(names, metalake)
    if not rows or not actor.is_member(rows[0][0]):
        return actor  # do not reveal roles to a non-member
    roles = {name: role_id for _, role_id, name in rows}
    for name in names:
        if roles.get(name) not in actor.allowing_roles:  # a run's token may have fewer than its user
            raise Forbidden(f"{actor.name} does not hold the role {name:.64} in metalake {metalake}.", kind="role")
    return replace(actor, active=tuple(sorted(roles.values())))


def _listed(active_roles: str) -> list[str] | None:
    """The names in X-Gravitino-Active-Roles: an empty list for NONE, None for ALL or an empty header."""
    try:
        text = active_roles.encode("latin-1").decode().strip()  # WSGI decodes headers as latin-1
    except UnicodeError:
        raise Invalid("X-Gravitino-Active-Roles is not UTF-8.") from None
    if text in ("", "ALL"):
        return None
    if text == "NONE":
        return []
    names = [name.strip() for name in text.split(",")]
    if not all(names) or not text.isprintable() or {"ALL", "NONE"} & set(names):
        raise Invalid("X-Gravitino-Active-Roles is ALL, NONE, or names of roles divided by commas.")
    return names


def _roles_called(names: list[str], metalake: str) -> list[tuple]:
    """Rows of (metalake id, role id, role name); a single row with None for the role if none exists."""
    roles = FilteredRelation("children", condition=Q(children__slot=Slot.ROLE, children__name__in=names))
    rows = Securable.objects.annotate(asked=roles).filter(parent=None, slot=Slot.METALAKE, name=metalake)
    return list(rows.values_list("pk", "asked__pk", "asked__name"))


class _Account(NamedTuple):
    """An account, all None if there is none of that name, with the current policy epoch and its stamp."""

    user_id: int | None
    username: str | None
    password: str | None
    is_active: bool | None
    epoch: int
    stamp: str
    guest_of: int | None


def _account(name: str) -> _Account:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT u.id, u.username, u.password, u.is_active, e.value, e.stamp, u.guest_of FROM authz_policyepoch e "
            "LEFT JOIN authz_user u ON u.username = %s WHERE e.id = 1",
            [name],
        )
        return _Account(*cursor.fetchone())


def actor_at(
    user_id: int | None, name: str, policy: snapshot.Snapshot, within: int | None = None, standing: str | None = None
) -> Actor:
    """The actor of an account, or of a name without one, on this policy, within a token's bounds if given."""
    is_admin = user_id is not None and within is None and name in settings.METALAKE_SERVICE_ADMINS
    actor = Actor(user_id or NOBODY, name, policy, is_admin, within=within)
    return actor if standing is None else replace(actor, **standing_in(orjson.loads(standing)))


def name_and_password(credential: str) -> tuple[str, str]:
    """Decode a Basic credential. Raises Unauthenticated."""
    try:
        name, _, password = base64.b64decode(credential, validate=True).decode().partition(":")
    except ValueError:
        raise Unauthenticated("The Basic credential is not base64 of name:password.") from None
    if not name or "\x00" in name or "\x00" in password:
        raise Unauthenticated("The Basic credential names no user.")
    return name, password


def digest_of(secret: str) -> str:
    """The SHA-256 hex digest under which a token is stored."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
