"""The native wire's endpoint of invitations; parsing and shape only."""

from __future__ import annotations

from typing import Any

from authz.actor import Actor
from authz.services import invitations
from metalake.rest.views import Endpoint, answers
from metalake.wire import Body, Reply, written


class InvitationRequest(Body):
    """Nothing: who is invited is in the path."""


class InvitationReply(Reply):
    """A link on this server, which is shown this once, and until when it is good."""

    path: str
    expires_at: str


class Invitation(Endpoint):
    @answers(
        "manage_users",
        body=InvitationRequest,
        body_is_optional=True,
        reply={"invitation": InvitationReply},
        id="invite",
    )
    def post(self, actor: Actor, metalake: str, user: str, body: InvitationRequest | None) -> dict[str, Any]:
        """Make a link by which a new person sets a password, once and within 7 days; an unused one is replaced.

        The account is made for it. One that exists already has a password of its own, and gets no link.
        """
        made = invitations.invite(actor, metalake, user)
        return {"invitation": {"path": f"/invitations/{made.secret}", "expiresAt": written(made.expires_at)}}
