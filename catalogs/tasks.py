"""What follows a commit in this app: the outbox hands each row to a service."""

from catalogs.services import tables
from metalake import outbox


def register() -> None:
    outbox.handles(tables.PURGE, tables.purge_table)
