from django.db import migrations, models
from django.utils import timezone


def mark_guests(apps, schema_editor):
    """Accounts whose passwords nobody but they set, the first by an invitation, are guests of the metalake that invited.

    Links that were not used yet may be in the hands of who only manages users, so they end; others are made anew.
    """
    audit, users = apps.get_model("authz", "AuditEntry").objects, apps.get_model("authz", "User").objects
    invited = dict(audit.filter(event="user.invited").order_by("id").values_list("object_id", "metalake_id"))
    for user_id, metalake_id in invited.items():
        passwords = audit.filter(object_id=user_id, event="account.password_set")
        if passwords.exists() and not passwords.exclude(actor=models.F("full_name")).exists():
            users.filter(pk=user_id).update(guest_of=metalake_id)
    apps.get_model("authz", "Invitation").objects.update(expires_at=timezone.now())


class Migration(migrations.Migration):
    dependencies = [("authz", "0015_standing_of_tokens")]
    operations = [
        migrations.AddField(
            model_name="user", name="guest_of", field=models.BigIntegerField(editable=False, null=True)
        ),
        migrations.RunPython(mark_guests, migrations.RunPython.noop),
    ]
