"""Verifies passwords for the APIs, the pages and the admin alike.

The slow hash runs once per account, address and password: a correct one is cached under a digest that changes with the
stored hash. An attempt is counted before hashing, so that concurrent attempts cannot bypass the limits; a cached
password passes whatever the count, so that one caller's failures do not lock out another.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from functools import cache
from typing import Any

from cachetools import TTLCache
from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.hashers import check_password, make_password
from django.http import HttpRequest

from authz import throttling
from authz.models import User
from metalake import refusal_audit
from metalake.blocking import may_block
from metalake.errors import TooManyRequests, Unauthenticated
from metalake.request_context import address

PER_ACCOUNT = 10  # failures from one address in a window
PER_ADDRESS = 50
REMEMBERED = 30 * throttling.DAY
# Random per server start, inherited by its processes and never on disk: a stolen database gives no fast way to
# brute-force passwords, even together with SECRET_KEY.
_run_key = secrets.token_hex()

_TOO_MANY = "Too many sign-ins failed."
_hashing = throttling.Bulkhead(
    "hashing",
    size=max(2, len(os.sched_getaffinity(0)) // 2),
    line=2 * max(1, settings.METALAKE_THREADS // 4),
    patience=1,
    message="Too many sign in at this moment; try again.",
)
_verified: TTLCache[str, bool] = TTLCache(maxsize=10_000, ttl=throttling.DAY)
_verified_lock = threading.Lock()


def verify(name: str, password: str, stored: str | None) -> None:
    """Raise Unauthenticated unless the password is correct, TooManyRequests after too many wrong ones.

    `stored` is the account's hash, None if no account may sign in: then timing, counts and errors are the same.
    """
    came_from = address.get()
    credential = _digest_of(name, password, stored)
    if _is_verified(credential):
        return
    may_block()
    counts = (throttling.count_of(PER_ACCOUNT, "sign in", came_from, name), _of_address(came_from))
    rows = throttling.read(credential, *(count.digest for count in counts))
    if credential in rows:
        if rows[credential].until < time.time() + REMEMBERED / 2:
            throttling.remember(credential, REMEMBERED)
        _remember(credential)
        return
    try:
        throttling.require(counts, rows, _TOO_MANY)
        with _hashing.place():
            throttling.add(counts, _TOO_MANY)
            is_right = check_password(password, stored or _hash_of_nobody()) and stored is not None
    except TooManyRequests:
        refusal_audit.sign_in(name if stored else None, came_from, tried=False)
        raise
    if not is_right:
        refusal_audit.sign_in(name if stored else None, came_from, tried=True)
        raise Unauthenticated("The user name or the password is wrong.")
    throttling.take_back(counts)
    throttling.remember(credential, REMEMBERED)
    _remember(credential)


def is_known(name: str, password: str, stored: str) -> bool:
    """Whether this process has cached the password as correct, for the request's client address."""
    return _is_verified(_digest_of(name, password, stored))


def _digest_of(name: str, password: str, stored: str | None) -> str:
    return throttling.digest("verified", _run_key, stored or "", address.get(), name, password)


def _is_verified(credential: str) -> bool:
    with _verified_lock:
        return credential in _verified


def require_few_failures() -> None:
    """Raise TooManyRequests after too many failed sign-ins from the client address; for secrets other than passwords.

    `count_failure` adds one.
    """
    count = _of_address(address.get())
    throttling.require([count], throttling.read(count.digest), _TOO_MANY)


def count_failure() -> None:
    """Count a wrong secret as a failed sign-in. Raises TooManyRequests."""
    throttling.add([_of_address(address.get())], _TOO_MANY)


def _of_address(came_from: str) -> throttling.Count:
    return throttling.count_of(PER_ADDRESS, "sign in", came_from)


def _remember(credential: str) -> None:
    """Cache a correct password in this process for a day, then check the database again."""
    with _verified_lock:
        _verified[credential] = True


@cache
def _hash_of_nobody() -> str:
    return make_password(secrets.token_hex())


class PasswordBackend(ModelBackend):
    """The backend of Django's sign-in forms, on the pages and in the admin."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **other: Any
    ) -> User | None:
        """Raises TooManyRequests, which the forms do not catch."""
        if username is None or password is None:
            return None
        user = User.objects.filter(username=username, is_active=True).first()
        return user if _is_right(username, password, user) else None

    def is_password_of(self, user: User, password: str) -> bool:
        """Raises TooManyRequests."""
        return _is_right(user.username, password, user)


def _is_right(name: str, password: str, user: User | None) -> bool:
    try:
        verify(name, password, user.password if user and user.is_active else None)
    except Unauthenticated:
        return False
    return True
