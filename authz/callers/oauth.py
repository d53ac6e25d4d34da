"""Verifies JWTs of pinned OAuth issuers with the keys that the issuer publishes.

A token never determines where its keys are read from: its `iss` only selects one of the configured issuers.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from functools import cache
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, build_opener

import jwt
from django.conf import settings

from metalake.errors import ProviderUnavailable, Unauthenticated

log = logging.getLogger(__name__)

MAX_TOKEN = 16 * 1024
MAX_DOCUMENT = 256 * 1024
MAX_NAME = 128
LEEWAY = 30  # seconds of clock skew
TIMEOUT = 3  # seconds to connect, and per read
KEYS_MAX_AGE = 600  # seconds until keys are reread, so that a revoked key stops working
READ_AGAIN_AFTER = 30  # seconds, for an unknown key
TRY_AGAIN_AFTER = 5  # seconds, while there are no keys at all

# The signing algorithms allowed for each key type. No shared secrets, no `none`.
ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512"),
    "EC P-256": ("ES256",),
    "EC P-384": ("ES384",),
    "OKP Ed25519": ("EdDSA",),
}
MIN_RSA_BITS = 2048


class Caller(NamedTuple):
    """The account and the stored groups that a token names."""

    user: str
    groups: tuple[str, ...]


def read(token: str) -> Caller:
    """Verify a token. Raises Unauthenticated, and ProviderUnavailable if the issuer's keys cannot be read."""
    if len(token) > MAX_TOKEN:
        raise Unauthenticated(f"A token may take {MAX_TOKEN} bytes.")
    try:
        claims = _verified(token)
    except jwt.ExpiredSignatureError:
        raise Unauthenticated("The token has expired.") from None
    except jwt.ImmatureSignatureError:
        raise Unauthenticated("The token is not valid yet.") from None
    except jwt.InvalidAudienceError:
        raise Unauthenticated("The token is meant for another audience.") from None
    except jwt.MissingRequiredClaimError as missing:
        raise Unauthenticated(f"The token lacks the claim {missing.claim}.") from None
    except (jwt.PyJWTError, ValueError):
        raise Unauthenticated("The token is not one that its issuer signed.") from None
    return Caller(_user(claims), _groups(claims))


def _verified(token: str) -> dict[str, Any]:
    kid = jwt.get_unverified_header(token).get("kid")
    issuer = jwt.decode(token, options={"verify_signature": False}).get("iss")
    if not isinstance(issuer, str) or issuer not in settings.METALAKE_OAUTH_ISSUERS:
        raise Unauthenticated("The token is not of an issuer that this server trusts.")
    if not kid:
        raise Unauthenticated("The token does not name its key (kid).")
    key = _keys_of(issuer, settings.METALAKE_OAUTH_ISSUERS[issuer]).named(kid)
    return jwt.decode(
        token,
        key.public,
        algorithms=key.algorithms,
        issuer=issuer,
        audience=settings.METALAKE_OAUTH_AUDIENCE,
        leeway=LEEWAY,
        options={"require": ["exp", "iss", "aud"]},
    )


def _user(claims: dict[str, Any]) -> str:
    claim = settings.METALAKE_OAUTH_USER_CLAIM
    name = claims.get(claim)
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME or not name.isprintable():
        raise Unauthenticated(f"The token's claim {claim} is not a user name.")
    return name


def _groups(claims: dict[str, Any]) -> tuple[str, ...]:
    """The groups of the claim; an unreadable claim is rejected, not ignored, since a group may carry a DENY."""
    claim = settings.METALAKE_OAUTH_GROUPS_CLAIM
    elsewhere = claims.get("_claim_names")
    if isinstance(elsewhere, dict) and claim in elsewhere:
        raise Unauthenticated(f"The token leaves its claim {claim} out; have its issuer list the groups.")
    names = claims.get(claim)
    names = [] if names is None else [names] if isinstance(names, str) else names
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Unauthenticated(f"The token's claim {claim} is not a list of group names.")
    return tuple(name for name in names if name.isprintable())


