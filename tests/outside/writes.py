"""Writes to outside systems, each with what it needs first, and the bench that they are made on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Q

from authz.actor import Actor
from authz.models import AuditEntry, User
from catalogs.lookup import by_id, find
from catalogs.models import Intent, Mirror, Schema
from catalogs.services import commits, schemas, tables
from catalogs.services.alterations import Alteration
from catalogs.services.cascade import remove
from formats.native.partitions import IdentityPartition
from formats.native.tables import CreateTableRequest, SetProperty, UpdateComment
from formats.native.views import CreateViewRequest
from metalake.kinds import LEAVES, Kind
from metalake.lineage import Address
from metalake.models import Securable
from outside import partitions
from outside import tables as external
from providers import circuit_breaker
from tests.outside.outside import FOREIGN, IN_EVERY_METASTORE, Memory, Metastore, Outside, is_foreign
from tests.providers.world import World
from views_mgmt.services import views

REQUEST = "a-request-of-mia"
COLUMNS = [{"name": "delay", "type": "integer"}, {"name": "carrier", "type": "string"}]
BY_CARRIER = [{"strategy": "identity", "fieldName": ["carrier"]}]
UNION = {"type": "sql", "dialect": "spark", "sql": "SELECT delay, carrier FROM a UNION SELECT delay, carrier FROM b"}
IN_TRINO = UNION | {"dialect": "trino"}
UNITED = {"type": "literal", "dataType": "string", "value": "UA"}


@dataclass(frozen=True)
class Write:
    """`calls` are the verbs that change the outside system, in their order; `audited` what a success leaves."""

    name: str
    catalog: str
    act: Callable[[Bench], object]
    calls: tuple[str, ...]
    audited: tuple[str, ...]
    prepare: Callable[[Bench], object] = lambda bench: None

    def __str__(self) -> str:
        return f"{self.name} ({self.catalog})"


@dataclass
class Bench:
    """One catalog and its outside system, in which `actor` may make schemas and tables, and others have something."""

    catalog: str
    outside: Outside
    actor: Actor
    prepared: dict[Write, tuple[Any, ...]] = field(default_factory=dict)  # by what crashes.prepared puts it back

    @property
    def world(self) -> World:
        assert isinstance(self.outside, Memory)
        return self.outside.world

    def ident(self, schema: str, table: str | None = None) -> Address:
        return Address(metalake="demo", catalog=self.catalog, schema=schema, leaf=table)

    def make_schema(self, name: str, **properties: str) -> None:
        schemas.create_schema(self.actor, self.ident(name), "made by mia", properties)

    def make_table(self, schema: str, name: str, **more: Any) -> None:
        asked = CreateTableRequest.model_validate({"name": name, "columns": COLUMNS, **more})
        tables.create_native_table(self.actor, self.ident(schema, name), asked)

    def view_ident(self, schema: str, view: str) -> Address:
        return Address(metalake="demo", catalog=self.catalog, schema=schema, leaf=view, leaf_kind=Kind.VIEW)

    def make_view(self, schema: str, name: str, *more: dict[str, Any]) -> None:
        """With `more` dialects it is an Iceberg view."""
        asked = CreateViewRequest.model_validate({"name": name, "columns": COLUMNS, "representations": [UNION, *more]})
        views.create_view(self.actor, self.view_ident(schema, name), asked)

    def loaded(self, schema: str, name: str) -> external.ExternalTable:
        return external.loaded(self.actor, find(self.actor, self.ident(schema, name)))

    def reset(self) -> None:
        """As it was at first."""
        Intent.objects.all().delete()
        for row in Schema.objects.filter(in_catalog__name=self.catalog, parent__kind=Kind.CATALOG):
            found = by_id(row.pk)
            assert found is not None
            with transaction.atomic():
                remove(found)
        self.outside.reset()
        circuit_breaker.forget_all()

    # What is there, but for what others made and the markers.

    def here(self) -> set[tuple[Any, ...]]:
        """Kind, full name, owner and definition of every object."""
        kept = {mirror.pk: mirror.definition for mirror in Mirror.objects.filter(in_catalog__name=self.catalog)}
        owners = dict(User.objects.values_list("pk", "username"))
        paths = {row.pk: row.path for row in Schema.objects.filter(in_catalog__name=self.catalog)}
        rows = [(row, paths[row.pk].logical()) for row in Securable.objects.filter(pk__in=paths)]
        rows += [
            (row, f"{paths[row.parent_id or 0].logical()}.{row.name}")
            for row in Securable.objects.filter(kind__in=LEAVES, parent_id__in=paths)
        ]
        return {
            (row.kind, name, owners.get(row.owner_user_id or 0), self._plain(kept.get(row.pk)))
            for row, name in rows
            if not is_foreign(name)
        }

    def there(self) -> set[tuple[Any, ...]]:
        objects = self.outside.objects()
        return {(name, self._plain(one.definition)) for name, one in objects.items() if not is_foreign(name)} | {
            each for each in self.outside.beside(objects) if not is_foreign(each[0])
        }

    def _plain(self, definition: dict[str, Any] | None) -> str | None:
        return self.outside.plain(definition) if definition else None

    def audited(self) -> Counter[str]:
        of_others = Q(full_name__startswith=f"{self.catalog}.{FOREIGN}")
        of_others |= Q(full_name__startswith=f"{self.catalog}.{IN_EVERY_METASTORE}")
        return Counter(AuditEntry.objects.exclude(of_others).values_list("event", flat=True))


def _alter_schema(bench: Bench) -> None:
    alteration = Alteration(properties=(("team", "ops"), ("region", None)))
    schemas.alter_schema(bench.actor, bench.ident("sales"), alteration)


def _drop_schema(bench: Bench) -> None:
    schemas.drop_schema(bench.actor, bench.ident("sales:emea"))


def _alter_table(bench: Bench) -> None:
    update = SetProperty.model_validate({"@type": "setProperty", "property": "team", "value": "ops"})
    tables.alter_native_table(bench.actor, bench.ident("flights", "delays"), [update])


def _rename_table(bench: Bench) -> None:
    tables.rename_table(bench.actor, bench.ident("flights", "delays"), bench.ident("flights", "late"))


def _drop_table(bench: Bench) -> None:
    tables.drop_table(bench.actor, bench.ident("flights", "delays"))


def _make_view(bench: Bench) -> None:
    bench.make_view("flights", "delays")


def _alter_view(bench: Bench) -> None:
    update = SetProperty.model_validate({"@type": "setProperty", "property": "team", "value": "ops"})
    views.alter_view(bench.actor, bench.view_ident("flights", "delays"), [update])


def _rename_view(bench: Bench) -> None:
    views.rename_view(bench.actor, bench.view_ident("flights", "delays"), bench.view_ident("flights", "late"))


def _drop_view(bench: Bench) -> None:
    views.drop_view(bench.actor, bench.view_ident("flights", "delays"))


def _with_view(bench: Bench) -> None:
    bench.make_schema("flights")
    _make_view(bench)


def _make_iceberg_view(bench: Bench) -> None:
    bench.make_view("flights", "delays", IN_TRINO)


def _with_iceberg_view(bench: Bench) -> None:
    bench.make_schema("flights")
    _make_iceberg_view(bench)


def _of_views(catalog: str, renaming: tuple[str, ...]) -> list[Write]:
    return [
        Write("create a view", catalog, _make_view, ("create_view",), ("view.created",), _with_schema),
        Write("alter a view", catalog, _alter_view, ("alter_view",), ("view.altered",), _with_view),
        Write("rename a view", catalog, _rename_view, renaming, ("view.renamed",), _with_view),
        Write("drop a view", catalog, _drop_view, ("drop_view",), ("view.dropped",), _with_view),
    ]


def _commit(bench: Bench) -> None:
    update = {"action": "set-properties", "updates": {"team": "ops"}}
    commits.commit_table(bench.actor, bench.ident("flights", "delays"), [], [update])


def _add_partition(bench: Bench) -> None:
    asked = {"type": "identity", "fieldNames": [["carrier"]], "values": [UNITED]}
    partitions.add(bench.actor, bench.loaded("flights", "delays"), IdentityPartition.model_validate(asked))


def _drop_partition(bench: Bench) -> None:
    partitions.drop(bench.actor, bench.loaded("flights", "delays"), "carrier=UA")


def _with_schema(bench: Bench) -> None:
    bench.make_schema("flights")


def _with_step(bench: Bench) -> None:
    bench.make_schema("flights:eu")


def _with_step_of_others(bench: Bench) -> None:
    """Whose place there somebody made meanwhile."""
    bench.make_schema("flights:eu")
    bench.outside.put_schema("flights")


def _with_table(bench: Bench, **more: Any) -> None:
    bench.make_schema("flights")
    bench.make_table("flights", "delays", **more)


def _with_partition(bench: Bench, **more: Any) -> None:
    _with_table(bench, **more)
    _add_partition(bench)


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
        lambda bench: bench.outside.put_schema("sales"),
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
        _drop_schema,
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
        _with_schema,
    ),
    Write(
        "create a table and its schema's place",
        "flat",
        lambda bench: bench.make_table("flights", "delays"),
        ("create_schema", "create_table"),
        ("table.created",),
        _with_step,
    ),
    Write("alter a table", "deep", _alter_table, ("alter_table",), ("table.altered",), _with_table),
    Write("rename a table", "deep", _rename_table, ("rename_table",), ("table.renamed",), _with_table),
    Write(
        "rename a table by copying it",
        "flat",
        _rename_table,
        ("create_table", "drop_table"),
        ("table.renamed",),
        _with_table,
    ),
    Write("drop a table", "deep", _drop_table, ("drop_table",), ("table.dropped",), _with_table),
]
BY_NAME = {write.name: write for write in WRITES}


def _in(catalog: str, **table: Any) -> list[Write]:
    """What a flat system offers whose tables have partitions; `table` says in what format they are made."""
    make = partial(Bench.make_table, schema="flights", name="delays", **table)
    plain, by_carrier = partial(_with_table, **table), table | {"partitioning": BY_CARRIER}

    def with_wide_schema(bench: Bench) -> None:
        bench.make_schema("sales", region="emea")

    def with_chain(bench: Bench) -> None:
        bench.make_schema("sales:emea")

    return [
        Write(
            "create a chain",
            catalog,
            lambda bench: bench.make_schema("sales:emea", k="v"),
            ("create_schema",),
            ("schema.created",) * 2,
        ),
        Write("alter a schema", catalog, _alter_schema, ("alter_schema",), ("schema.altered",), with_wide_schema),
        Write("drop a schema", catalog, _drop_schema, ("drop_schema",), ("schema.dropped",), with_chain),
        Write("create a table", catalog, make, ("create_table",), ("table.created",), _with_schema),
        Write(
            "create a table and its schema's place",
            catalog,
            make,
            ("create_schema", "create_table"),
            ("table.created",),
            _with_step,
        ),
        Write(
            "create a table in a place of others",
            catalog,
            make,
            ("create_schema", "create_table"),
            ("table.created",),
            _with_step_of_others,
        ),
        Write("alter a table", catalog, _alter_table, ("alter_table",), ("table.altered",), plain),
        Write("drop a table", catalog, _drop_table, ("drop_table",), ("table.dropped",), plain),
        Write(
            "add a partition",
            catalog,
            _add_partition,
            ("add_partition",),
            ("table.partition_added",),
            partial(_with_table, **by_carrier),
        ),
        Write(
            "drop a partition",
            catalog,
            _drop_partition,
            ("drop_partition",),
            ("table.partition_dropped",),
            partial(_with_partition, **by_carrier),
        ),
    ]


def _with_table_of_spark(bench: Bench) -> None:
    """Whose files are also named by a parameter, which moves with the table."""
    bench.make_schema("flights")
    assert isinstance(bench.outside, Metastore)
    bench.outside.put_table("flights", "delays", path=True)
    _meet_table(bench)


def _with_iceberg_of_others(bench: Bench) -> None:
    bench.make_schema("flights")
    assert isinstance(bench.outside, Metastore)
    bench.outside.put_iceberg("flights", "delays")
    _meet_table(bench)


def _meet_table(bench: Bench) -> None:
    tables.load_table(bench.actor, bench.ident("flights", "delays"))


HIVE_FORMAT, ICEBERG_FORMAT = {"table_type": "HIVE"}, {"table_type": "ICEBERG"}
_with_iceberg = partial(_with_table, properties=ICEBERG_FORMAT)
_make_iceberg = partial(Bench.make_table, schema="flights", name="delays", properties=ICEBERG_FORMAT)

IN_HIVE = [
    *_in("hive"),
    Write("rename a table", "hive", _rename_table, ("rename_table",), ("table.renamed",), _with_table),
    Write(
        "rename a table of Spark's", "hive", _rename_table, ("rename_table",), ("table.renamed",), _with_table_of_spark
    ),
    Write("create an Iceberg table", "hive", _make_iceberg, ("create_table",), ("table.created",), _with_schema),
    Write("commit", "hive", _commit, ("commit_table",), ("table.committed",), _with_iceberg_of_others),
    *_of_views("hive", ("rename_view",)),
    Write("create an Iceberg view", "hive", _make_iceberg_view, ("create_view",), ("view.created",), _with_schema),
    Write("commit to a view", "hive", _alter_view, ("commit_view",), ("view.altered",), _with_iceberg_view),
    Write("rename an Iceberg view", "hive", _rename_view, ("rename_view",), ("view.renamed",), _with_iceberg_view),
    Write("drop an Iceberg view", "hive", _drop_view, ("drop_view",), ("view.dropped",), _with_iceberg_view),
]

LOCKED = ("alter a table", "rename a table", "commit", "alter a view", "rename a view", "commit to a view")
IN_OLD_HIVE = [write for write in IN_HIVE if write.name in LOCKED]

IN_GLUE = [
    *_in("glue", properties=HIVE_FORMAT),
    Write(
        "create an Iceberg table",
        "glue",
        _make_iceberg,
        ("create_table",),
        ("table.created",),
        _with_schema,
    ),
    Write(
        "rename an Iceberg table",
        "glue",
        _rename_table,
        ("create_table", "drop_table"),
        ("table.renamed",),
        _with_iceberg,
    ),
    Write("drop an Iceberg table", "glue", _drop_table, ("drop_table",), ("table.dropped",), _with_iceberg),
    Write("commit", "glue", _commit, ("commit_table",), ("table.committed",), _with_iceberg),
    *_of_views("glue", ("create_view", "drop_view")),
]


def _comment_schema(bench: Bench) -> None:
    schemas.alter_schema(bench.actor, bench.ident("sales"), Alteration(comment="of 2014", sets_comment=True))


def _comment_table(bench: Bench) -> None:
    update = UpdateComment.model_validate({"@type": "updateComment", "newComment": "late"})
    tables.alter_native_table(bench.actor, bench.ident("flights", "delays"), [update])


def _in_database(catalog: str) -> list[Write]:
    """What databases offer, whose objects have no properties: their comments are altered."""
    others = ("create a table", "create a table and its schema's place", "create a table in a place of others")
    return [
        Write("create a chain", catalog, lambda b: b.make_schema("sales:emea"), (), ("schema.created",) * 2),
        Write("alter a schema", catalog, _comment_schema, (), ("schema.altered",), lambda b: b.make_schema("sales")),
        Write("alter a table", catalog, _comment_table, (), ("table.altered",), _with_table),
        Write("rename a table", catalog, _rename_table, (), ("table.renamed",), _with_table),
        *(write for write in _in(catalog) if write.name in (*others, "drop a schema", "drop a table")),
    ]


IN_POSTGRES, IN_MARIADB = _in_database("pg"), _in_database("maria")
IN_DATABASES = [*IN_POSTGRES, *IN_MARIADB]
EVERY_DAY = [write for write in IN_DATABASES if write.name == "create a table"]
OF_VIEWS = _of_views("views", ("rename_view",))
EVERY_WRITE = [*WRITES, *IN_HIVE, *IN_GLUE, *IN_DATABASES, *OF_VIEWS]
