"""Purge: delete the files of a dropped table in the background."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import transaction

from authz import snapshot
from authz.actor import NOBODY, Actor
from catalogs import vault
from catalogs.models import Catalog, ReservedPlace, Table
from catalogs.services import claims, shared_folders
from catalogs.services.provider_of import files_in
from formats.iceberg.purge import Purged
from metalake.events import event_of, record
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.outbox import NotHere

log = logging.getLogger(__name__)

PURGE = "table.purge"


def purge_of(actor: Actor, table: Located, uuid: UUID, places: Sequence[ReservedPlace]) -> dict[str, Any]:
    """The outbox message of a purge: the table's metadata file and its places, current and former."""
    return {
        "catalog_id": table.catalog.id,
        "metadata_location": table.metadata_location,
        "table_uuid": str(uuid),
        "places": [row.location for row in places],
        "reserved": [row.pk for row in places],
        "table": {"id": table.id, "full_name": table.full_name, "metalake_id": table.metalake.id, "by": actor.name},
    }


def purge_table(payload: dict[str, Any]) -> int:
    """Delete the files of a dropped table, and return their number. Idempotent.

    A table that was registered again keeps its files. Reservations are deleted once none of the table's files is left.
    Raises NotHere if this process cannot reach the files' folder or decrypt the catalog's secrets, ProviderUnavailable
    if no process can reach the bucket.
    """
    catalog = Catalog.objects.filter(pk=payload["catalog_id"]).first()
    if catalog is None or Table.objects.filter(uuid=payload["table_uuid"]).exists():
        return 0
    if reason := vault.lacks_key_of(catalog.pk):
        raise NotHere(reason)
    own_files = files_in(catalog)
    own, reservations = payload.get("places"), payload.get("reserved") or []  # messages of older versions have neither
    shared_folders.require_here([payload["metadata_location"], *(own or [])], own_files.allowed)
    purged = own_files.purge(payload["metadata_location"], own, claims.of_others(own or [], reservations, catalog.pk))
    if "table" in payload:
        _note_purge(payload["table"], purged, reservations)
    return purged.deleted


def _note_purge(table: dict[str, Any], purged: Purged, reservations: Sequence[int]) -> None:
    """Record the purge with its counts, and delete the table's reservations if none of its files is left."""
    log.info("Purged %s: %s", dotted(table["full_name"]), purged)
    by = Actor(NOBODY, table["by"], snapshot.latest())
    with transaction.atomic():
        if not purged.left_behind:
            ReservedPlace.objects.filter(pk__in=reservations).delete()
        name, metalake_id = table["full_name"], table["metalake_id"]
        counts: dict[str, Any] = {
            "deleted": purged.deleted,
            "foreign": purged.foreign,
            "kept": purged.left_behind,
        }
        record(event_of(by, "table.purged", Kind.TABLE, table["id"], name, metalake_id, **counts))
