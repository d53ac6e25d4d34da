"""The account that owns what an actor creates, and who vouches for one."""

from __future__ import annotations

from authz.actor import NOBODY, Actor, system_actor
from authz.models import User
from authz.writing import write
from metalake.blocking import may_block
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


def vouch_for(user_id: int) -> None:
    """End the password and the tokens that an invitation gave an account: an issuer says now who has its name."""

    def act(actor: Actor) -> None:
        user = User.objects.select_for_update().get(pk=user_id)
        if user.guest_of is not None:
            user.set_unusable_password()
            user.save(update_fields=["password"])

    may_block()
    write(system_actor(), act, holds=None, kind="user")
