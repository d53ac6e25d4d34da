from django.db import migrations

from catalogs import vault
from catalogs.secrets import MASK, is_secret
from metalake.errors import ProviderUnavailable


def seal(apps, schema_editor):
    """Take out of the properties what is a secret by words that were added since: webhooks and client assertions.

    A catalog whose other secrets do not open keeps them masked as before; the next change of its secrets seals them.
    """
    CatalogSecrets = apps.get_model("catalogs", "CatalogSecrets")
    for row in apps.get_model("catalogs", "Catalog").objects.order_by("pk").iterator(chunk_size=500):
        plain = {key: value for key, value in row.properties.items() if value != MASK and is_secret(key, value)}
        if not plain:
            continue
        row_of_secrets = CatalogSecrets.objects.filter(pk=row.pk).first()
        try:
            opened = vault.merged(row.properties, _secrets_of(row, row_of_secrets)) if row_of_secrets else row.properties
        except ProviderUnavailable:
            continue
        if not vault.keyring.exists():
            vault.keyring.make()
        secrets = {key: opened[key] for key, value in row.properties.items() if value == MASK or key in plain}
        CatalogSecrets.objects.update_or_create(catalog_id=row.pk, defaults=vault.sealed(row.pk, secrets))
        row.properties |= dict.fromkeys(plain, MASK)
        row.save(update_fields=["properties"])


def _secrets_of(row, row_of_secrets):
    return vault.SealedSecrets(row.pk, row.name, row_of_secrets.master_key, row_of_secrets.data_key, row_of_secrets.sealed)


class Migration(migrations.Migration):
    dependencies = [("catalogs", "0007_places")]
    operations = [migrations.RunPython(seal, migrations.RunPython.noop)]
