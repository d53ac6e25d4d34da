import django.db.models.deletion
from django.db import migrations, models

from catalogs import vault
from providers.registry import provider_class
from catalogs.secrets import MASK, is_secret
from metalake.errors import Unsupported


def seal(apps, schema_editor):
    """Take what is in plain out of the properties; a value that reads as the mask is kept as a secret, too."""
    CatalogSecrets = apps.get_model("catalogs", "CatalogSecrets")
    for row in apps.get_model("catalogs", "Catalog").objects.order_by("pk").iterator(chunk_size=500):
        declared = _declared(row.provider)
        secrets = {
            key: value for key, value in row.properties.items() if value == MASK or is_secret(key, value, declared)
        }
        if not secrets:
            continue
        if not vault.keyring.exists():
            vault.keyring.make()
        CatalogSecrets.objects.create(catalog=row, **vault.sealed(row.pk, secrets))
        row.properties |= dict.fromkeys(secrets, MASK)
        row.save(update_fields=["properties"])


def unseal(apps, schema_editor):
    CatalogSecrets = apps.get_model("catalogs", "CatalogSecrets")
    for row in apps.get_model("catalogs", "Catalog").objects.filter(secrets__isnull=False).order_by("pk"):
        secrets = vault.SealedSecrets(row.pk, row.name, row.secrets.master_key, row.secrets.data_key, row.secrets.sealed)
        row.properties = vault.merged(row.properties, secrets)
        row.save(update_fields=["properties"])


def _declared(provider):
    try:
        return provider_class(provider).settings.declares_secret()
    except Unsupported:
        return {}


class Migration(migrations.Migration):
    dependencies = [("catalogs", "0002_byte_order")]
    operations = [
        migrations.CreateModel(
            name="CatalogSecrets",
            fields=[
                (
                    "catalog",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="secrets",
                        serialize=False,
                        to="catalogs.catalog",
                    ),
                ),
                ("master_key", models.CharField(max_length=64)),
                ("data_key", models.CharField(max_length=128)),
                ("sealed", models.JSONField()),
            ],
            options={"verbose_name_plural": "catalog secrets"},
        ),
        migrations.RunPython(seal, unseal),
    ]
