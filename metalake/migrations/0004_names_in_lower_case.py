from django.db import migrations, models
from django.db.models.functions import Lower


class Migration(migrations.Migration):

    dependencies = [
        ('metalake', '0003_kinds_are_declared'),
        ('catalogs', '0002_byte_order'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='securable',
            index=models.Index(Lower('name'), 'id', name='securable_lower_name'),
        ),
    ]
