"""Null remote stores for a system without partitions or Iceberg tables: remote calls raise Unsupported."""

from __future__ import annotations

from formats.native.partitions import IdentityPartition
from metalake.errors import Unsupported
from metalake.kinds import Kind
from providers.metadata_files import MetadataFiles
from providers.remote_objects import PARTITION, Json, Levels, NewTable, Page, Remote
from providers.stores import RemotePartitions, RemotePointers


class NoPartitions(RemotePartitions):
    """Partitions of a system that has none. Raises Unsupported."""

    def list(self, schema: Levels, table: str, page: str | None = None) -> Page:
        raise self._none()

    def load(self, schema: Levels, table: str, partition: str) -> Remote:
        raise self._none()

    def add(self, schema: Levels, table: str, definition: Json, by_owner: bool = False) -> Remote:
        raise self._none()

    def drop(self, schema: Levels, table: str, partition: str, by_owner: bool = False) -> dict[str, str] | None:
        raise self._none()

    def draft(self, table: Json, asked: IdentityPartition) -> Json:
        raise self._none()

    def show(self, table: Json, definition: Json) -> Json:
        raise self._none()

    def _none(self) -> Unsupported:
        return Unsupported(f"{self.label} has no partitions.", kind=PARTITION)


class NoPointers(RemotePointers):
    """Iceberg pointers of a system without Iceberg tables. Raises Unsupported."""

    def commit(self, schema: Levels, table: str, location: str, previous: str, by_owner: bool = False) -> Remote:
        raise self._none()

    def location(self, definition: Json) -> str | None:
        return None

    def files(self, *places: str) -> MetadataFiles:
        raise self._none()

    def home_of(self, schema: Remote) -> str | None:
        return None

    def place(self, schema: Remote, name: str, asked: str | None) -> str:
        raise self._made_elsewhere()

    def draft(self, schema: Remote, name: str, metadata: Json, location: str | None = None) -> NewTable:
        raise self._made_elsewhere()

    def _none(self) -> Unsupported:
        return Unsupported(f"{self.label} has no Iceberg tables.", kind=Kind.TABLE)

    def _made_elsewhere(self) -> Unsupported:
        return Unsupported(f"{self.label}: Iceberg tables are made here by their engines.", kind=Kind.TABLE)
