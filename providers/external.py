"""What a provider is whose schemas and tables lie in another system: verbs that call it, and what its answers mean.

A verb takes and returns plain JSON, so that it may run in a worker. It raises our errors: NotFound, AlreadyExists,
NotEmpty, Invalid, Unsupported, Conflict (the object is no longer as the caller saw it), Unauthenticated to the remote
as ProviderUnavailable(retryable=False), ProviderBusy where the system throttles, ProviderUnavailable where the call
certainly did nothing, and for a write whose answer is lost OutcomeUnknown.

`by_owner` says that the catalog's owner asks, or its metalake's: to them all places of the catalog are open, and they
answer for what cannot be looked at. A verb that was to delete files and left them says why: `kept`.
"""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import orjson
from pydantic import Field, ValidationError, field_validator

from formats.hive.partitions import IdentityPartition
from formats.iceberg.folders import Ground
from formats.native.tables import CreateTableRequest
from metalake.errors import Invalid, Unsupported
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import Kind
from providers.base import Provider, Settings
from providers.metadata_files import MetadataFiles

METADATA_FILE = "metadata-file"  # among the formats of an Iceberg table whose metadata can be read
MARKER = "metalake.intent"  # the parameter that tells a remote object of ours from a namesake
PARTITION = "partition"
KEPT = "kept"
CACHE_TTL, REFRESH_INTERVAL = "cache-ttl", "refresh-interval"  # both in seconds
DIGITS = re.compile(r"[0-9]+")
Levels = list[str]


class ExternalSettings(Settings):
    """What every outside catalog can be told."""

    cache_ttl: int = Field(
        0,
        alias=CACHE_TTL,
        ge=0,
        le=86_400,
        description="For how many seconds an answer of the outside system is good; 0 asks it every time.",
    )
    refresh_interval: int | None = Field(
        None,
        alias=REFRESH_INTERVAL,
        ge=60,
        le=31_536_000,
        description="Every how many seconds the whole catalog is walked and compared; left out, only on demand.",
    )
    nested_namespaces: Literal["true", "false"] = Field(
        "false", alias="nested-namespaces", description="Whether schemas may lie inside schemas."
    )

    @field_validator("cache_ttl", "refresh_interval", mode="before")
    @classmethod
    def _in_digits(cls, given: Any) -> Any:
        """Of text no more is a number than what all who read it take for the same one."""
        if isinstance(given, str) and not DIGITS.fullmatch(given):
            raise ValueError("must be a whole number of seconds, in digits alone, such as 60")
        return given


def seconds_of(properties: Mapping[str, str], name: str) -> int | None:
    """What CACHE_TTL or REFRESH_INTERVAL says; unset, or unfit as an older row may hold it, is the default."""
    given = {name: properties[name]} if name in properties else {}
    try:
        read = ExternalSettings.model_validate(given)
    except ValidationError:
        read = ExternalSettings()
    return read.cache_ttl if name == CACHE_TTL else read.refresh_interval


@dataclass(frozen=True)
class Remote:
    """A schema, table, view or partition as its own system has it, by its name there.

    `formats` are the words by which lists tell tables apart, divided by commas; none where that takes the definition.
    """

    name: str
    definition: dict[str, Any]
    identity: str = ""
    version: str = ""
    kind: str = Kind.TABLE
    formats: str = ""

    def as_json(self) -> dict[str, Any]:
        return {**vars(self)}


@dataclass(frozen=True)
class Page:
    """A part of a listing; `next` asks for what follows."""

    items: list[Remote]
    next: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {"items": [item.as_json() for item in self.items], "next": self.next}


def kept(reason: str | None) -> dict[str, str] | None:
    """The answer of a verb that may delete files; `reason` says why it left them."""
    return {KEPT: reason} if reason else None


def digest(definition: Mapping[str, Any]) -> str:
    """The version of what has none of its own."""
    return hashlib.sha256(orjson.dumps(definition, option=orjson.OPT_SORT_KEYS)).hexdigest()[:40]


