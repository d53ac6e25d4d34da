from django.db import migrations

# Ranges over lineages and pages over names rely on the order of bytes, which is not PostgreSQL's default.
COLUMNS = [
    ("metalake_securable", "lineage", 512),
    ("metalake_securable", "name", 255),
    ("catalogs_schema", "physical_name", 1024),
    ("catalogs_locationclaim", "location", 2048),
]


def order_by_bytes(apps, schema_editor):
    if schema_editor.connection.vendor != "postgresql":
        return
    for table, column, length in COLUMNS:
        schema_editor.execute(f'ALTER TABLE {table} ALTER COLUMN {column} TYPE varchar({length}) COLLATE "C"')


class Migration(migrations.Migration):
    dependencies = [("catalogs", "0001_initial"), ("metalake", "0001_initial"), ("authz", "0002_initial")]
    operations = [migrations.RunPython(order_by_bytes, migrations.RunPython.noop)]
