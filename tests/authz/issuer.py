"""An OAuth issuer of the tests' own: a server on loopback, real keys, and tokens signed by them."""

from __future__ import annotations

import base64
import json
import threading
import time
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from django.test import Client

AUDIENCE = "metalake"
FAR = 600  # seconds ahead


@cache
def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


@cache
def keys() -> dict[str, tuple[Any, str, dict[str, Any]]]:
    """Private key, algorithm and what the JWKS adds to it, by kid."""
    return {
        "rsa": (rsa_key("ours"), "RS256", {}),
        "only-rs384": (rsa_key("another"), "RS384", {"alg": "RS384", "use": "sig"}),
        "p256": (ec.generate_private_key(ec.SECP256R1()), "ES256", {"alg": "ES256"}),
        "p384": (ec.generate_private_key(ec.SECP384R1()), "ES384", {}),
        "ed": (ed25519.Ed25519PrivateKey.generate(), "EdDSA", {}),
        "for-encryption": (rsa_key("ours"), "RS256", {"use": "enc"}),
        "short": (rsa_key("short", 1024), "RS256", {}),
        "p521": (ec.generate_private_key(ec.SECP521R1()), "ES512", {}),
    }


def public_jwk(kid: str, private: Any, **more: Any) -> dict[str, Any]:
    kinds = {rsa.RSAPrivateKey: "RS256", ec.EllipticCurvePrivateKey: "ES256", ed25519.Ed25519PrivateKey: "EdDSA"}
    algorithm = next(name for kind, name in kinds.items() if isinstance(private, kind))
    jwk = jwt.get_algorithm_by_name(algorithm).to_jwk(private.public_key(), as_dict=True)
    return {**jwk, "kid": kid, **more}


SHARED = {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(b"a shared secret").decode().rstrip("=")}
JUNK = [None, 7, {}, {"kty": "RSA"}, {"kty": ["RSA"], "kid": "x"}, {"kty": "RSA", "kid": "y", "n": 1, "e": []}]


class Issuer:
    """An OpenID provider on loopback; `pages` are what it answers, `asked` the paths it was asked for."""

    def __init__(self) -> None:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                status, headers, body = issuer.pages.get(self.path, (404, {}, b""))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.asked: list[str] = []
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/realms/acme"
        threading.Thread(target=self.server.serve_forever, args=[0.02], daemon=True).start()
        self.describe()
        self.publish(*(public_jwk(kid, private, **more) for kid, (private, _, more) in keys().items()), SHARED, *JUNK)

    def answer(self, path: str, body: Any, status: int = 200, **headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.pages[f"/realms/acme/{path}"] = (status, headers, content)

    def describe(self, **other: Any) -> None:
        about = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"} | other
        self.answer(".well-known/openid-configuration", about)

    def publish(self, *jwks: Any) -> None:
        self.answer("keys", {"keys": list(jwks)})

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def claims(issuer: Issuer, **changed: Any) -> dict[str, Any]:
    """Good ones, changed; what is changed to `...` is left out."""
    now = int(time.time())
    good = {"iss": issuer.url, "aud": AUDIENCE, "sub": "mia", "iat": now, "exp": now + FAR}
    return present(good | changed)


def present(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not ...}


def signed(payload: Any, by: str = "rsa", *, private: Any = None, **headers: Any) -> str:
    """By a key of the issuer; a payload in bytes and header fields are taken as they are, `...` is left out."""
    ours, algorithm, _ = keys()[by]
    header = {"kid": by, "alg": algorithm} | headers
    content = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    start = f"{b64(json.dumps(present(header)).encode())}.{b64(content)}"
    signature = jwt.get_algorithm_by_name(algorithm).sign(start.encode(), private or ours)
    return f"{start}.{b64(signature)}"


def b64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def good(issuer: Issuer, kid: str = "rsa", **changed: Any) -> str:
    return signed(claims(issuer, **changed), kid)


def believe(settings: Any, issuer: Issuer, jwks: str = "") -> None:
    settings.METALAKE_AUTHENTICATORS = ("basic", "token", "oauth")
    settings.METALAKE_OAUTH_ISSUERS = {issuer.url: jwks}
    settings.METALAKE_OAUTH_AUDIENCE = (AUDIENCE,)


def both_wires(token: str) -> list[tuple[int, dict[str, Any]]]:
    """Status and body that the native and the Iceberg wire answer this bearer with."""
    answers = []
    for path in ("/api/metalakes", "/iceberg/acme/v1/config?warehouse=lake"):
        answer = Client(raise_request_exception=False).get(path, headers={"Authorization": f"Bearer {token}"})
        answers.append((answer.status_code, json.loads(answer.content)))
    return answers