class ExternalProvider(Provider):
    """A schema is addressed by its levels there: one in a flat system, however deep it is here."""

    settings: ClassVar[type[Settings]] = ExternalSettings
    longest_name: ClassVar[int] = 255
    deletes_folders: ClassVar[bool] = False  # where a table of its own is dropped, whoever else's files are in them

    @property
    def freshness(self) -> int:
        """Seconds for which an answer is good."""
        return seconds_of(self.properties, CACHE_TTL) or 0

    # The outside system's own calls.

    @abstractmethod
    def list_schemas(self, page: str | None = None) -> Page: ...

    @abstractmethod
    def load_schema(self, schema: Levels) -> Remote: ...

    @abstractmethod
    def create_schema(self, schema: Levels, definition: dict[str, Any]) -> Remote: ...

    @abstractmethod
    def alter_schema(self, schema: Levels, definition: dict[str, Any], version: str) -> Remote: ...

    @abstractmethod
    def drop_schema(
        self, schema: Levels, identity: str, cascade: bool = False, by_owner: bool = False
    ) -> dict[str, str] | None:
        """What `kept` says of its tables' files."""

    @abstractmethod
    def list_tables(self, schema: Levels, page: str | None = None, whole: bool = False) -> Page:
        """By name; with `whole`, each with its definition, which may be empty otherwise."""

    @abstractmethod
    def load_table(self, schema: Levels, table: str) -> Remote: ...

    @abstractmethod
    def create_table(
        self, schema: Levels, table: str, definition: dict[str, Any], by_owner: bool = False
    ) -> Remote: ...

    @abstractmethod
    def alter_table(
        self, schema: Levels, table: str, definition: dict[str, Any], version: str, by_owner: bool = False
    ) -> Remote: ...

    @abstractmethod
    def rename_table(
        self, schema: Levels, table: str, to_schema: Levels, to_table: str, identity: str, by_owner: bool = False
    ) -> Remote: ...

    @abstractmethod
    def drop_table(
        self, schema: Levels, table: str, identity: str, purge: bool = False, by_owner: bool = False
    ) -> dict[str, str] | None:
        """What `kept` says of its files. Raises Unsupported where they are to be purged and must stay."""

    def commit_table(self, schema: Levels, table: str, location: str, previous: str, by_owner: bool = False) -> Remote:
        """Point an Iceberg table to new metadata. Raises Conflict where it does not point to `previous` any more."""
        raise Unsupported(f"{self.label} has no Iceberg tables.", kind=Kind.TABLE)

    def discard(self, definition: dict[str, Any]) -> None:
        """Remove what `create_table` wrote beside the system for a creation that came to nothing."""

    # Partitions are Remotes of kind PARTITION, called as `formats.hive.partitions` spells their values.

    def list_partitions(self, schema: Levels, table: str, page: str | None = None) -> Page:
        raise self._no_partitions()

    def load_partition(self, schema: Levels, table: str, partition: str) -> Remote:
        raise self._no_partitions()

    def add_partition(self, schema: Levels, table: str, definition: dict[str, Any], by_owner: bool = False) -> Remote:
        raise self._no_partitions()

    def drop_partition(
        self, schema: Levels, table: str, partition: str, by_owner: bool = False
    ) -> dict[str, str] | None:
        """With its files where the system keeps the table's; what `kept` says of them."""
        raise self._no_partitions()

    def _no_partitions(self) -> Unsupported:
        return Unsupported(f"{self.label} has no partitions.", kind=PARTITION)

    # What definitions mean; no call is made.

    @abstractmethod
    def new_schema(self, comment: str | None, properties: dict[str, str]) -> dict[str, Any]: ...

    @abstractmethod
    def altered_schema(
        self, definition: dict[str, Any], comment: str | None, properties: dict[str, str]
    ) -> dict[str, Any]: ...

    @abstractmethod
    def shown_schema(self, definition: dict[str, Any]) -> dict[str, Any]:
        """`comment` and `properties`."""

    @abstractmethod
    def new_table(self, schema: Remote, asked: CreateTableRequest) -> dict[str, Any]: ...

    @abstractmethod
    def altered_table(self, definition: dict[str, Any], updates: Sequence[Any]) -> dict[str, Any]: ...

    @abstractmethod
    def shown_table(self, definition: dict[str, Any]) -> dict[str, Any]:
        """The native wire's table without its name and audit."""

    def new_partition(self, table: dict[str, Any], asked: IdentityPartition) -> dict[str, Any]:
        """A partition's definition, `table` being the table's. Raises Invalid where it does not fit the table."""
        raise self._no_partitions()

    def shown_partition(self, table: dict[str, Any], definition: dict[str, Any]) -> dict[str, Any]:
        """The native wire's partition, `table` being the table's definition."""
        raise self._no_partitions()

    def named_places(self, definition: dict[str, Any]) -> list[str]:
        """Where a table's files are, or are to go, as its definition says."""
        return []

    def home_of(self, schema: Remote) -> str | None:
        """Where a schema's Iceberg tables go that name no place; None where that is not known before they are made."""
        return None

    def ground(self, schema: Remote) -> Ground:
        """Where tables of a schema may lie that name their place, whoever makes them."""
        return Ground()

    def kept_to(self, definition: dict[str, Any], ground: Ground) -> dict[str, Any]:
        """A new table's definition, which is refused when it is made if it leads off the ground."""
        return definition

    def metadata_location(self, definition: dict[str, Any]) -> str | None:
        """Where an Iceberg table's metadata is; None for another table."""
        return None

    def is_named(self, location: str) -> bool:
        """Whether a location lies where the catalog's properties say that its tables may."""
        return False

    def metadata_files(self, *places: str) -> MetadataFiles:
        """The files of an Iceberg table that lies in these places, or in others that the catalog allows."""
        raise Unsupported(f"{self.label} has no Iceberg tables.", kind=Kind.TABLE)

    def iceberg_place(self, schema: Remote, name: str, asked: str | None) -> str:
        """Where a new Iceberg table goes. Raises Invalid for a place that is not allowed."""
        raise Unsupported(f"{self.label}: Iceberg tables are made here by their engines.", kind=Kind.TABLE)

    def iceberg_table(
        self, schema: Remote, name: str, metadata: dict[str, Any], location: str | None = None
    ) -> dict[str, Any]:
        """The definition of a new Iceberg table, whose metadata `create_table` writes unless it lies at `location`."""
        raise Unsupported(f"{self.label}: Iceberg tables are made here by their engines.", kind=Kind.TABLE)

    @property
    def hides_some(self) -> bool:
        """Whether the catalog's settings keep some tables from being seen."""
        return False

    def shows(self, table: Remote) -> bool:
        """Whether the catalog's settings let a table be seen; of one that has formats, they are all that is asked."""
        return True

    def renaming(
        self, schema: Levels, to_schema: Levels, to_table: str, table: Remote, marker: str
    ) -> list[tuple[str, dict[str, Any]]]:
        """The calls that rename a table. Raises Unsupported where the system cannot."""
        arguments = {"schema": schema, "table": table.name, "to_schema": to_schema, "to_table": to_table}
        return [("rename_table", arguments | {"identity": table.identity})]

    @abstractmethod
    def marked(self, definition: dict[str, Any], marker: str) -> dict[str, Any]:
        """The definition as ours, by a parameter called MARKER."""

    @abstractmethod
    def marker_of(self, definition: dict[str, Any]) -> str: ...

    # Names: a flat system has one name for what may be a path here.

    @property
    def nests_here(self) -> bool:
        """Whether schemas lie inside schemas in this catalog though its system is flat."""
        return self.properties.get("nested-namespaces") == "true" and not self.nests_there

    @property
    def nests_there(self) -> bool:
        """Whether schemas lie inside schemas in the outside system itself."""
        return self.offered[Kind.SCHEMA].nested

    def levels_of(self, path: HierarchicalSchema) -> Levels:
        """Where a new schema goes. Raises Invalid for a name that is too long there."""
        if self.nests_there:
            return list(path.segments)
        name = encode_path(path.segments) if self.nests_here else path.leaf
        if len(name.encode()) > self.longest_name:
            raise Invalid(
                f"Schema {path.logical()} would be called {name!r} in {self.label}, where a name may take "
                f"{self.longest_name} characters.",
                kind=Kind.SCHEMA,
            )
        return [name]

    def path_of(self, levels: Levels) -> HierarchicalSchema:
        """The schema that an object of these levels is here. Raises Invalid where its name cannot be one."""
        if self.nests_there:
            return HierarchicalSchema.of(levels)
        if self.nests_here:
            return HierarchicalSchema.of(decode_path(levels[0]))
        return HierarchicalSchema.flat(levels[0])

    def folded(self, name: str) -> str:
        return name.lower() if self.offered[Kind.SCHEMA].folds_case else name


# Flat systems take lower-case letters, digits and the underscore; XML's convention for names spells all else out.
_SPELT = re.compile(r"_x([0-9a-f]{4,6})_")
_ODD = re.compile(r"[^a-z0-9_]|_(?=x[0-9a-f]{4,6}_)")
_LEVEL = "\x1f"


def encode_path(segments: Sequence[str]) -> str:
    """One name for a path: `sales`, `emea` is `sales_x001f_emea`. Different paths have different names."""
    return _ODD.sub(lambda odd: f"_x{ord(odd[0]):04x}_", _LEVEL.join(segments))


def decode_path(name: str) -> list[str]:
    """The path of a name; one that no path has is its own only level."""

    def spelt(found: re.Match[str]) -> str:
        code = int(found[1], 16)
        return chr(code) if code <= 0x10FFFF else found[0]

    segments = _SPELT.sub(spelt, name).split(_LEVEL)
    return segments if encode_path(segments) == name else [name]
