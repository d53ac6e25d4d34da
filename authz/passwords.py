"""Whether a password is right: one way for the wires, the pages and the admin.

The slow hash is paid once for an account, an address and a password; what was right is remembered by a digest that
changes with the stored hash. A try is counted before it is hashed, so that many at once are no way round the limits;
what was right before passes whatever was counted, so that nobody's failures keep another out.
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

from authz.callers import throttling
from authz.models import User
from metalake import refusals
from metalake.blocking import may_block
from metalake.context import address
from metalake.errors import TooManyRequests, Unauthenticated

PER_ACCOUNT = 10  # failures from one address in a window
PER_ADDRESS = 50
REMEMBERED = 30 * throttling.DAY
# Of this start of the server, whose processes inherit it: on no disk, so that a stolen store, though SECRET_KEY may lie
# beside it, gives no fast way to try passwords.
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
    """Raise Unauthenticated unless the password is the account's, TooManyRequests where too many were wrong before.

    `stored` is the account's hash, None where there is no account that may sign in: that takes as long, counts as much
    and is answered alike.
    """
    came_from = address.get()
    credential = throttling.digest("verified", _run_key, stored or "", came_from, name, password)
    with _verified_lock:
        if credential in _verified:
            return
    may_block()
    counts = (
        throttling.count_of(PER_ACCOUNT, "sign in", came_from, name),
        throttling.count_of(PER_ADDRESS, "sign in", came_from),
    )
    rows = throttling.read(credential, *(count.digest for count in counts))
    if credential in rows:
        if rows[credential].until < time.time() + REMEMBERED / 2:
            throttling.remember(credential, REMEMBERED)
        _keep(credential)
        return
    try:
        throttling.require(counts, rows, _TOO_MANY)
        with _hashing.place():
            throttling.add(counts, _TOO_MANY)
            is_right = check_password(password, stored or _hash_of_nobody()) and stored is not None
    except TooManyRequests:
        refusals.sign_in(name if stored else None, came_from, tried=False)
        raise
    if not is_right:
        refusals.sign_in(name if stored else None, came_from, tried=True)
        raise Unauthenticated("The user name or the password is wrong.")
    throttling.take_back(counts)
    throttling.remember(credential, REMEMBERED)
    _keep(credential)


def _keep(credential: str) -> None:
    """For this process and a day, after which the store is asked again."""
    with _verified_lock:
        _verified[credential] = True


@cache
def _hash_of_nobody() -> str:
    return make_password(secrets.token_hex())


class PasswordBackend(ModelBackend):
    """How Django's forms ask, those of the pages and of the admin."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **other: Any
    ) -> User | None:
        """Raises TooManyRequests, which the forms let through."""
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
