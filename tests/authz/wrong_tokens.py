"""Tokens that must be refused, by what is wrong with them."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from authz.callers import oauth
from tests.authz.issuer import AUDIENCE, Issuer, b64, claims, good, keys, public_jwk, rsa_key, signed

Make = Callable[[Issuer], str]


def swapped(algorithm: str, secret: Callable[[Issuer], bytes]) -> Make:
    """Signed with what everybody can read, as if that were a shared secret."""

    def make(issuer: Issuer) -> str:
        start = (
            f"{b64(json.dumps({'alg': algorithm, 'kid': 'rsa'}).encode())}.{b64(json.dumps(claims(issuer)).encode())}"
        )
        digest = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}[algorithm]
        return f"{start}.{b64(hmac.digest(secret(issuer), start.encode(), digest))}"

    return make


def public(encoding: Encoding, format_: PublicFormat) -> Callable[[Issuer], bytes]:
    return lambda _: keys()["rsa"][0].public_key().public_bytes(encoding, format_)


PUBLIC_SECRETS: dict[str, Callable[[Issuer], bytes]] = {
    "pem": public(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    "pkcs1": public(Encoding.PEM, PublicFormat.PKCS1),
    "der": public(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
    "jwk": lambda _: json.dumps(public_jwk("rsa", keys()["rsa"][0])).encode(),
    "jwks": lambda issuer: issuer.pages["/realms/acme/keys"][2],
    "published": lambda _: b"a shared secret",
    "empty": lambda _: b"",
}


def with_claims(**changed: Any) -> Make:
    return lambda issuer: good(issuer, **changed)


def with_header(by: str = "rsa", **headers: Any) -> Make:
    return lambda issuer: signed(claims(issuer), by, **headers)


def with_payload(payload: bytes) -> Make:
    return lambda issuer: signed(payload)


def with_claim_text(name: str, text: str) -> Make:
    """JSON that Python's own writer would not make."""
    return lambda issuer: signed(json.dumps(claims(issuer, **{name: "@"})).replace('"@"', text).encode())


def cut(change: Callable[[list[str]], list[str]]) -> Make:
    """The parts of a good token, changed."""
    return lambda issuer: ".".join(change(good(issuer).split(".")))


def attacker() -> rsa.RSAPrivateKey:
    return rsa_key("attacker")


def flipped(text: str, place: int) -> str:
    return text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]


def der_signed(issuer: Issuer) -> str:
    start = good(issuer, "p256").rpartition(".")[0]
    return f"{start}.{b64(keys()['p256'][0].sign(start.encode(), ec.ECDSA(SHA256())))}"


def unsigned(alg: Any) -> Make:
    return lambda issuer: with_header(alg=alg)(issuer).rpartition(".")[0] + "."


