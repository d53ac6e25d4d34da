import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("catalogs", "0010_columns_of_1_0")]
    operations = [
        migrations.AddField(
            model_name="refreshrun",
            name="is_delivered",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.CreateModel(
            name="HarvestedPart",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("schema", models.CharField(blank=True, max_length=1024)),
                ("name", models.CharField(blank=True, max_length=255)),
                ("seen", models.PositiveIntegerField(default=0)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="catalogs.refreshrun",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("run", "schema", "name"), name="a_part_counts_once")],
            },
        ),
    ]
