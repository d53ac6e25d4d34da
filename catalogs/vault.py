"""Secret properties at rest: each sealed by its catalog's data key, and that wrapped by a master key of the ring.

What a seal is about is part of it, so it opens for its own catalog and property alone. A catalog's `properties`
hold the mask where a secret is kept, and nowhere else (docs/decisions/secrets-at-rest.md).
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
from metalake.sharing import Difference

NONCE_BYTES = 12
LONGEST_PAUSE = 0.2  # seconds between two batches of a rotation


def properties_of(catalog_id: int) -> dict[str, str]:
    """A catalog's properties as its provider needs them, secrets open; one statement.

    Raises NotFound where the catalog is gone, ProviderUnavailable where a secret does not open.
    """
    properties, kept = _kept(catalog_id)
    return merged(properties, kept)


def opened(catalog_id: int, properties: Mapping[str, str]) -> dict[str, str]:
    """These properties, each mask among them replaced by the secret that the catalog keeps.

    Raises as `properties_of`; secrets that are not asked for need not open.
    """
    if MASK not in properties.values():
        return dict(properties)
    return merged(properties, _kept(catalog_id)[1])


def seal(catalog_id: int, secrets: Mapping[str, str]) -> None:
    """Make these the secrets of the catalog, under a data key of their own, in the caller's transaction."""
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
    """The fields of a row that keeps these secrets."""
    master, data_key = keyring.newest(), token_bytes(keyring.KEY_BYTES)
    values = {key: _encrypt(data_key, value.encode(), _place(catalog_id, key)) for key, value in secrets.items()}
    return {"master_key": master.id, "data_key": _wrap(master, catalog_id, data_key), "sealed": values}


def master_keys_in_use() -> set[str]:
    """The ids of the master keys that some data key is wrapped by."""
    return set(CatalogSecrets.objects.values_list("master_key", flat=True).distinct())


def compare() -> Iterator[Difference]:
    """Where the key ring of this process is not the one that this store's secrets are sealed by."""
    if reason := _lacks(master_keys_in_use()):
        yield Difference("calls to outside catalogs", reason)


def lacks_key_of(catalog_id: int) -> str:
    """Why this process does not open the secrets of a catalog, as another may; "" where it does, or there are none."""
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
    """How far a rotation came: of `total` data keys, `done` are under the newest master key."""

    total: int
    done: int
    stuck: tuple[str, ...]  # why data keys do not open


def rewrap(batch: int) -> Iterator[Progress]:
    """Wrap all data keys by the newest master key, a transaction for each batch, while others read and write."""
    newest, after, stuck = keyring.newest(), 0, list[str]()
    others = CatalogSecrets.objects.exclude(master_key=newest.id)
    while True:
        started = time.monotonic()
        with transaction.atomic():
            # Whoever holds a row seals it anew or drops it; waiting for many of them could end in a deadlock.
            free = others.filter(pk__gt=after).select_for_update(skip_locked=True, of=("self",))
            rows = list(free.select_related("catalog").order_by("pk")[:batch])
            stuck += [why for row in rows if (why := _rewrap(row, newest))]
            CatalogSecrets.objects.bulk_update(rows, ["master_key", "data_key"])
        total = CatalogSecrets.objects.count()
        yield Progress(total, total - others.count(), tuple(stuck))
        if not rows:
            return
        after = rows[-1].pk
        # SQLite's writers get their turn by asking again and again.
        time.sleep(min(time.monotonic() - started, LONGEST_PAUSE))


class Kept(NamedTuple):
    """A row of secrets, with the name of its catalog."""

    catalog_id: int
    catalog: str
    master_key: str
    data_key: str
    sealed: dict[str, str]


def _rewrap(row: CatalogSecrets, newest: MasterKey) -> str:
    """Change the row in memory; says why where its data key does not open."""
    try:
        data_key = _data_key(Kept(row.pk, row.catalog.name, row.master_key, row.data_key, row.sealed))
    except ProviderUnavailable as failure:
        return failure.message
    row.master_key, row.data_key = newest.id, _wrap(newest, row.pk, data_key)
    return ""


def _kept(catalog_id: int) -> tuple[dict[str, str], Kept]:
    """The properties and the secrets of a catalog as they were at one moment."""
    columns = ("properties", "pk", "name", "secrets__master_key", "secrets__data_key", "secrets__sealed")
    for properties, *row in Catalog.objects.filter(pk=catalog_id).values_list(*columns):
        return properties, Kept(*row)
    raise NotFound("The catalog does not exist.", kind="catalog")


def merged(properties: Mapping[str, str], kept: Kept) -> dict[str, str]:
    """The properties, each mask replaced by what is kept for it. Raises ProviderUnavailable where that fails."""
    masked = [key for key, value in properties.items() if value == MASK]
    if not masked:
        return dict(properties)
    if missing := [key for key in masked if key not in (kept.sealed or {})]:
        raise _lost(f"The secret {missing[0]!r} of catalog {kept.catalog} is not in the store; set it anew.")
    data_key = _data_key(kept)
    return {**properties, **{key: _open(kept, key, data_key) for key in masked}}


def _open(kept: Kept, key: str, data_key: bytes) -> str:
    value = _decrypt(data_key, kept.sealed[key], _place(kept.catalog_id, key))
    if value is None:
        raise _lost(f"The secret {key!r} of catalog {kept.catalog} was sealed for another place; set it anew.")
    return value.decode()


def _data_key(kept: Kept) -> bytes:
    try:
        master = keyring.key_of(kept.master_key)
    except UnknownKey:
        raise _lost(
            f"The secrets of catalog {kept.catalog} are sealed under master key {kept.master_key}, which the key ring "
            f"of this server ({keyring.SETTING}) lacks. Put that key back into the ring; if it is lost, set all "
            "secrets of the catalog anew in one alteration."
        ) from None
    data_key = _decrypt(master.key, kept.data_key, _about(kept.catalog_id))
    if data_key is None:
        raise _lost(
            f"The secrets of catalog {kept.catalog} were sealed for another catalog, or under another master key "
            f"called {kept.master_key}. Set all of them anew in one alteration."
        )
    return data_key


def _wrap(master: MasterKey, catalog_id: int, data_key: bytes) -> str:
    return _encrypt(master.key, data_key, _about(catalog_id))


def _about(catalog_id: int) -> str:
    return f"data key of catalog {catalog_id}"


def _place(catalog_id: int, key: str) -> str:
    return f"property of catalog {catalog_id}: {key}"


def _make_ring() -> None:
    # A ring that is only missing here must not be replaced by one that opens nothing.
    for master_key in sorted(master_keys_in_use()):
        raise _lost(
            f"The key ring of this server ({keyring.SETTING}) is missing, while secrets are sealed under master key "
            f"{master_key}. Put the file back from your copy, or from the node that made it."
        )
    keyring.make()


def _lost(message: str) -> ProviderUnavailable:
    return ProviderUnavailable(message, kind="catalog", retryable=False)


# AES-256-GCM; what is kept is base64 of the nonce and what it returns. The library is loaded with the first secret.


def _encrypt(key: bytes, text: bytes, about: str) -> str:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = token_bytes(NONCE_BYTES)
    return b64encode(nonce + AESGCM(key).encrypt(nonce, text, about.encode())).decode()


def _decrypt(key: bytes, kept: str, about: str) -> bytes | None:
    """None for what was not sealed by this key about this."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        raw = b64decode(kept, validate=True)
        return AESGCM(key).decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], about.encode())
    except (InvalidTag, ValueError):
        return None