def cut_short(sixteenths: int) -> Make:
    return lambda issuer: (token := good(issuer))[: len(token) * sixteenths // 16]


def as_is(text: str) -> Make:
    return lambda issuer: text


def by_attacker(**headers: Any) -> Make:
    return lambda issuer: signed(claims(issuer), private=attacker(), **headers)


def own_key() -> dict[str, Any]:
    return public_jwk("rsa", attacker())


def wrong_headers() -> dict[str, Make]:
    algorithms: tuple[Any, ...] = (
        "none", "None", "NONE", "nOnE", "", "HS256", "HS512", "PS256", "ES256", "EdDSA", "RS1", "dir",
        None, 1, [], {}, ["RS256"], True, ...,
    )  # fmt: skip
    wrong = {f"alg {alg!r}": with_header(alg=alg) for alg in algorithms}
    wrong |= {f"alg {alg!r} unsigned": unsigned(alg) for alg in algorithms}
    for alg in ("HS256", "HS384", "HS512"):
        wrong |= {f"{alg} with {name}": swapped(alg, secret) for name, secret in PUBLIC_SECRETS.items()}
    kids: tuple[Any, ...] = (
        "unknown", "", "RSA", " rsa", "../../etc/passwd", "/dev/null", "' OR 1=1 --", "rsa\0", "x" * 5000, "y",
        None, 7, [], {}, ["rsa"], True, ...,
        "p256", "p384", "ed", "only-rs384", "for-encryption", "short", "p521", "shared",
    )  # fmt: skip
    wrong |= {f"kid {str(kid)[:20]!r}": with_header(kid=kid) for kid in kids}
    wrong |= {f"a key that does not count: {kid}": with_header(kid) for kid in ("for-encryption", "short", "p521")}
    return wrong | {
        "an algorithm that the key does not name": lambda issuer: jwt.encode(
            claims(issuer), keys()["only-rs384"][0], "RS256", headers={"kid": "only-rs384"}
        ),
        "signed by another": by_attacker(),
        "brings its own key": by_attacker(jwk=own_key()),
        "brings its own key, without kid": by_attacker(jwk=own_key(), kid=...),
        "says where its key is": by_attacker(jku="http://127.0.0.1/keys", x5u="http://127.0.0.1/keys"),
        "asks for what we do not know": with_header(crit=["exp"], exp=1),
        "crit is empty": with_header(crit=[]),
        "payload elsewhere": with_header(b64=False, crit=["b64"]),
        "payload elsewhere and empty": lambda issuer: (
            f"{with_header(b64=False, crit=['b64'])(issuer).split('.')[0]}..{b64(b'x' * 256)}"
        ),
        "ES256 signature in DER": der_signed,
    }


def wrong_claims() -> dict[str, Make]:
    now = int(time.time())
    values: dict[str, tuple[Any, ...]] = {
        "iss": ("", "http://127.0.0.1/realms/acme", "https://issuer.example", "file:///keys", None, 7, [], {}, ...),
        "aud": (
            "", "other", "METALAKE", "metalake ", "metalake,other", [], ["other"], [["metalake"]], {"metalake": 1},
            None, 0, True, [AUDIENCE, 7], ...,
        ),
        "exp": (now - 3600, now - oauth.LEEWAY - 5, 0, -1, "soon", "", None, [], {}, False, True, -(10**30), ...),
        "nbf": (now + 10**6, "x", None, [], {}),
        "iat": (now + 10**6, "x", None, [], {}),
        "sub": ("", "a\0b", "a\nb", "x" * 129, None, 7, True, [], ["mia"], {"mia": 1}, ...),
        "groups": (7, True, {}, {"crew": 1}, [7], ["crew", None], [["crew"]]),
        "_claim_names": ({"groups": "src1"},),
    }  # fmt: skip
    texts = {
        "exp": ("NaN", "1e999", "-1e999", "Infinity", "-0"),
        "nbf": ("NaN", "1e999", "1" * 5000),
        "iat": ("NaN", "1e999", "1" * 5000),
        "sub": (r'"\ud800"', r'"mia\u0000"'),
    }
    wrong = {f"{name} {place}": with_claims(**{name: value})
             for name, several in values.items() for place, value in enumerate(several)}  # fmt: skip
    wrong |= {f"{name} is written {text[:20]}": with_claim_text(name, text)
              for name, several in texts.items() for text in several}  # fmt: skip
    return wrong | {
        "iss with a slash": lambda issuer: good(issuer, iss=f"{issuer.url}/"),
        "iss in capitals": lambda issuer: good(issuer, iss=issuer.url.upper()),
        "iss in a list": lambda issuer: good(issuer, iss=[issuer.url]),
        "too large": with_claims(note="x" * 13_000),
    }


def wrong_texts() -> dict[str, Make]:
    payloads = (
        b"", b"null", b"7", b"[]", b'"x"', b"{", b"{}{}", b"\xff\xfe", b"['iss']", b"[" * 9000, b'{"a":' * 1500,
    )  # fmt: skip
    junk = (
        "", ".", "..", "...", "a.b.c", "null", "undefined", "eyJ", "e30.e30.", "e30.e30.e30", "é.é.é", "\0.\0.\0",
        "\ud800", "Bearer x.y.z", "x" * 100, "x" * 16_384, "." * 9000, "x" * 100_000, "${jndi:ldap://x}", "=.=.=",
    )  # fmt: skip
    wrong = {f"payload {payload[:12]!r}": with_payload(payload) for payload in payloads}
    wrong |= {f"junk {place}: {text[:12]!r}": as_is(text) for place, text in enumerate(junk)}
    wrong |= {f"cut after {n} sixteenths": cut_short(n) for n in range(1, 16)}
    return wrong | {
        "no signature": cut(lambda parts: parts[:2]),
        "an empty signature": cut(lambda parts: [*parts[:2], ""]),
        "no header": cut(lambda parts: parts[1:]),
        "four parts": cut(lambda parts: [*parts, "x"]),
        "five parts": cut(lambda parts: [*parts, "x", "y"]),
        "parts in another order": cut(lambda parts: [parts[1], parts[0], parts[2]]),
        "another header": cut(lambda parts: [b64(b'{"alg":"RS256","kid":"rsa","typ":"x"}'), *parts[1:]]),
        "the payload of another": lambda issuer: spliced(good(issuer), good(issuer, sub="olga"), good(issuer)),
        "the signature of another": lambda issuer: spliced(good(issuer), good(issuer), good(issuer, sub="olga")),
        "a changed signature": cut(lambda parts: [*parts[:2], flipped(parts[2], 40)]),
        "a changed payload": cut(lambda parts: [parts[0], flipped(parts[1], 20), parts[2]]),
        "a signature twice": cut(lambda parts: [*parts[:2], parts[2] * 2]),
        "a space inside": cut(lambda parts: [parts[0], f" {parts[1]}", parts[2]]),
        "a line end inside": cut(lambda parts: [parts[0], f"{parts[1]}\n", parts[2]]),
        "another base64": cut(lambda parts: [parts[0], parts[1], "+/" + parts[2][2:]]),
        "as JSON": lambda issuer: json.dumps({"payload": good(issuer).split(".")[1]}),
    }


def spliced(*tokens: str) -> str:
    """The header of the first, the payload of the second, the signature of the third."""
    return ".".join(token.split(".")[place] for place, token in enumerate(tokens))


WRONG = wrong_headers() | wrong_claims() | wrong_texts()
"""Each differs from a good token in one thing."""
