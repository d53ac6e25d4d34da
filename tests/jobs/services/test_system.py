"""The system catalog: made by the metalake's owner with one call, and written to by nobody but jobs."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps

from authz.callers.identity import issue_token
from authz.models import Token, User
from authz.services import invitations, owners, people
from catalogs.models import Catalog
from catalogs.services import tables
from jobs.models import SystemCatalog
from jobs.services import system
from metalake.errors import Conflict, Forbidden, NotFound, Unsupported
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.models import Metalake, Securable
from metalake_client.engines.spark_pairs import PAIRS
from tests.catalogs.callers import Caller
from tests.demo import actor, add_member, give
from tests.jobs.bodies import RUNS
from tests.jobs.conftest import Write
from tests.jobs.services.test_runs import ran
from tests.views_mgmt.conftest import body
from views_mgmt.services import views

pytestmark = pytest.mark.store

SYSTEM = "metalakes/demo/system"
SCHEMAS = "metalakes/demo/catalogs/system/schemas"
AUDIT = f"{SCHEMAS}/audit"
DAYS = {"name": "days", "columns": [{"name": "day", "type": "date"}]}
VIEW = body("shown")
ALL = [
    "catalog system", "schema system.access", "schema system.audit", "schema system.lineage", "user system-jobs",
    "role system-jobs", "role system-jobs of system-jobs",
]  # fmt: skip


def test_it_works(admin: Caller) -> None:
    made = admin.post(SYSTEM)["system"]
    assert made["made"] == ALL
    assert made["readers"]["access"] == ["admin", "system-jobs"] and not made["moreReaders"]
    assert admin.post(SYSTEM)["system"]["made"] == []
    assert not User.objects.get(username="system-jobs").has_usable_password()
    role = admin.get("metalakes/demo/roles/system-jobs")["role"]
    (on,) = role["securableObjects"]
    assert on["fullName"] == "system" and {each["name"] for each in on["privileges"]} == {
        "use_catalog", "use_schema", "create_table", "select_table", "modify_table",
    }  # fmt: skip


def test_what_is_missing_is_made(admin: Caller) -> None:
    admin.post(SYSTEM)
    admin.delete("metalakes/demo/catalogs/system/schemas/audit")
    admin.delete("metalakes/demo/users/system-jobs")
    made = admin.post(SYSTEM)["system"]["made"]
    assert made == ["schema system.audit", "user system-jobs", "role system-jobs of system-jobs"]


def test_it_is_told_who_may_read(admin: Caller) -> None:
    admin.post(SYSTEM)
    add_member("mia")
    give("mia", Kind.METALAKE, "demo", "use_catalog", "use_schema", "select_table")
    assert admin.post(SYSTEM)["system"]["readers"]["access"] == ["admin", "mia", "system-jobs"]


def test_others_are_refused(admin: Caller, mia: Caller) -> None:
    give("mia", Kind.METALAKE, "demo", "create_catalog", "manage_grants", "manage_users")
    assert mia.post(SYSTEM).status == 403
    assert mia.post("metalakes/nowhere/system").status == 404
    assert not Catalog.objects.filter(name="system").exists()


def test_a_namesake_is_no_system_catalog(admin: Caller, mia: Caller) -> None:
    give("mia", Kind.METALAKE, "demo", "create_catalog")
    catalog = {"name": "system", "type": "relational", "provider": "lakehouse-iceberg", "properties": {}}
    mia.post("metalakes/demo/catalogs", catalog)
    refused = admin.post(SYSTEM)
    assert refused.status == 409 and "rename it" in refused.message


def test_a_catalog_that_was_prepared_is_not_adopted(admin: Caller, mia: Caller) -> None:
    """Not even once it is handed to the metalake's owner: its maker gave herself grants, and chose its places."""
    give("mia", Kind.METALAKE, "demo", "create_catalog")
    catalog = {"name": "system", "type": "relational", "provider": "lakehouse-iceberg"}
    mia.post("metalakes/demo/catalogs", catalog | {"properties": {"system-catalog": "true"}})
    assert mia.post(SCHEMAS, {"name": "access"}).status == 200
    mia.send("PUT", "metalakes/demo/owners/catalog/system", {"name": "admin", "type": "USER"})
    people.add_user(actor("admin"), "demo", system.PRINCIPAL)
    refused = admin.post(SYSTEM)
    assert refused.status == 409 and "rename it" in refused.message
    with pytest.raises(NotFound, match="no system catalog"):
        system.principal_of(Metalake.objects.get(name="demo").pk)
    admin.put("metalakes/demo/catalogs/system", {"@type": "rename", "newName": "prepared"})
    assert admin.post(SYSTEM)["system"]["made"] == [made for made in ALL if made != "user system-jobs"]


