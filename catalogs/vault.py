"""Envelope encryption of secret properties: a data key per catalog, wrapped by a master key of the key ring.

The catalog and property are authenticated with each value, which decrypts only for them. In a catalog's `properties`
exactly the encrypted secrets are masked (docs/decisions/secrets-at-rest.md).
"""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from secrets import token_bytes
from typing import NamedTuple

from django.db import transaction

from catalogs import keyring
from catalogs.keyring import MasterKey, UnknownKey
from catalogs.models import Catalog, CatalogSecrets
from catalogs.secrets import MASK
from metalake.errors import NotFound, ProviderUnavailable
from metalake.shared_settings import Difference

NONCE_BYTES = 12
LONGEST_PAUSE = 0.2  # seconds between two batches of a rotation


def properties_of(catalog_id: int) -> dict[str, str]:
    """A catalog's properties for its provider, with decrypted secrets; one statement.

    Raises NotFound if the catalog does not exist, ProviderUnavailable if a secret cannot be decrypted.
    """
    return provider_and_properties(catalog_id)[1]


def provider_and_properties(catalog_id: int) -> tuple[str, dict[str, str]]:
    """The name of a catalog's provider, and its properties as from `properties_of`; one statement."""
    provider, properties, secrets = _stored(catalog_id)
    return provider, merged(properties, secrets)


def opened(catalog_id: int, properties: Mapping[str, str]) -> dict[str, str]:
    """These properties, with each mask replaced by the catalog's secret; decrypts only those.

    Raises what `properties_of` raises.
    """
    if MASK not in properties.values():
        return dict(properties)
    return merged(properties, _stored(catalog_id)[2])


def seal(catalog_id: int, secrets: Mapping[str, str]) -> None:
    """Replace the catalog's secrets, with a new data key, in the caller's transaction."""
    rows = CatalogSecrets.objects.filter(pk=catalog_id)
    if not secrets:
        rows.delete()
        return
    if not keyring.exists():
        _make_ring()
    fields = sealed(catalog_id, secrets)
    if not rows.update(**fields):
        CatalogSecrets.objects.create(catalog_id=catalog_id, **fields)


def sealed(catalog_id: int, secrets: Mapping[str, str]) -> dict[str, object]:
    """The fields of a CatalogSecrets row with these secrets."""
    master, data_key = keyring.newest(), token_bytes(keyring.KEY_BYTES)
    values = {key: _encrypt(data_key, value.encode(), _place(catalog_id, key)) for key, value in secrets.items()}
    return {"master_key": master.id, "data_key": _wrap(master, catalog_id, data_key), "sealed": values}


def master_keys_in_use() -> set[str]:
    """The ids of all master keys that wrap a data key."""
    return set(CatalogSecrets.objects.values_list("master_key", flat=True).distinct())


def compare() -> Iterator[Difference]:
    """Yield a Difference if this process's key ring lacks a master key of the stored secrets."""
    if reason := _lacks(master_keys_in_use()):
        yield Difference("calls to outside catalogs", reason)


def lacks_key_of(catalog_id: int) -> str:
    """Why this process, unlike others perhaps, cannot decrypt a catalog's secrets; "" if it can or there are none."""
    return _lacks(CatalogSecrets.objects.filter(pk=catalog_id).values_list("master_key", flat=True))


def _lacks(key_ids: Iterable[str]) -> str:
    for key_id in sorted(key_ids):
        try:
            keyring.key_of(key_id)
        except UnknownKey:
            return (
                f"The key ring of this process ({keyring.SETTING}) lacks the master key {key_id}, which secrets of "
                "this store are sealed by: give it the ring of the other nodes."
            )
        except ProviderUnavailable as unusable:
            return unusable.message
    return ""


@dataclass(frozen=True)
class Progress:
    """Progress of a key rotation: of `total` data keys, `done` are wrapped by the newest master key."""

    total: int
    done: int
    stuck: tuple[str, ...]  # why data keys cannot be unwrapped


def rewrap(batch: int) -> Iterator[Progress]:
    """Rewrap all data keys with the newest master key, online, one transaction per batch."""
    newest, after, stuck = keyring.newest(), 0, list[str]()
    others = CatalogSecrets.objects.exclude(master_key=newest.id)
    while True:
        started = time.monotonic()
        with transaction.atomic():
            # A locked row is being re-encrypted or dropped; waiting for many of them could deadlock.
            free = others.filter(pk__gt=after).select_for_update(skip_locked=True, of=("self",))
            rows = list(free.select_related("catalog").order_by("pk")[:batch])
            stuck += [why for row in rows if (why := _rewrap(row, newest))]
            CatalogSecrets.objects.bulk_update(rows, ["master_key", "data_key"])
        total = CatalogSecrets.objects.count()
        yield Progress(total, total - others.count(), tuple(stuck))
        if not rows:
            return
        after = rows[-1].pk
        # Pause: SQLite's writers only get in by retrying.
        time.sleep(min(time.monotonic() - started, LONGEST_PAUSE))


