"""The caller's own password."""

from __future__ import annotations

from copy import copy

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from authz.actor import Actor
from authz.callers.run_tokens import require_person
from authz.models import User
from authz.transactions import write
from metalake.errors import Conflict, Invalid, Unsupported

OLD, NEW = "old", "new"  # kinds of refusals: which password is wrong


def change_password(actor: Actor, old: str, new: str, *, keeps_tokens: bool = False) -> User:
    """Change the caller's password, which ends their sessions, and their tokens unless these are kept.

    A guest stays one. Raises Invalid with the kind OLD or NEW, TooManyRequests as a sign-in, Conflict if the password
    was set by somebody else in between, Unsupported for an account that has none.
    """
    require_person(actor, "changes no password")
    user = User.objects.filter(pk=actor.id).first()
    if user is None or not user.has_usable_password():
        raise Unsupported("You sign in without a password here, so there is none to change.", kind=OLD)
    if not user.check_password(old):
        raise Invalid("This is not your password.", kind=OLD)
    before = User.objects.values_list("password", flat=True).get(pk=user.pk)  # checking may hash it anew
    try:
        validate_password(new, user)
    except ValidationError as weak:
        raise Invalid(" ".join(weak.messages), kind=NEW) from None
    if new == old:
        raise Invalid("This is the old password.", kind=NEW)
    user.set_password(new)  # hashed before the transaction, which others wait for
    user.changed_by, user.keeps_tokens = user.username, keeps_tokens

    def act(actor: Actor) -> User:
        if not User.objects.select_for_update().filter(pk=user.pk, password=before, is_active=True).exists():
            raise Conflict("Your password was set by somebody else in the meantime: sign in again.", kind=OLD)
        account = copy(user)  # saving forgets that the password is new, and a transaction may run again
        account.save(update_fields=["password"])
        return account

    return write(actor, act, holds=None, kind="user")
