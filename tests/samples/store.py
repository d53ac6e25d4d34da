"""A store as an earlier version left it, put into the database of the test and migrated to what the code needs.

`make.py` says how the sample was made and what it holds.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Model

from tests.glue import ACCOUNT, REGION, Glue

BEFORE_ROOMS = Path(__file__).with_name("store_before_rooms.json")


def read(path: Path, worlds: Path, glue: Glue) -> dict[str, Any]:
    """The sample with the paths and the endpoint of this machine."""
    text = path.read_text()
    here = {"{HOME}": str(settings.METALAKE_HOME), "{WORLDS}": str(worlds), "{GLUE}": glue.endpoint}
    for placeholder, value in here.items():
        text = text.replace(placeholder, value)
    sample: dict[str, Any] = json.loads(text)
    return sample


def load(sample: dict[str, Any], worlds: Path, glue: Glue) -> None:
    """Leave the database, the files and the outside systems as the sample has them, the database at its migrations."""
    write_files(sample["files"])
    write_files({str(worlds / name): json.dumps(world) for name, world in sample["worlds"].items()})
    fill_glue(sample["glue"], glue)
    drop_everything()
    state = [(app, name) for app, name in sample["migrations"]]
    MigrationExecutor(connection).migrate(state)
    fill_database(state, sample["rows"])


def migrate() -> None:
    call_command("migrate", verbosity=0)


def write_files(files: dict[str, str]) -> None:
    for path, text in files.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)


def fill_glue(kept: dict[str, Any], glue: Glue) -> None:
    """Objects keep the moments of their making, by which they are told from later ones of their names."""
    from moto.glue.models import FakeDatabase, FakePartition, FakeTable, glue_backends

    glue.create_bucket("lake")
    for key, text in kept["files"].items():
        glue.client("s3").put_object(Bucket="lake", Key=key, Body=text.encode())
    backend = glue_backends[ACCOUNT][REGION]
    for each in kept["databases"]:
        database = FakeDatabase(each["name"], each["input"], ACCOUNT)
        database.created_time = datetime.fromisoformat(each["created"])
        backend.databases[each["name"]] = database
        for one in each["tables"]:
            table = FakeTable(each["name"], one["name"], one["versions"][0], ACCOUNT)
            for version in one["versions"][1:]:
                table.update(version)
            table.created_time = datetime.fromisoformat(one["created"])
            for part in one["partitions"]:
                partition = FakePartition(each["name"], one["name"], part["input"])
                partition.creation_time = datetime.fromisoformat(part["created"])
                table.partitions[str(partition.values)] = partition
            database.tables[one["name"]] = table


def drop_everything() -> None:
    """No table of the test's database is left: what follows begins as on a fresh server."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            return
        names = connection.introspection.table_names(cursor)
        cursor.execute("PRAGMA foreign_keys = OFF")
        for name in names:
            cursor.execute(f"DROP TABLE {connection.ops.quote_name(name)}")
        cursor.execute("PRAGMA foreign_keys = ON")


def fill_database(state: list[tuple[str, str]], rows: dict[str, list[dict[str, Any]]]) -> None:
    """These rows and no others, through the models as they were at these migrations."""
    apps = MigrationExecutor(connection).loader.project_state(state).apps
    models = apps.get_models(include_auto_created=True)
    with transaction.atomic(), connection.cursor() as cursor:
        for model in models:
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(model._meta.db_table)}")
        for label, found in rows.items():
            for row in found:
                insert(apps.get_model(label), row)
        for statement in connection.ops.sequence_reset_sql(no_style(), models):
            cursor.execute(statement)


def insert(model: type[Model], row: dict[str, Any]) -> None:
    """One row of one table: that of a model's parent is a row of its own."""
    fields = {field.attname: field for field in model._meta.local_concrete_fields}
    made = model(**{name: fields[name].to_python(value) for name, value in row.items()})
    made.save_base(raw=True, force_insert=True)
