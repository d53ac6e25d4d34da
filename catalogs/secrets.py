"""Detects secret properties, masks them in responses, and handles masks that clients send back.

When in doubt, a property is secret. Source of the rule: published leaks came from masks that matched exact key names
only (camelCase, prefixed or unknown keys slipped through). For keys that a provider declares, its declaration replaces
the check of the name, not that of the value. Long random values are not secret as such: ids and checksums look alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from metalake.errors import Invalid

MASK = "******"
NOTHING: Mapping[str, bool] = {}

# Matched against the key's letters and digits only, whatever its case, punctuation and prefixes.
SECRET_PARTS = (
    "password", "passwd", "passphrase", "passcode", "passkey", "secret", "token", "bearer", "credential", "accesskey",
    "privatekey", "privkey", "accountkey", "sharedkey", "sharedaccess", "apikey", "connectionstring", "connstr",
    "authorization", "authheader", "basicauth", "userinfo", "cookie", "hmac", "jaas", "clientassertion",
    "keytab", "kerberosticket", "webhook",  # its URL suffices to call it
)  # fmt: skip
KEYS = (
    "encryption", "sign", "signing", "master", "sse", "ssecustomer", "ssh", "pem", "cert", "certificate", "tls", "ssl",
    "rsa", "aes", "client", "server", "auth", "deploy", "subscription",
)  # fmt: skip
PRIVATE = ("key", "pem", "cert", "certificate", "ssh", "tls", "ssl", "rsa")
PINS = ("user", "card", "hsm", "slot", "login", "pkcs11")
SECRET_ENDINGS = (
    *(f"{of}key" for of in KEYS), *(f"{of}private" for of in PRIVATE), *(f"{of}pin" for of in PINS),
    "signature", "httpauth", "proxyauth",
)  # fmt: skip
# Endings of keys that look secret but only configure something.
HARMLESS = re.compile(
    r"(?:(?:sort|schema|data|method|function)signature|"
    r"cookie(?:domain|path|name|secure|samesite|httponly|maxage|lifetime|policy|enabled))$"
)
SHORT = 100  # characters; results for keys up to this length are cached
SECRET_WORDS = {
    "pwd", "pw", "pass", "sas", "ugi", "cred", "creds", "pem", "ppk", "pfx", "psk", "otp", "jwt", "pat", "dsn",
    "sig",
}  # fmt: skip

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

# A substring that is checked first, and the pattern, anchored at a word's start or bounded by a separator so that
# matching takes linear time.
_NAMED = re.compile(
    r"(?:passw(?:or)?d|pwd|passphrase|(?<![a-z])pass|secret|token|credential|api[_-]?key|account[_-]?key|"
    r"access[_-]?key|private[_-]?key|signature|(?<!\w)sig)(?:=|\"\s{0,8}:\s{0,8}\")[^&;\s\"]",
    re.IGNORECASE,
)
CREDENTIAL_FORMS = (
    ("@", re.compile(r"://[^/\s@:]*:[^/\s@]*@")),  # a URL with a password in it
    ("@", re.compile(r"jdbc:oracle:\w{1,9}:[^/\s@]{1,200}/[^/\s@]{1,200}@")),
    ("-----BEGIN", re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}-----")),  # PEM
    ("eyJ", re.compile(r"(?<![\w-])eyJ[\w-]+\.[\w-]+\.")),  # JWT and JWE
    ("IA", re.compile(r"(?<!\w)(?:AKIA|ASIA)[A-Z0-9]{16}(?!\w)")),  # an AWS access key
    (" ", re.compile(r"^\s{0,8}(?:bearer|basic) \S", re.IGNORECASE)),  # an Authorization header
    (" ", re.compile(r"(?<!\w)(?:bearer|basic) [\w+/.=~-]{20}", re.IGNORECASE)),
    ("=", _NAMED),
    (":", re.compile(r"PuTTY-User-Key-File|hooks\.slack\.com/services/")),
    ('"', _NAMED),
    # Tokens with known prefixes: GitHub's, GitLab's, Slack's, Google's, Stripe's, Databricks'.
    ("", re.compile(r"\b(?:gh[oprsu]_|github_pat_|glpat-|xox[abeoprs]-|AIza|sk_live_|dapi(?=[0-9a-f]{16}))[\w-]{10}")),
)


def is_secret(key: str, value: object, declared: Mapping[str, bool] = NOTHING) -> bool:
    """Whether a property must be masked: its name or value looks like a credential, or its provider declares it secret.

    `declared` maps the properties that the provider declares to whether they are secret.
    """
    named = declared[key] if key in declared else _names_secret(key)
    text = str(value)
    return named or any(part in text and form.search(text) for part, form in CREDENTIAL_FORMS)


def mask(properties: Mapping[str, str], declared: Mapping[str, bool] = NOTHING) -> dict[str, str]:
    """The properties with each secret's value replaced by `******`."""
    return {key: MASK if is_secret(key, value, declared) else value for key, value in properties.items()}


def sends_mask_back(
    key: str,
    value: str | None,
    current: Mapping[str, str],
    declared: Mapping[str, bool] = NOTHING,
    *,
    kind: str = "property",
) -> bool:
    """Whether a change only sends the mask back, which keeps the value.

    `current` are the current properties, plain or masked. Raises Invalid for a mask of a property that is not masked.
    """
    if value != MASK:
        return False
    if key not in current or not (current[key] == MASK or is_secret(key, current[key], declared)):
        raise Invalid(
            f"Property {key!r}: {MASK} stands for a secret that is already stored, but none is; send its value.",
            kind=kind,
        )
    return True


def require_values(properties: Mapping[str, str], *, kind: str = "property") -> None:
    """Raise Invalid for a mask among the properties of a new object, which has no value that could be kept."""
    for key, value in properties.items():
        sends_mask_back(key, value, {}, kind=kind)


def _names_secret(key: str) -> bool:
    return _short_key_names_secret(key) if len(key) <= SHORT else _has_secret_words(key)


@lru_cache(maxsize=2000)
def _short_key_names_secret(key: str) -> bool:
    return _has_secret_words(key)


def _has_secret_words(key: str) -> bool:
    key = key.partition(".column.")[0]  # followed by a column's name
    letters = HARMLESS.sub("", re.sub(r"[\W_]", "", key).lower().removesuffix("s"))
    if letters == "pin" or letters.endswith(SECRET_ENDINGS) or any(part in letters for part in SECRET_PARTS):
        return True
    return not SECRET_WORDS.isdisjoint(word.lower() for word in WORD.findall(key))