def test_of_a_store_of_before_only_what_the_owner_made_is_the_system_catalog(admin: Caller, mia: Caller) -> None:
    """It was known by a property, which whoever registers a catalog may set."""
    mark = import_module("jobs.migrations.0003_running_for_others").mark
    admin.post(SYSTEM)
    Catalog.objects.filter(name="system").update(properties={"system-catalog": "true"})
    for creator, count in (("mia", 0), ("admin", 1)):
        SystemCatalog.objects.all().delete()
        Catalog.objects.filter(name="system").update(creator=creator)
        mark(apps, None)
        assert SystemCatalog.objects.count() == count


def test_the_system_catalog_follows_the_metalake_to_its_owner(admin: Caller, mia: Caller) -> None:
    top = Metalake.objects.get(name="demo").pk
    admin.post(SYSTEM)
    assert system.principal_of(top).username == system.PRINCIPAL
    owners.set_owner(actor("admin"), "demo", Kind.METALAKE, "demo", "mia", "user")
    with pytest.raises(Conflict, match="another owner"):
        system.principal_of(top)
    refused = mia.post(SYSTEM)
    assert refused.status == 409 and "Role system-jobs" in refused.message and "drop it" in refused.message
    mia.delete("metalakes/demo/roles/system-jobs")
    made = mia.post(SYSTEM)["system"]["made"]
    assert made[:2] == ["owner of catalog system", "owner of schema system.access"] and made[-2] == "role system-jobs"
    assert system.principal_of(top).username == system.PRINCIPAL


def test_whoever_owns_a_schema_of_it_reads_no_results(admin: Caller, mia: Caller) -> None:
    admin.post(SYSTEM)
    assert admin.post(f"{AUDIT}/tables", DAYS).status == 200
    for what in ("table/system.audit.days", "schema/system.audit"):
        admin.send("PUT", f"metalakes/demo/owners/{what}", {"name": "mia", "type": "USER"})
        with pytest.raises(Conflict, match=f"{what.replace('/', ' ')} has another owner"):
            system.principal_of(Metalake.objects.get(name="demo").pk)
    assert "table system.audit.days has another owner" in admin.post(SYSTEM).message
    admin.delete(f"{AUDIT}/tables/days")
    assert admin.post(SYSTEM)["system"]["made"] == ["owner of schema system.audit"]


def test_others_make_nothing_where_jobs_write_nor_move_it_there(admin: Caller, mia: Caller) -> None:
    """A job makes its tables long after its run was prepared: whoever came between would own what it writes."""
    admin.post(SYSTEM)
    admin.post(SCHEMAS, {"name": "hers"})
    admin.post(f"{SCHEMAS}/hers/tables", DAYS)
    admin.post(f"{SCHEMAS}/hers/views", VIEW)
    admin.send("PUT", "metalakes/demo/owners/schema/system.hers", {"name": "mia", "type": "USER"})
    admin.delete(f"{SCHEMAS}/lineage")
    give("mia", Kind.METALAKE, "demo", "use_catalog", "use_schema", "create_schema", "create_table", "create_view")
    for path, asked in ((f"{AUDIT}/tables", DAYS), (f"{AUDIT}/views", VIEW), (SCHEMAS, {"name": "lineage"})):
        refused = mia.post(path, asked)
        assert refused.status == 403 and "only jobs and the owner" in refused.message, path
    here = Address(metalake="demo", catalog="system", schema="audit", leaf="days")
    shown = replace(here, leaf="shown", leaf_kind=Kind.VIEW)
    for change in (
        lambda who: tables.register_table(who, here, "file:///lake/days/v1.metadata.json"),
        lambda who: tables.rename_table(who, replace(here, schema="hers"), here),
        lambda who: views.rename_view(who, replace(shown, schema="hers"), shown),
    ):
        with pytest.raises(Forbidden, match="only jobs"):
            change(actor("mia"))
    token = issue_token(User.objects.get(username=system.PRINCIPAL), "job 1")
    assert Caller("").post(f"{AUDIT}/tables", DAYS, Authorization=f"Bearer {token}").status == 200


