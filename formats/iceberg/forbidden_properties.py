"""Property keys that users may not set on schemas, tables and views.

Iceberg's libraries read a table's properties as configuration: some name a class to import and call, some point
the storage client at another endpoint or give it other keys, and they win over the catalog's own. Such keys
belong to the catalog. Any other key is stored as it is, known to us or not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from metalake.errors import Invalid, TooLarge

MAX_KEYS = 1_000
MAX_KEY_BYTES = 1_024
MAX_VALUE_BYTES = 64 * 1024

# Configuration of storages, catalogs and their clients (Iceberg's Java and Python libraries).
RESERVED_PREFIXES = (
    "adls.",
    "auth.",
    "aws.",
    "azure.",
    "bigquery.",
    "client.",
    "cos.",
    "credentials.",
    "dynamodb.",
    "ecs.",
    "fs.",
    "gcp.",
    "gcs.",
    "glue.",
    "gravitino.bypass.",
    "hadoop.",
    "hdfs.",
    "header.",
    "hf.",
    "http-client.",
    "hive.metastore.kerberos.",
    "hive.metastore.sasl.",
    "hive.metastore.uris",
    "jdbc.",
    "kms.",
    "lakeformation.",
    "oauth2.",
    "obs.",
    "oss.",
    "rest.",
    "s3.",
    "s3tables.",
    "signer.",
    "ssl.",
    "token.",
)
RESERVED_KEYS = frozenset(
    {
        "auth",
        "botocore-session",
        "credential",
        "default-netloc",
        "default-scheme",
        "oauth2-server-uri",
        "ssl",
        "storage-handler",
        "token",
        "token-exchange-enabled",
        "token-refresh-enabled",
        "ugi",
        "uri",
        "warehouse",
    }
)


def check_properties(properties: Mapping[str, str]) -> None:
    """Raise Invalid, naming the key, unless users may set all of these; TooLarge for too many or too long ones."""
    check_limits(properties)
    for key in properties:
        check_key(key)


def check_limits(properties: Mapping[str, str]) -> None:
    """Raise Invalid for a malformed property, TooLarge if they are too many or too long; any key is allowed."""
    if len(properties) > MAX_KEYS:
        raise TooLarge(f"There are {len(properties)} properties; at most {MAX_KEYS} are allowed", kind="property")
    for key, value in properties.items():
        _check_form(key)
        _check_value(key, value)


def check_key(key: str) -> None:
    """Raise Invalid for a malformed key and for one that only the catalog may set."""
    _check_form(key)
    if loads_class(key):
        raise Invalid(f"Property {key!r} names a class to load; only the server may choose classes", kind="property")
    spelled = _one_spelling(key)
    if spelled in RESERVED_KEYS or spelled.startswith(RESERVED_PREFIXES):
        raise Invalid(f"Property {key!r} configures access to storage; it belongs on the catalog", kind="property")


def _check_form(key: str) -> None:
    if not isinstance(key, str) or not key:
        raise Invalid("A property must have a name", kind="property")
    if len(key.encode("utf-8", "surrogatepass")) > MAX_KEY_BYTES:
        raise TooLarge(f"The name of property {key[:64]!r}... is over {MAX_KEY_BYTES} bytes", kind="property")
    if not key.isprintable() or key != key.strip():
        raise Invalid(f"Property {key!r} has a control character in its name, or a space around it", kind="property")


def _check_value(key: str, value: str) -> None:
    if not isinstance(value, str):
        raise Invalid(f"Property {key!r} must be text, not {type(value).__name__}", kind="property")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise Invalid(f"Property {key!r} is not valid Unicode text", kind="property") from None
    if size > MAX_VALUE_BYTES:
        raise TooLarge(f"Property {key!r} is over {MAX_VALUE_BYTES} bytes", kind="property")


def loads_class(key: str) -> bool:
    """Whether a key names a class to load: every such key of the Iceberg libraries ends in `impl`."""
    letters = re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", key)).lower()
    return letters.endswith("impl") or ".impl." in key.lower()


def _one_spelling(key: str) -> str:
    """One spelling of a key: some loaders ignore case, treat `-` and `_` alike, and read `__` as a dot."""
    return unicodedata.normalize("NFKC", key).lower().replace("__", ".").replace("_", "-")
