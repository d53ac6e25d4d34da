from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('authz', '0014_access_review'),
    ]

    operations = [
        migrations.AddField(
            model_name='token',
            name='standing',
            field=models.JSONField(blank=True, editable=False, null=True),
        ),
    ]