def test_a_catalog_that_is_made_again_is_written_to_again(admin: Caller) -> None:
    admin.post(SYSTEM)
    admin.delete("metalakes/demo/catalogs/system?force=true")
    assert admin.post(SYSTEM)["system"]["made"] == [*ALL[:4], "grants of role system-jobs"]


def test_the_principal_is_nobody_who_signs_in(admin: Caller) -> None:
    account = User.objects.create_user(system.PRINCIPAL, "a password of somebody's")
    refused = admin.post(SYSTEM)
    assert refused.status == 409 and "signs in" in refused.message
    account.delete()
    for _ in range(2):
        with pytest.raises(Unsupported, match="the server's own"):
            invitations.invite(actor("admin"), "demo", system.PRINCIPAL)
        admin.post(SYSTEM)


def test_a_run_that_writes_results_has_two_tokens(admin: Caller, program: Write, settings: Any) -> None:
    text = (
        '#!/bin/sh\necho "$METALAKE_TOKEN $METALAKE_SYSTEM_TOKEN"; test "$METALAKE_TOKEN" != "$METALAKE_SYSTEM_TOKEN"\n'
    )
    settings.METALAKE_SPARK_SUBMIT = program(text + "printf '%s\\n' \"$@\"\n", "spark-submit")
    settings.METALAKE_SPARK_JARS = ("/jars/iceberg.jar",)
    refused = ran(admin, "builtin-access_review")
    assert refused["status"] == "failed" and "gcli system create" in refused["error"]
    admin.post(SYSTEM)
    job = ran(admin, "builtin-access_review", days="7")
    assert job["status"] == "succeeded", job
    first, *command = admin.get(f"{RUNS}/{job['jobId']}/logs")["log"]["text"].splitlines()
    assert first == "****** ******"
    assert command[4:6] == ["--jars", "/jars/iceberg.jar"] and command[-3:] == [
        "--days=7",
        "--as-of=",
        "--sample=10000",
    ]
    tokens = Token.objects.filter(name=f"job {job['jobId']}")
    assert sorted(tokens.values_list("user__username", flat=True)) == ["admin", "system-jobs"]
    assert all(token.revoked_at and token.within_id for token in tokens)


def test_without_the_jar_spark_fetches_it(admin: Caller, program: Write, settings: Any) -> None:
    settings.METALAKE_SPARK_SUBMIT = program("#!/bin/sh\nprintf '%s\\n' \"$@\"\n", "spark-submit")
    admin.post(SYSTEM)
    job = ran(admin, "builtin-access_review")
    text = admin.get(f"{RUNS}/{job['jobId']}/logs")["log"]["text"]
    (runtime,) = (line for line in text.splitlines() if line.startswith("spark.jars.packages="))
    assert runtime.partition("=")[2] in [pair.iceberg for pair in PAIRS] and "spark.jars.ivy=" in text


def test_a_group_that_owns_the_metalake_owns_the_catalog(admin: Caller, mia: Caller) -> None:
    people.add_group(actor("admin"), "demo", "owners")
    people.set_group_users(actor("admin"), "demo", "owners", ["mia"])
    owners.set_owner(actor("admin"), "demo", Kind.METALAKE, "demo", "owners", "group")
    assert mia.post(SYSTEM)["system"]["made"] == ALL
    rows = Securable.objects.filter(name__in=("system", *system.SCHEMAS))
    assert len(rows) == 4 and all(row.owner_group_id for row in rows)
