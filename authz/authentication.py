"""The authentication classes, which metalake/framework_settings.py lists in their order.

A request's `user` is an Actor. The first class that the credential is meant for decides; without a credential none
does, and the permission of the endpoint refuses the request.
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
    """Authenticates an actor, narrowed to the roles that X-Gravitino-Active-Roles names in the metalake of the path."""

    @abstractmethod
    def actor(self, credential: Credential) -> Actor | None:
        """The actor that the credential names; None if it is not meant for this class."""

    def authenticate(self, request: Request) -> tuple[Actor, None] | None:
        """Raises what identity.authenticate does."""
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
    """A name that is accepted without proof, on loopback."""

    def actor(self, credential: Credential) -> Actor | None:
        return identity.by_simple(credential)


class BasicAuthentication(Authentication):
    """A user name and a password that is verified."""

    def actor(self, credential: Credential) -> Actor | None:
        return identity.by_password(credential)
