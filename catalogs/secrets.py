"""Which properties are secrets, how they are masked in answers, and what a mask means that a client sends back.

In doubt a property is a secret. Source of the rule: published leaks came from masks that knew exact key names only
(camelCase, prefixed or unknown keys slipped through).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache

from metalake.errors import Invalid

MASK = "******"

# Compared with the key's letters and digits alone, so that case, dashes, dots and prefixes make no difference.
SECRET_PARTS = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "accesskey",
    "privatekey",
    "accountkey",
    "sharedkey",
    "apikey",
    "connectionstring",
    "authorization",
    "kerberosticket",
    "webhook",  # whoever has its URL can call it
    "clientassertion",
)
SECRET_ENDINGS = ("encryptionkey", "signingkey", "masterkey", "ssekey", "hmackey", "cookie")
SHORT = 100  # characters of a key about which the answer is remembered
SECRET_WORDS = frozenset({"pwd", "pass", "sas", "ugi"})

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

# Each pattern starts at the start of a word or ends at the first separator, so that matching takes linear time.
CREDENTIAL_FORMS = (
    re.compile(r"://[^/\s@:]*:[^/\s@]*@"),  # a URL with a password in it
    re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}-----"),  # PEM
    re.compile(r"(?<![\w-])eyJ[\w-]+\.[\w-]+\."),  # JWT and JWE
    re.compile(r"(?<!\w)(?:AKIA|ASIA)[A-Z0-9]{16}(?!\w)"),  # an AWS access key
    re.compile(r"^\s{0,8}(?:bearer|basic) \S", re.IGNORECASE),  # an Authorization header
    re.compile(r"(?:password|pwd|secret|token|accountkey|accesskey|signature|(?<!\w)sig)=[^&;\s]", re.IGNORECASE),
)


def is_secret(key: str, value: object, declared: Collection[str] = ()) -> bool:
    """Whether a property must not be shown: its provider declares it secret, or its name or value is a credential's."""
    return key in declared or _names_secret(key) or any(form.search(str(value)) for form in CREDENTIAL_FORMS)


def mask(properties: Mapping[str, str], declared: Collection[str] = ()) -> dict[str, str]:
    """The properties as they may be shown, each secret's value replaced by `******`."""
    return {key: MASK if is_secret(key, value, declared) else value for key, value in properties.items()}


def sends_mask_back(
    key: str, value: str | None, current: Mapping[str, str], declared: Collection[str] = (), *, kind: str = "property"
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
    letters = re.sub(r"[\W_]", "", key).lower()
    if letters.endswith(SECRET_ENDINGS) or any(part in letters for part in SECRET_PARTS):
        return True
    return not SECRET_WORDS.isdisjoint(word.lower() for word in WORD.findall(key))
