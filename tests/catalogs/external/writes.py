"""Writes to an outside system in memory, each with what it needs first, and the bench that they are made on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from authz.models import AuditEntry, User
from authz.policy import Actor
from catalogs.lookup import Ident, by_id
from catalogs.models import Intent, Mirror, Schema
from catalogs.providers import remote
from catalogs.providers.external import MARKER
from catalogs.services import schemas, tables
from catalogs.services.changes import Alteration, remove
from catalogs.table_wire import CreateTableRequest, SetProperty
from metalake.models import Securable
from metalake.privileges import Kind
from tests.providers.memory import LEVELS, World

FOREIGN = "hr"  # a schema of others with a table in it
REQUEST = "a-request-of-mia"
COLUMNS = [{"name": "carrier", "type": "string"}, {"name": "delay", "type": "integer"}]


@dataclass(frozen=True)
class Write:
    """`calls` are the verbs that change the outside system, in their order; `audited` what a success leaves."""

    name: str
    catalog: str
    act: Callable[[Bench], object]
    calls: tuple[str, ...]
    audited: tuple[str, ...]
    prepare: Callable[[Bench], object] = lambda bench: None


@dataclass
class Bench:
    """One catalog and its world, in which `actor` may make schemas and tables, and others have something."""

    catalog: str
    world: World
    actor: Actor
    empty: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        if self.empty:
            return
        self.world.put_schema(FOREIGN)
        self.world.put_table(FOREIGN, "staff")
        self.empty = self.world.path.read_bytes()

    def ident(self, schema: str, table: str | None = None) -> Ident:
        return Ident("demo", self.catalog, schema, table)

    def make_schema(self, name: str, **properties: str) -> None:
        schemas.create_schema(self.actor, self.ident(name), "made by mia", properties)

    def make_table(self, schema: str, name: str) -> None:
        asked = CreateTableRequest.model_validate({"name": name, "columns": COLUMNS})
        tables.create_native_table(self.actor, self.ident(schema, name), asked)

    def reset(self) -> None:
        """As it was at first."""
        Intent.objects.all().delete()
        for row in Schema.objects.filter(in_catalog__name=self.catalog, parent__kind=Kind.CATALOG):
            found = by_id(row.pk)
            assert found is not None
            remove(found)
        self.world.path.write_bytes(self.empty)
        remote._lines.clear()

    # What is there, but for what others made and the markers.

    def here(self) -> set[tuple[Any, ...]]:
        """Kind, full name, owner and definition of every object."""
        kept = {mirror.pk: mirror.definition for mirror in Mirror.objects.filter(in_catalog__name=self.catalog)}
        owners = dict(User.objects.values_list("pk", "username"))
        paths = {row.pk: row.path for row in Schema.objects.filter(in_catalog__name=self.catalog)}
        rows = [(row, paths[row.pk].logical()) for row in Securable.objects.filter(pk__in=paths)]
        rows += [
            (row, f"{paths[row.parent_id or 0].logical()}.{row.name}")
            for row in Securable.objects.filter(kind=Kind.TABLE, parent_id__in=paths)
        ]
        return {
            (row.kind, name, owners.get(row.owner_user_id or 0), _plain(kept.get(row.pk)))
            for row, name in rows
            if not is_foreign(name)
        }

    def there(self) -> set[tuple[Any, ...]]:
        with self.world.open() as state:
            found = [*state["schemas"].items(), *state["tables"].items()]
        return {(name, _plain(one["definition"])) for name, one in found if not is_foreign(name)}

    def audited(self) -> Counter[str]:
        entries = AuditEntry.objects.exclude(full_name__startswith=f"{self.catalog}.{FOREIGN}")
        return Counter(entries.values_list("event", flat=True))


def is_foreign(name: str) -> bool:
    return name.replace(LEVELS, ".").split(".")[0] == FOREIGN


def _plain(definition: dict[str, Any] | None) -> str | None:
    if definition is None:
        return None
    properties = {key: value for key, value in definition["properties"].items() if key != MARKER}
    return orjson.dumps({**definition, "properties": properties}, option=orjson.OPT_SORT_KEYS).decode()


def _alter_schema(bench: Bench) -> None:
    alteration = Alteration(properties=(("team", "ops"), ("region", None)))
    schemas.alter_schema(bench.actor, bench.ident("sales"), alteration)


def _alter_table(bench: Bench) -> None:
    update = SetProperty.model_validate({"@type": "setProperty", "property": "team", "value": "ops"})
    tables.alter_native_table(bench.actor, bench.ident("flights", "delays"), [update])


def _with_table(bench: Bench) -> None:
    bench.make_schema("flights")
    bench.make_table("flights", "delays")


WRITES = [
    Write(
        "a chain of four schemas",
        "deep",
        lambda bench: bench.make_schema("sales:emea:q3:late", k="v"),
        ("create_schema",) * 4,
        ("schema.created",) * 4,
    ),
    Write(
        "a chain below a schema of others",
        "deep",
        lambda bench: bench.make_schema("sales:emea:q3"),
        ("create_schema",) * 3,
        ("schema.found_outside", "schema.created", "schema.created"),
        lambda bench: bench.world.put_schema("sales", team="others"),
    ),
    Write(
        "a chain in a flat system",
        "flat",
        lambda bench: bench.make_schema("sales:emea", k="v"),
        ("create_schema",),
        ("schema.created",) * 2,
    ),
    Write(
        "alter a schema",
        "deep",
        _alter_schema,
        ("alter_schema",),
        ("schema.altered",),
        lambda bench: bench.make_schema("sales", region="emea"),
    ),
    Write(
        "drop a schema",
        "deep",
        lambda bench: schemas.drop_schema(bench.actor, bench.ident("sales:emea")),
        ("drop_schema",),
        ("schema.dropped",),
        lambda bench: bench.make_schema("sales:emea"),
    ),
    Write(
        "create a table",
        "deep",
        lambda bench: bench.make_table("flights", "delays"),
        ("create_table",),
        ("table.created",),
        lambda bench: bench.make_schema("flights"),
    ),
    Write(
        "create a table and its schema's place",
        "flat",
        lambda bench: bench.make_table("flights", "delays"),
        ("create_schema", "create_table"),
        ("table.created",),
        lambda bench: bench.make_schema("flights:eu"),
    ),
    Write("alter a table", "deep", _alter_table, ("alter_table",), ("table.altered",), _with_table),
    Write(
        "rename a table",
        "deep",
        lambda bench: tables.rename_table(
            bench.actor, bench.ident("flights", "delays"), bench.ident("flights", "late")
        ),
        ("rename_table",),
        ("table.renamed",),
        _with_table,
    ),
    Write(
        "rename a table by copying it",
        "flat",
        lambda bench: tables.rename_table(
            bench.actor, bench.ident("flights", "delays"), bench.ident("flights", "late")
        ),
        ("create_table", "drop_table"),
        ("table.renamed",),
        _with_table,
    ),
    Write(
        "drop a table",
        "deep",
        lambda bench: tables.drop_table(bench.actor, bench.ident("flights", "delays")),
        ("drop_table",),
        ("table.dropped",),
        _with_table,
    ),
]
