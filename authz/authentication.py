"""The authentication classes, in the order of metalake/framework_settings.py.

A request's `user` is an Actor. The first class that handles the kind of credential decides; without a credential none
does, and the endpoint's permission class rejects the request.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from authz.actor import Actor
from authz.callers import identity
from authz.callers.identity import Credential
from metalake.request_target import decode
from metalake.rest.exceptions import CHALLENGE


class Authentication(BaseAuthentication):
    """Authenticates an actor, narrowed to the roles in X-Gravitino-Active-Roles, of the metalake in the path."""

    @abstractmethod
    def actor(self, credential: Credential) -> Actor | None:
        """The actor of the credential; None if this class does not handle its kind."""

    def authenticate(self, request: Request) -> tuple[Actor, None] | None:
        """Raises as identity.authenticate."""
        encoded = request.parser_context["kwargs"].get("metalake")
        metalake = decode(encoded) if encoded else None
        actor = self.actor(identity.credential_in(request.META.get("HTTP_AUTHORIZATION")))
        if actor is None:
            return None
        return identity.with_active_roles(actor, request.META.get("HTTP_X_GRAVITINO_ACTIVE_ROLES"), metalake), None

    def authenticate_header(self, request: Any) -> str:
        return CHALLENGE


class IssuerAuthentication(Authentication):
    """A token of a pinned OAuth issuer."""

    def actor(self, credential: Credential) -> Actor | None:
        return identity.by_issuer(credential)


class TokenAuthentication(Authentication):
    """A personal token."""

    def actor(self, credential: Credential) -> Actor | None:
        return identity.by_token(credential)


class SimpleAuthentication(Authentication):
    """A name accepted without proof, on loopback."""

    def actor(self, credential: Credential) -> Actor | None:
        return identity.by_simple(credential)


class BasicAuthentication(Authentication):
    """A user name and a verified password."""

    def actor(self, credential: Credential) -> Actor | None:
        return identity.by_password(credential)
