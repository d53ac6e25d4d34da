"""Catalogs that keep gadgets: here, or on a shelf, which is a folder with a file for each gadget."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from metalake.errors import NotFound
from metalake.kinds import CatalogType, Kind
from providers.base import Offer, Provider, Storage
from providers.iceberg.provider import IcebergProvider
from providers.remote_objects import Levels, Page, Remote
from providers.stores import Ending, OutcomeUnknowable, Read, RemoteStore
from tests.providers.half import HalfMemoryProvider


class RemoteGadgets(RemoteStore):
    def list(self, schema: Levels, page: str | None = None) -> Page:
        return Page([self._read(path) for path in sorted(self._folder(schema).glob("*"))])

    def load(self, schema: Levels, gadget: str) -> Remote:
        path = self._folder(schema) / gadget
        if not path.is_file():
            raise NotFound(f"Gadget {gadget} does not exist.", kind=Kind.GADGET)
        return self._read(path)

    def outcome(self, verb: str, arguments: Mapping[str, Any], marker: str, read: Read) -> Ending:
        raise OutcomeUnknowable("Nothing is written to a shelf.")

    def _folder(self, schema: Levels) -> Path:
        return Path(self.provider.properties["shelf"], *schema)

    def _read(self, path: Path) -> Remote:
        text = path.read_text()
        return Remote(path.name, {"wheels": text}, identity=path.name, version=text, kind=Kind.GADGET)


class WorkshopProvider(IcebergProvider):
    """Tables here; gadgets on the shelf that the properties name, or here where they name none."""

    label = "Workshop"

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        here, there = Offer(storage=Storage.MANAGED), Offer(storage=Storage.EXTERNAL, remote=RemoteGadgets)
        return {**super().offers(properties), Kind.GADGET: there if "shelf" in properties else here}


class ToolboxProvider(Provider):
    """Schemas with gadgets and nothing else, in catalogs of a type of their own."""

    label = "Toolbox"
    catalog_type = CatalogType.TOOLBOX
    reaches_out = False

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        return dict.fromkeys((Kind.SCHEMA, Kind.GADGET), Offer(storage=Storage.MANAGED))

    def test_connection(self) -> None:
        """There is no connection."""


class HalfWorkshopProvider(HalfMemoryProvider):
    """Tables in another system, gadgets here."""

    label = "Half workshop"

    @classmethod
    def offers(cls, properties: Mapping[str, str]) -> Mapping[Kind, Offer]:
        return {**super().offers(properties), Kind.GADGET: Offer(storage=Storage.MANAGED)}
