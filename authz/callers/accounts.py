"""The account that owns what an actor creates."""

from __future__ import annotations

from authz.actor import NOBODY, Actor
from authz.models import User
from metalake.errors import Forbidden


def account_of(actor: Actor) -> int:
    """The id of the actor's account, for a row that needs one, in the transaction that writes the row.

    If there is none, one is made for a name that `simple` accepted: without a password, so that it cannot sign in
    elsewhere. For other actors without an account it raises Forbidden.
    """
    if actor.id != NOBODY:
        return actor.id
    if not actor.believed:
        raise Forbidden(f"{actor.name} has no account here, so nothing can be theirs: ask an operator to make one.")
    user = User.objects.filter(username=actor.name).first()
    return (user or User.objects.create_user(actor.name)).pk
