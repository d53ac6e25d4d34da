from django.db import migrations
from django.utils import timezone


def begin(apps, schema_editor):
    """What is true already is the first that the history knows."""
    from authz.facts import mac_of

    fact_model = apps.get_model("authz", "Fact")
    now = timezone.now()
    waiting = []

    def keep(metalake_id, topic, holder, about, name, state):
        fact = fact_model(
            at=now, metalake_id=metalake_id, topic=topic, holder=holder, about=about, name=name, state=state,
            actor="metalake", event="history.begun",
        )  # fmt: skip
        fact.mac = mac_of(fact)
        waiting.append(fact)
        if len(waiting) >= 1000:
            flush()

    def flush():
        fact_model.objects.bulk_create(waiting)
        waiting.clear()

    for row in apps.get_model("metalake", "Securable").objects.order_by("lineage").iterator():
        state = {
            "kind": row.kind, "lineage": row.lineage, "owner_user": row.owner_user_id, "owner_group": row.owner_group_id
        }  # fmt: skip
        keep(_top(row.lineage), "object", row.parent_id or 0, row.id, row.name, state)
    for row in apps.get_model("authz", "Member").objects.select_related("user"):
        keep(row.metalake_id, "members", row.metalake_id, row.user_id, row.user.username, row.enabled)
    roles = {row.group_id: row for row in apps.get_model("authz", "Role").objects.all()}
    held = {}
    for user_id, group_id in apps.get_model("authz", "User").groups.through.objects.values_list("user_id", "group_id"):
        if group_id in roles:
            held.setdefault(user_id, []).append(roles[group_id])
    for user_id, of_user in held.items():
        keep(_top(of_user[0].lineage), "user_roles", user_id, 0, "", sorted(role.pk for role in of_user))
    grouped = {}
    for group in apps.get_model("authz", "Group").objects.all():
        keep(group.metalake_id, "group", group.metalake_id, group.pk, group.name, True)
        keep(group.metalake_id, "group_roles", group.pk, 0, "", sorted(group.roles.values_list("pk", flat=True)))
        for user_id in group.users.values_list("pk", flat=True):
            grouped.setdefault(user_id, []).append(group)
    for user_id, groups in grouped.items():
        keep(groups[0].metalake_id, "user_groups", user_id, 0, "", sorted(group.pk for group in groups))
    grants = {}
    for row in apps.get_model("authz", "Grant").objects.select_related("permission").iterator():
        if row.group_id in roles:
            entry = {
                "privilege": row.permission.codename, "effect": row.effect,
                "grantor": row.grantor, "granted": row.granted_at.isoformat(),
            }  # fmt: skip
            grants.setdefault((roles[row.group_id], row.content_object_id), []).append(entry)
    for (role, object_id), entries in grants.items():
        keep(_top(role.lineage), "grants", role.pk, object_id, "", entries)
    flush()


def _top(lineage):
    return int(lineage[1:].split("/")[0])


class Migration(migrations.Migration):
    dependencies = [("authz", "0003_grants_in_time_and_history"), ("metalake", "0001_initial")]
    operations = [migrations.RunPython(begin, migrations.RunPython.noop)]
