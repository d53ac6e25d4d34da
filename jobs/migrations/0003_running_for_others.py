from django.db import migrations, models


def pin(apps, schema_editor):
    """What is scheduled and waits now goes on with its template as it is now."""
    for name, waiting in (('Schedule', {}), ('JobRun', {'status': 'queued'})):
        rows = apps.get_model('jobs', name).objects.filter(template__isnull=False, **waiting)
        for row in rows.select_related('template'):
            row.content = row.template.content
            row.save(update_fields=['content'])


def mark(apps, schema_editor):
    """System catalogs are known by a property that anybody could set: of these, those that the metalake's owner made."""
    for catalog in apps.get_model('catalogs', 'Catalog').objects.filter(name='system', provider='lakehouse-iceberg'):
        top = catalog.parent
        owners = top.owner_group.users if top.owner_group_id else apps.get_model('authz', 'User').objects.filter(
            pk=top.owner_user_id
        )
        is_theirs = (catalog.owner_user_id, catalog.owner_group_id) == (top.owner_user_id, top.owner_group_id)
        is_marked = catalog.properties.get('system-catalog') == 'true'
        if is_marked and is_theirs and owners.filter(username=catalog.creator).exists():
            apps.get_model('jobs', 'SystemCatalog').objects.create(catalog=catalog)


class Migration(migrations.Migration):

    dependencies = [
        ('authz', '0015_standing_of_tokens'),
        ('catalogs', '0011_harvests'),
        ('jobs', '0002_second_token'),
    ]

    operations = [
        migrations.AddField('jobrun', 'content', models.JSONField(null=True)),
        migrations.AddField('schedule', 'content', models.JSONField(null=True)),
        migrations.AddField('schedule', 'standing', models.JSONField(null=True)),
        migrations.CreateModel(
            name='SystemCatalog',
            fields=[
                ('catalog', models.OneToOneField(on_delete=models.deletion.CASCADE, primary_key=True, related_name='system', serialize=False, to='catalogs.catalog')),
            ],
        ),
        migrations.RunPython(pin, migrations.RunPython.noop),
        migrations.RunPython(mark, migrations.RunPython.noop),
    ]
