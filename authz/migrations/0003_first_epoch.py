from django.db import migrations


def start(apps, schema_editor):
    apps.get_model("authz", "PolicyEpoch").objects.create(pk=1, value=1, stamp="start")
    apps.get_model("authz", "PolicyChange").objects.create(epoch=1, stamp="start", changes=[])


class Migration(migrations.Migration):
    dependencies = [("authz", "0002_initial")]
    operations = [migrations.RunPython(start, migrations.RunPython.noop)]
