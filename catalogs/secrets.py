"""Which properties are secrets, how they are masked in answers, and what a mask means that a client sends back.

In doubt a property is a secret. Source of the rule: published leaks came from masks that knew exact key names only
(camelCase, prefixed or unknown keys slipped through). What a provider declares is no secret by its name, unless it
declares that, but by its value. Long random values alone are none: ids and checksums look alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from metalake.errors import Invalid

MASK = "******"
NOTHING: Mapping[str, bool] = {}

# Compared with the key's letters and digits alone, so that case, dashes, dots and prefixes make no difference.
SECRET_PARTS = (
    "password", "passwd", "passphrase", "passcode", "passkey", "secret", "token", "bearer", "credential", "accesskey",
    "privatekey", "privkey", "accountkey", "sharedkey", "sharedaccess", "apikey", "connectionstring", "connstr",
    "authorization", "authheader", "basicauth", "userinfo", "cookie", "hmac", "jaas", "clientassertion",
    "keytab", "kerberosticket", "webhook",  # whoever has its URL can call it
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
# What says how something is kept or made, and ends a key.
HARMLESS = re.compile(
    r"(?:(?:sort|schema|data|method|function)signature|"
    r"cookie(?:domain|path|name|secure|samesite|httponly|maxage|lifetime|policy|enabled))$"
)
SHORT = 100  # characters of a key about which the answer is remembered
SECRET_WORDS = {
    "pwd", "pw", "pass", "sas", "ugi", "cred", "creds", "pem", "ppk", "pfx", "psk", "otp", "jwt", "pat", "dsn",
    "sig",
}  # fmt: skip

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

# What a value of the form contains, which is looked for first, and its pattern, which starts at the start of a word or
# ends at the first separator, so that matching takes linear time.
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
    # Tokens that say what they are: GitHub's, GitLab's, Slack's, Google's, Stripe's, Databricks'.
    ("", re.compile(r"\b(?:gh[oprsu]_|github_pat_|glpat-|xox[abeoprs]-|AIza|sk_live_|dapi(?=[0-9a-f]{16}))[\w-]{10}")),
)


def is_secret(key: str, value: object, declared: Mapping[str, bool] = NOTHING) -> bool:
    """Whether a property must not be shown: its name or value is a credential's, or its provider declares it secret.

    `declared` are the properties that the provider declares, with whether they are secret.
    """
    named = declared[key] if key in declared else _names_secret(key)
    text = str(value)
    return named or any(part in text and form.search(text) for part, form in CREDENTIAL_FORMS)


def mask(properties: Mapping[str, str], declared: Mapping[str, bool] = NOTHING) -> dict[str, str]:
    """The properties as they may be shown, each secret's value replaced by `******`."""
    return {key: MASK if is_secret(key, value, declared) else value for key, value in properties.items()}


def sends_mask_back(
    key: str,
    value: str | None,
    current: Mapping[str, str],
    declared: Mapping[str, bool] = NOTHING,
    *,
    kind: str = "property",
) -> bool:
    """Whether a change only sends the mask back, so that the value stays.

    `current` are the present properties, open or masked. Raises Invalid for a mask of a property that is not masked.
    """
    if value != MASK:
        return False
    if key not in current or not (current[key] == MASK or is_secret(key, current[key], declared)):
        raise Invalid(
            f"Property {key!r}: {MASK} stands for a secret that is kept as it is, and there is none; send its value.",
            kind=kind,
        )
    return True


def require_values(properties: Mapping[str, str], *, kind: str = "property") -> None:
    """Raise Invalid for a mask among the properties of a new object, which has no value to keep."""
    for key, value in properties.items():
        sends_mask_back(key, value, {}, kind=kind)


def _names_secret(key: str) -> bool:
    return _short_key_names_secret(key) if len(key) <= SHORT else _has_secret_words(key)


@lru_cache(maxsize=2000)
def _short_key_names_secret(key: str) -> bool:
    return _has_secret_words(key)


def _has_secret_words(key: str) -> bool:
    key = key.partition(".column.")[0]  # what follows is the name of a table's column
    letters = HARMLESS.sub("", re.sub(r"[\W_]", "", key).lower().removesuffix("s"))
    if letters == "pin" or letters.endswith(SECRET_ENDINGS) or any(part in letters for part in SECRET_PARTS):
        return True
    return not SECRET_WORDS.isdisjoint(word.lower() for word in WORD.findall(key))
