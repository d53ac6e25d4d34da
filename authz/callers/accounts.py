"""The account that owns what somebody makes."""

from __future__ import annotations

from authz.actor import NOBODY, Actor
from authz.models import User
from metalake.errors import Forbidden


def account_of(actor: Actor) -> int:
    """The id of the actor's account, for a row that needs one, in the transaction that writes the row.

    Whoever `simple` believes gets one here if there is none: without a password, so that it signs in nowhere else.
    Raises Forbidden for others who have none.
    """
    if actor.id != NOBODY:
        return actor.id
    if not actor.believed:
        raise Forbidden(f"{actor.name} has no account here, so nothing can be theirs: ask an operator to make one.")
    found = User.objects.filter(username=actor.name).first()
    return (found or User.objects.create_user(actor.name)).pk
