from django.db import migrations, models


def note_what_is_named(apps, schema_editor):
    """What was reserved for tables of outside catalogs in places that these do not name concerns them alone."""
    from formats.iceberg import locations
    from providers.places import named_places

    rows = apps.get_model("catalogs", "ReservedPlace").objects.exclude(kind="catalog")
    outside = apps.get_model("catalogs", "Catalog").objects.exclude(provider="lakehouse-iceberg")
    for catalog in outside.filter(pk__in=rows.values("of_catalog")):
        named = named_places(catalog.properties)
        for row in rows.filter(of_catalog=catalog.pk):
            if not any(locations.overlap(place, row.location, within=False) for place in named):
                rows.filter(pk=row.pk).update(is_named=False)


class Migration(migrations.Migration):
    dependencies = [("catalogs", "0011_harvests")]
    operations = [
        migrations.AddField("catalog", "storages", models.JSONField(editable=False, null=True)),
        migrations.AddField("reservedplace", "storages", models.JSONField(editable=False, null=True)),
        migrations.AddField("reservedplace", "is_named", models.BooleanField(db_default=True, default=True)),
        migrations.AlterField("locationclaim", "location", models.CharField(db_index=True, max_length=2048)),
        migrations.RunPython(note_what_is_named, migrations.RunPython.noop),
    ]
