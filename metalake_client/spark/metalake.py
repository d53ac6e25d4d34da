"""The metalake of a Spark session: `session.metalake`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from metalake_client.engines.spark import SparkCatalog
from metalake_client.spark.views import Views


@dataclass(frozen=True)
class MetalakeOfSession:
    """Its catalogs, as configured in Spark; `print(session.metalake)` shows each one's access path and notes."""

    url: str
    name: str
    catalogs: tuple[SparkCatalog, ...]
    views: Views

    def view(self, catalog: str, schema: str, name: str) -> str:
        """The name by which SQL reads a view, which is made where Spark does not have it by its own.

        `schema` is as Metalake spells it, `sales:emea`. Raises Failure, with the dialects that there are, for a view
        that Spark cannot run.
        """
        return self.views.name_of(catalog, schema, name)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"Metalake {self.name} at {self.url}"
        for each in self.catalogs:
            yield f"{each.name}: {each.way or 'not there'}"
            if each.rights:
                yield f"  rights: {each.rights}"
            yield from (f"  {note[0].upper()}{note[1:]}" for note in each.notes)
