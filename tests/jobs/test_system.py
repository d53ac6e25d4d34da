"""The system catalog: made by the metalake's owner with one call, and written to by nobody but jobs."""

from __future__ import annotations

import pytest

from authz.models import User
from authz.services import invitations, owners, people
from catalogs.models import Catalog
from jobs.services import system
from metalake.kinds import Kind
from tests.catalogs.callers import Caller
from tests.demo import actor, add_member, give

pytestmark = pytest.mark.store

SYSTEM = "metalakes/demo/system"
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
    admin.delete("metalakes/demo/catalogs/system?force=true")
    mia.post("metalakes/demo/catalogs", catalog | {"properties": {system.MARK: "true"}})
    refused = admin.post(SYSTEM)
    assert refused.status == 409 and "another owner" in refused.message


def test_the_principal_is_nobody_who_signs_in(admin: Caller) -> None:
    invitations.invite(actor("admin"), "demo", system.PRINCIPAL)
    refused = admin.post(SYSTEM)
    assert refused.status == 409 and "signs in" in refused.message
    people.remove_user(actor("admin"), "demo", system.PRINCIPAL)
    admin.post(SYSTEM)
    with pytest.raises(Exception, match="account already"):
        invitations.invite(actor("admin"), "demo", system.PRINCIPAL)


def test_a_group_that_owns_the_metalake_owns_the_catalog(admin: Caller, mia: Caller) -> None:
    people.add_group(actor("admin"), "demo", "owners")
    people.set_group_users(actor("admin"), "demo", "owners", ["mia"])
    owners.set_owner(actor("admin"), "demo", Kind.METALAKE, "demo", "owners", "group")
    assert mia.post(SYSTEM)["system"]["made"] == ALL
    assert Catalog.objects.get(name="system").owner_group_id is not None