class SealedSecrets(NamedTuple):
    """The encrypted secrets of a catalog, with its name."""

    catalog_id: int
    catalog: str
    master_key: str
    data_key: str
    sealed: dict[str, str]


def _rewrap(row: CatalogSecrets, newest: MasterKey) -> str | None:
    """Rewrap a row's data key with the newest master key, in memory. Returns why it cannot be unwrapped, or None."""
    try:
        data_key = _data_key(SealedSecrets(row.pk, row.catalog.name, row.master_key, row.data_key, row.sealed))
    except ProviderUnavailable as failure:
        return failure.message
    row.master_key, row.data_key = newest.id, _wrap(newest, row.pk, data_key)
    return None


def _stored(catalog_id: int) -> tuple[str, dict[str, str], SealedSecrets]:
    """The provider's name, the properties and the encrypted secrets of a catalog; one statement. Raises NotFound."""
    columns = ("provider", "properties", "pk", "name", "secrets__master_key", "secrets__data_key", "secrets__sealed")
    for provider, properties, *row in Catalog.objects.filter(pk=catalog_id).values_list(*columns):
        return provider, properties, SealedSecrets(*row)
    raise NotFound("The catalog does not exist.", kind="catalog")


def merged(properties: Mapping[str, str], secrets: SealedSecrets) -> dict[str, str]:
    """The properties, with masks replaced by the decrypted secrets. Raises ProviderUnavailable if decryption fails."""
    masked = [key for key, value in properties.items() if value == MASK]
    if not masked:
        return dict(properties)
    if missing := [key for key in masked if key not in (secrets.sealed or {})]:
        raise _lost(f"The secret {missing[0]!r} of catalog {secrets.catalog} is not in the store; set it anew.")
    data_key = _data_key(secrets)
    return {**properties, **{key: _open(secrets, key, data_key) for key in masked}}


def _open(secrets: SealedSecrets, key: str, data_key: bytes) -> str:
    value = _decrypt(data_key, secrets.sealed[key], _place(secrets.catalog_id, key))
    if value is None:
        raise _lost(f"The secret {key!r} of catalog {secrets.catalog} was sealed for another place; set it anew.")
    return value.decode()


def _data_key(secrets: SealedSecrets) -> bytes:
    try:
        master = keyring.key_of(secrets.master_key)
    except UnknownKey:
        raise _lost(
            f"The secrets of catalog {secrets.catalog} are sealed under master key {secrets.master_key}, which the key "
            f"ring of this server ({keyring.SETTING}) lacks. Put that key back into the ring; if it is lost, set all "
            "secrets of the catalog anew in one alteration."
        ) from None
    data_key = _decrypt(master.key, secrets.data_key, _about(secrets.catalog_id))
    if data_key is None:
        raise _lost(
            f"The secrets of catalog {secrets.catalog} were sealed for another catalog, or under another master key "
            f"called {secrets.master_key}. Set all of them anew in one alteration."
        )
    return data_key


def _wrap(master: MasterKey, catalog_id: int, data_key: bytes) -> str:
    return _encrypt(master.key, data_key, _about(catalog_id))


def _about(catalog_id: int) -> str:
    return f"data key of catalog {catalog_id}"


def _place(catalog_id: int, key: str) -> str:
    return f"property of catalog {catalog_id}: {key}"


def _make_ring() -> None:
    # The ring may be missing on this node only; a new one could not decrypt existing secrets.
    for master_key in sorted(master_keys_in_use()):
        raise _lost(
            f"The key ring of this server ({keyring.SETTING}) is missing, while secrets are sealed under master key "
            f"{master_key}. Put the file back from your copy, or from the node that made it."
        )
    keyring.make()


def _lost(message: str) -> ProviderUnavailable:
    return ProviderUnavailable(message, kind="catalog", retryable=False)


# AES-256-GCM, stored as base64(nonce + ciphertext). The library is imported at first use.


def _encrypt(key: bytes, text: bytes, about: str) -> str:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = token_bytes(NONCE_BYTES)
    return b64encode(nonce + AESGCM(key).encrypt(nonce, text, about.encode())).decode()


def _decrypt(key: bytes, sealed: str, about: str) -> bytes | None:
    """The plaintext; None if the key or the authenticated data (`about`) differ."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        raw = b64decode(sealed, validate=True)
        return AESGCM(key).decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], about.encode())
    except (InvalidTag, ValueError):
        return None
