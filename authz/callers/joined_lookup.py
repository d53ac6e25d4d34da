"""Authenticates the caller in the same SQL statement that reads the requested object.

Only where in-process caches suffice: a token, a name accepted without proof, or a password verified before, with the
policy snapshot loaded. Everything else falls back to authz.callers.identity.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from django.conf import settings

from authz import passwords, snapshot
from authz.actor import Actor
from authz.callers import identity, token_uses
from authz.callers.identity import BY_NAME, BY_TOKEN, TOKEN_PREFIX, Form
from metalake.errors import Unauthenticated


class Caller(NamedTuple):
    """A parsed Authorization header: the SQL form to read the caller, its parameter, and a password to verify."""

    form: Form
    parameter: str
    password: str | None = None


def caller_in(authorization: str | None) -> Caller | None:
    """The caller in a header; None if identity.authenticate has to handle it."""
    scheme, text = identity.credential_in(authorization)
    ways = settings.METALAKE_AUTHENTICATORS
    if scheme == "bearer" and "token" in ways and text.startswith(TOKEN_PREFIX):
        return Caller(BY_TOKEN, identity.digest_of(text))
    if scheme != "basic" or not ("simple" in ways or "basic" in ways):
        return None
    try:
        name, password = identity.name_and_password(text)
    except Unauthenticated:
        return None
    return Caller(BY_NAME, name, None if "simple" in ways else password)


def actor_in(caller: Caller, row: tuple[Any, ...]) -> Actor | None:
    """The actor in a row with the columns of the caller's form; None if identity has to decide."""
    epoch, stamp, user_id, name, is_active, last, *bound = row
    if caller.form is BY_TOKEN:
        accepts = identity.is_valid(is_active, last)
        if accepts:
            token_uses.note(caller.parameter)
    else:
        accepts = bool(is_active) and (caller.password is None or passwords.is_known(name, caller.password, last))
    policy = snapshot.in_memory(epoch, stamp) if accepts else None
    return None if policy is None else identity.actor_at(user_id, name, policy, *bound)
