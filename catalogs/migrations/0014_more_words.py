from importlib import import_module

from django.db import migrations

earlier = import_module("catalogs.migrations.0008_more_secrets")  # it seals what is a secret by the words of today


class Migration(migrations.Migration):
    dependencies = [("catalogs", "0013_reserved_denies")]
    operations = [migrations.RunPython(earlier.seal, migrations.RunPython.noop)]