class Key(NamedTuple):
    public: Any
    algorithms: tuple[str, ...]


@cache
def _keys_of(issuer: str, jwks: str) -> KeySet:
    return KeySet(issuer, jwks)


class KeySet:
    """One issuer's keys, cached per process; they stay valid while the issuer is unreachable."""

    def __init__(self, issuer: str, jwks: str) -> None:
        self.issuer = issuer
        self.jwks = jwks
        self._keys: dict[str, Key] = {}
        self._reached = False
        self._tried_at = float("-inf")
        self._lock = threading.Lock()

    def named(self, kid: str) -> Key:
        """Raises Unauthenticated for an unpublished key, ProviderUnavailable if the keys cannot be read."""
        if kid not in self._keys:
            with self._lock:
                self._read_if_older(READ_AGAIN_AFTER if self._keys else TRY_AGAIN_AFTER)
        elif self._lock.acquire(blocking=False):  # a known key does not wait for another thread's refresh
            try:
                self._read_if_older(KEYS_MAX_AGE)
            finally:
                self._lock.release()
        if key := self._keys.get(kid):
            return key
        if not self._reached:
            raise ProviderUnavailable("The token cannot be verified: the keys of its issuer cannot be read. Try again.")
        raise Unauthenticated("The token is signed with a key that its issuer does not publish.")

    def _read_if_older(self, seconds: float) -> None:
        if time.monotonic() - self._tried_at < seconds:
            return
        try:
            self._keys = usable(self._published())
            self._reached = True
        except (OSError, HTTPException, ValueError, RecursionError) as failure:
            self._reached = False
            log.warning("the keys of %s cannot be read: %s", self.issuer, failure)
        finally:
            self._tried_at = time.monotonic()

    def _published(self) -> dict[str, Any]:
        if self.jwks:
            return document(self.jwks)
        described = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        about = document(described)
        if about.get("issuer") != self.issuer:
            raise ValueError(f"{described} describes another issuer")
        jwks = about.get("jwks_uri")
        own, there = urlsplit(described), urlsplit(jwks if isinstance(jwks, str) else "")
        if there.scheme != "https" and (there.scheme, there.netloc) != (own.scheme, own.netloc):
            raise ValueError(f"{described} names no jwks_uri that begins with https")
        return document(there.geturl())


def usable(jwks: dict[str, Any]) -> dict[str, Key]:
    """The signing keys by kid, without those of an untrusted type or size. Raises ValueError."""
    listed = jwks.get("keys")
    if not isinstance(listed, list):
        raise ValueError("a JWKS has a list of keys")
    return {
        jwk["kid"]: key
        for jwk in listed
        if isinstance(jwk, dict) and isinstance(jwk.get("kid"), str) and (key := _key(jwk))
    }


def _key(jwk: dict[str, Any]) -> Key | None:
    algorithms = ALGORITHMS.get(f"{jwk.get('kty')} {jwk.get('crv', '')}".strip(), ())
    if jwk.get("alg") is not None:
        algorithms = tuple(name for name in algorithms if name == jwk["alg"])
    if not algorithms or jwk.get("use", "sig") != "sig":
        return None
    try:
        public = jwt.PyJWK({name: part for name, part in jwk.items() if name != "d"}, algorithms[0]).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    return None if algorithms[0] in ALGORITHMS["RSA"] and public.key_size < MIN_RSA_BITS else Key(public, algorithms)


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


_opener = build_opener(_NoRedirects)


def document(location: str) -> dict[str, Any]:
    """The JSON object in a file or at a URL. Raises OSError, HTTPException or ValueError."""
    if "://" in location:
        with _opener.open(location, timeout=TIMEOUT) as answer:
            content = answer.read(MAX_DOCUMENT + 1)
    else:
        with Path(location).open("rb") as file:
            content = file.read(MAX_DOCUMENT + 1)
    if len(content) > MAX_DOCUMENT:
        raise ValueError(f"{location} takes more than {MAX_DOCUMENT} bytes")
    data = json.loads(content)
    if not isinstance(data, dict):
        raise ValueError(f"{location} is not a JSON object")
    return data
