"""The account that owns what an actor creates, and vouching for guest accounts."""

from __future__ import annotations

from authz.actor import NOBODY, Actor, system_actor
from authz.models import User
from authz.transactions import write
from metalake.blocking import may_block
from metalake.errors import Forbidden, Invalid


def account_of(actor: Actor) -> int:
    """The id of the actor's account, for a foreign key; call it in the transaction that writes the row.

    Creates one for a name that `simple` accepted: without a password, so that it cannot sign in elsewhere. Raises
    Forbidden for other actors without an account.
    """
    if actor.id != NOBODY:
        return actor.id
    if not actor.believed:
        raise Forbidden(f"{actor.name} has no account here, so nothing can be theirs: ask an operator to make one.")
    user = User.objects.filter(username=actor.name).first()
    return (user or User.objects.create_user(actor.name)).pk


def account_to_add(name: str, metalake_id: int) -> User:
    """Get or create the account to add to a metalake, by name.

    Raises Invalid for a guest of another metalake (docs/authorization.md, Invitations).
    """
    # Locked: an invitation to another metalake may be setting the account's password concurrently.
    user = User.objects.select_for_update(no_key=True).filter(username=name).first() or User.objects.create_user(name)
    if user.guest_of not in (None, metalake_id):
        raise Invalid(
            f"The password of {name} was set by an invitation to another metalake, so that nobody has vouched for the "
            f"account: an operator does by a new one (manage.py set_password {name}), an issuer by a token.",
            kind="user",
        )
    return user


def vouch_for(user_id: int) -> None:
    """Invalidate a guest account's password and tokens: from now on an OAuth issuer vouches for its name."""

    def act(actor: Actor) -> None:
        user = User.objects.select_for_update().get(pk=user_id)
        if user.guest_of is not None:
            user.set_unusable_password()
            user.save(update_fields=["password"])

    may_block()
    write(system_actor(), act, holds=None, kind="user")
