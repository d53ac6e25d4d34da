import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """A table's id is its securable's, so that claims stay as they are.

    The columns stay too: nodes of 1.0 go on asking for them while others are upgraded.
    """

    dependencies = [
        ("metalake", "0003_kinds_are_declared"),
        ("catalogs", "0008_more_secrets"),
    ]

    operations = [
        migrations.AlterField("table", "table_uuid", models.UUIDField(unique=True, db_column="table_uuid")),
        migrations.RenameField("table", "table_uuid", "uuid"),
        migrations.AlterField(
            "locationclaim",
            "table",
            models.ForeignKey(
                db_column="table_id",
                on_delete=django.db.models.deletion.CASCADE,
                related_name="claims",
                to="catalogs.table",
            ),
        ),
        migrations.RenameField("locationclaim", "table", "securable"),
        migrations.AlterField(
            "locationclaim",
            "securable",
            models.ForeignKey(
                db_column="table_id",
                on_delete=django.db.models.deletion.CASCADE,
                related_name="claims",
                to="metalake.securable",
            ),
        ),
    ]
