"""Remote stores of views; `providers.stores` has those of schemas and tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from formats.native.view_definition import ViewDefinition
from metalake.errors import Unsupported
from metalake.kinds import Kind
from providers.metadata_files import MetadataFiles
from providers.remote_objects import Json, Levels, NewTable, Page, Remote, ViewEntry
from providers.stores import Ending, OutcomeUnknowable, Read, RemotePointed, RemoteTabulars


class RemoteViewPointers(RemotePointed):
    """Iceberg views: entries that point to metadata."""

    @abstractmethod
    def commit(
        self, schema: Levels, view: str, location: str, previous: str, marker: str = "", by_owner: bool = False
    ) -> Remote:
        """Compare-and-swap the view's pointer. Raises Conflict if it no longer points to `previous`."""

    @abstractmethod
    def named_places(self, definition: Json, plan: Json | None = None) -> Sequence[str]:
        """The locations of a view's current or planned files, from its definition or plan."""

    def outcome(self, verb: str, arguments: Mapping[str, Any], marker: str, read: Read) -> Ending:
        """Decided by the marker, since view metadata has no metadata log."""
        return self.provider.views.outcome(verb, arguments, marker, read)


class NoViewPointers(RemoteViewPointers):
    """Iceberg views of a system where none are written. Raises Unsupported."""

    def commit(
        self, schema: Levels, view: str, location: str, previous: str, marker: str = "", by_owner: bool = False
    ) -> Remote:
        raise self._refusal()

    def location(self, definition: Json) -> str | None:
        return None

    def named_places(self, definition: Json, plan: Json | None = None) -> Sequence[str]:
        return []

    def files(self, *places: str) -> MetadataFiles:
        raise self._refusal()

    def place(self, schema: Remote, name: str, asked: str | None) -> str:
        raise self._refusal()

    def draft(self, schema: Remote, name: str, metadata: Json, location: str | None = None) -> NewTable:
        raise self._refusal()

    def _refusal(self) -> Unsupported:
        return Unsupported(
            f"No engine looks for Iceberg views in {self.label}, so none is written there: create the view over the "
            "native API in the form of an engine, or in an Iceberg catalog of Metalake.",
            kind=Kind.VIEW,
        )


class RemoteViews(RemoteTabulars):
    """Views, listed and loaded with the tables of their schema; `pointers` is the store of Iceberg views."""

    kind = Kind.VIEW
    listed_as: ClassVar[Kind | None] = Kind.TABLE
    pointers: ClassVar[type[RemoteViewPointers]] = NoViewPointers

    @abstractmethod
    def list(self, schema: Levels, page: str | None = None) -> Page:
        """A page of views only, ordered by name, with definitions. Raises NotFound for a missing schema."""

    @abstractmethod
    def read(self, definition: Json) -> ViewEntry:
        """Parse a definition. Raises Unsupported with the reason if it cannot be read."""

    @abstractmethod
    def create(self, schema: Levels, view: str, definition: Json, marker: str = "") -> Remote: ...

    @abstractmethod
    def alter(self, schema: Levels, view: str, expected: Json, version: str, marker: str = "") -> Remote:
        """Replace the view's definition by `expected`. Raises Conflict if its version is not `version`."""

    @abstractmethod
    def rename(self, schema: Levels, view: str, to_schema: Levels, to_view: str, identity: str) -> Remote: ...

    @abstractmethod
    def drop(self, schema: Levels, view: str, identity: str, version: str | None = None) -> None:
        """Drop the view. With `version`, raises Conflict if it has changed."""

    @abstractmethod
    def draft(self, schema: Remote, name: str, wanted: ViewDefinition, owner: str) -> Json:
        """A new view's definition. Raises Invalid and Unsupported, naming what the system cannot store."""

    @abstractmethod
    def altered(self, definition: Json, wanted: ViewDefinition, owner: str) -> Json:
        """The view's definition changed to `wanted`, with `owner` as definer if that makes it a DEFINER view.

        Raises as `draft` does.
        """

    def check(self, schema: Levels, view: str) -> Json | None:
        """What is wrong with a view to the system's own planner, which runs nothing; None where that cannot be told.

        It has `engine`, the system's name with its version, and `problems`, each a text that names no object.
        """
        return None

    @property
    def only_read(self) -> str:
        """Why views are only read here; empty where they are written."""
        return ""

    def dropping(self, schema: Levels, view: Remote) -> tuple[str, Json]:
        """The verb and arguments of the call that drops a view. Raises Unsupported if the system cannot."""
        return "drop_view", {"schema": schema, "view": view.name, "identity": view.identity}

    def discard(self, definition: Json, plan: Json | None = None) -> None:
        """Remove the files that `create` wrote for a view that was not created in the end."""

    def files(self, *places: str) -> MetadataFiles:
        """The metadata files of Iceberg views below these locations or others that the catalog allows."""
        raise Unsupported(f"{self.label} has no Iceberg views.", kind=Kind.VIEW)


class NoNewPointers(NoViewPointers):
    """Iceberg views of a system whose views are all read-only."""

    def _refusal(self) -> Unsupported:
        return Unsupported(self.provider.views.only_read, kind=Kind.VIEW)


class ReadOnlyViews(RemoteViews):
    """Read-only views. Raises Unsupported for every write."""

    pointers = NoNewPointers

    def create(self, schema: Levels, view: str, definition: Json, marker: str = "") -> Remote:
        raise self._refusal()

    def alter(self, schema: Levels, view: str, expected: Json, version: str, marker: str = "") -> Remote:
        raise self._refusal()

    def rename(self, schema: Levels, view: str, to_schema: Levels, to_view: str, identity: str) -> Remote:
        raise self._refusal()

    def drop(self, schema: Levels, view: str, identity: str, version: str | None = None) -> None:
        raise self._refusal()

    def draft(self, schema: Remote, name: str, wanted: ViewDefinition, owner: str) -> Json:
        raise self._refusal()

    def altered(self, definition: Json, wanted: ViewDefinition, owner: str) -> Json:
        raise self._refusal()

    def renaming(
        self, schema: Levels, to_schema: Levels, to_view: str, view: Remote, marker: str
    ) -> Sequence[tuple[str, Json]]:
        raise self._refusal()

    def dropping(self, schema: Levels, view: Remote) -> tuple[str, Json]:
        raise self._refusal()

    def is_marked(self, view: Remote, marker: str) -> bool:
        raise OutcomeUnknowable("None of these views was written here.")

    @property
    def only_read(self) -> str:
        return self._refusal().message

    def _refusal(self) -> Unsupported:
        return Unsupported(
            f"Views of {self.label} are read here, not written: write them with the engine that reads them, or create "
            "the view in an Iceberg catalog.",
            kind=Kind.VIEW,
        )
