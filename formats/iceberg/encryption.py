"""The table's encryption keys, each itself encrypted. Source: Iceberg spec, "Encryption Keys"."""

from __future__ import annotations

import base64
import binascii

from formats.iceberg.draft import Draft
from formats.iceberg.parsing import Json, as_text_map, get_object, get_text, has
from metalake.errors import Invalid


def add_encryption_key(draft: Draft, update: Json) -> None:
    """Store a key; an existing key with that id stays as it is."""
    key = get_object(update, "encryption-key")
    key_id = get_text(key, "key-id", "the encryption key")
    try:
        base64.b64decode(get_text(key, "encrypted-key-metadata", "the encryption key"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise Invalid("encrypted-key-metadata of the encryption key must be base64") from error
    if has(key, "encrypted-by-id"):
        get_text(key, "encrypted-by-id", "the encryption key")
    if has(key, "properties"):
        as_text_map(key["properties"], "properties of the encryption key")
    if key_id not in draft.by_id("encryption-keys"):
        draft.add("encryption-keys", key)


def remove_encryption_key(draft: Draft, update: Json) -> None:
    """Remove a key, if it exists."""
    draft.drop("encryption-keys", [get_text(update, "key-id")])
