"""Who calls: Basic with a verified password, personal tokens, `simple` on loopback, or a page's session.

Identity and policy epoch are read in one statement. The slow password hash is paid once per process and credential;
what is remembered is bound to the stored hash, so a changed password or a disabled account is out at once.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import threading
from collections import OrderedDict
from datetime import datetime

from django.conf import settings
from django.contrib.auth.hashers import check_password, make_password
from django.db import connection
from django.utils import timezone

from authz import snapshot
from authz.models import Token, User
from authz.policy import NOBODY, Actor
from metalake.errors import Unauthenticated

TOKEN_PREFIX = "mlk_"  # noqa: S105 (by which scanners find a leaked one)

_process_key = secrets.token_bytes(32)
_verified: OrderedDict[bytes, str] = OrderedDict()
_verified_lock = threading.Lock()
_VERIFIED_MAX = 10_000
_unknown_hash: list[str] = []


def authenticate(authorization: str | None) -> Actor:
    """The actor named by an Authorization header. Raises Unauthenticated."""
    scheme, _, credential = (authorization or "").partition(" ")
    accepted = settings.METALAKE_AUTHENTICATORS
    if scheme.lower() == "bearer" and "token" in accepted:
        return _by_token(credential.strip())
    if "simple" in accepted:
        return _by_name(_basic(credential)[0] if scheme.lower() == "basic" else "anonymous")
    if scheme.lower() == "basic" and "basic" in accepted:
        return _by_password(*_basic(credential))
    raise Unauthenticated("Send an Authorization header: Basic with a user name and password, or Bearer with a token.")


def actor_of(user: User) -> Actor:
    """The actor of a signed-in user, on the policy as of now."""
    return _actor(user.pk, user.username, snapshot.latest())


def issue_token(user: User, name: str, expires_at: datetime | None = None) -> str:
    """A new personal token, shown this once; only its hash is kept."""
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    Token.objects.create(user=user, name=name, digest=_digest(secret), expires_at=expires_at)
    return secret


def _by_token(secret: str) -> Actor:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT u.id, u.username, u.is_active, t.expires_at, e.value, e.stamp FROM authz_token t "
            "JOIN authz_user u ON u.id = t.user_id JOIN authz_policyepoch e ON e.id = 1 "
            "WHERE t.digest = %s AND t.revoked_at IS NULL",
            [_digest(secret)],
        )
        row = cursor.fetchone()
    if row is None or not row[2] or _is_past(row[3]):
        raise Unauthenticated("The token is unknown, revoked or expired.")
    return _actor(row[0], row[1], snapshot.at(row[4], row[5]))


def _is_past(moment: datetime | str | None) -> bool:
    if moment is None:
        return False
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    if timezone.is_naive(moment):
        moment = moment.replace(tzinfo=timezone.get_default_timezone())
    return moment <= timezone.now()


def _by_password(name: str, password: str) -> Actor:
    user_id, username, stored, is_active, epoch, stamp = _account(name)
    if not _password_is_right(username or name, password, stored) or not is_active:
        raise Unauthenticated("The user name or the password is wrong.")
    return _actor(user_id, username, snapshot.at(epoch, stamp))


def _by_name(name: str) -> Actor:
    user_id, username, _, is_active, epoch, stamp = _account(name)
    if user_id is not None and not is_active:
        raise Unauthenticated(f"The account {name} is disabled.")
    return _actor(user_id, username or name, snapshot.at(epoch, stamp))


def _account(name: str) -> tuple:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT u.id, u.username, u.password, u.is_active, e.value, e.stamp FROM authz_policyepoch e "
            "LEFT JOIN authz_user u ON u.username = %s WHERE e.id = 1",
            [name],
        )
        return cursor.fetchone()


def _password_is_right(name: str, password: str, stored: str | None) -> bool:
    if stored is None:
        # An unknown name takes as long as a wrong password.
        if not _unknown_hash:
            _unknown_hash.append(make_password(secrets.token_hex()))
        check_password(password, _unknown_hash[0])
        return False
    key = hmac.digest(_process_key, f"{name}\0{password}".encode(errors="surrogatepass"), "sha256")
    if hmac.compare_digest(_verified.get(key, ""), stored):
        return True
    if not check_password(password, stored):
        return False
    with _verified_lock:
        _verified[key] = stored
        _verified.move_to_end(key)
        if len(_verified) > _VERIFIED_MAX:
            _verified.popitem(last=False)
    return True


def _actor(user_id: int | None, name: str, policy: snapshot.Snapshot) -> Actor:
    return Actor(user_id or NOBODY, name, policy, user_id is not None and name in settings.METALAKE_SERVICE_ADMINS)


def _basic(credential: str) -> tuple[str, str]:
    try:
        name, _, password = base64.b64decode(credential, validate=True).decode().partition(":")
    except ValueError:
        raise Unauthenticated("The Basic credential is not base64 of name:password.") from None
    if not name or "\x00" in name or "\x00" in password:
        raise Unauthenticated("The Basic credential names no user.")
    return name, password


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
