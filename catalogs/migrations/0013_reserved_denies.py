from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("catalogs", "0012_storages")]
    operations = [
        migrations.AddField(
            model_name="reservedplace", name="denied", field=models.JSONField(editable=False, null=True)
        ),
    ]
