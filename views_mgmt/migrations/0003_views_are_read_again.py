"""Names in a view's own catalog are noted without the catalog's, which a row of before has."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def read_again(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    apps.get_model("views_mgmt", "ViewMeta").objects.using(editor.connection.alias).update(read_version=0)


class Migration(migrations.Migration):
    dependencies = [("views_mgmt", "0002_what_views_read")]

    operations = [migrations.RunPython(read_again, migrations.RunPython.noop)]
