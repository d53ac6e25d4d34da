from django.db import migrations

RENAMED = {"catalogs_table": ("uuid", "table_uuid"), "catalogs_locationclaim": ("securable_id", "table_id")}


def give_back(apps, schema_editor):
    """Stores that ran the code between 1.0 and this one have other names for two columns."""
    connection = schema_editor.connection
    for table, (between, name) in RENAMED.items():
        with connection.cursor() as cursor:
            columns = {column.name for column in connection.introspection.get_table_description(cursor, table)}
        if between in columns:
            schema_editor.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{between}" TO "{name}"')


class Migration(migrations.Migration):
    dependencies = [("catalogs", "0009_claims_of_any_object")]
    operations = [migrations.RunPython(give_back, migrations.RunPython.noop)]
