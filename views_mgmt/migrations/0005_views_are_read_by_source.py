"""What a `*` stands for is noted for each source by itself, which a row of before has for all of them at once."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def read_again(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    apps.get_model("views_mgmt", "ViewMeta").objects.using(editor.connection.alias).update(read_version=0)
    apps.get_model("views_mgmt", "ViewRead").objects.using(editor.connection.alias).update(columns=[])


class Migration(migrations.Migration):
    dependencies = [("views_mgmt", "0004_findings")]

    operations = [
        migrations.AddField("viewmeta", "dialects_read", models.JSONField(null=True)),
        migrations.AddField("viewmeta", "slow_version", models.PositiveIntegerField(db_default=0, default=0)),
        migrations.RunPython(read_again, migrations.RunPython.noop),
    ]
