import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """A table's id is its securable's, so that claims stay as they are."""

    dependencies = [
        ("metalake", "0003_kinds_are_declared"),
        ("catalogs", "0008_more_secrets"),
    ]

    operations = [
        migrations.RenameField("table", "table_uuid", "uuid"),
        migrations.RenameField("locationclaim", "table", "securable"),
        migrations.AlterField(
            "locationclaim",
            "securable",
            models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="claims", to="metalake.securable"
            ),
        ),
    ]
