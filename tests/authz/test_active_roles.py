"""X-Gravitino-Active-Roles on both wires: it narrows what is allowed, never what is denied or owned.

mia reads sales by the role `sellers` and travel by the role `travellers`; `careful` denies her travel:secret.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from authz import snapshot
from authz.callers.identity import actor_of
from authz.models import User
from authz.services import people, roles
from authz.services.grant_entries import Ask
from catalogs.services import catalogs, metalakes
from metalake.kinds import Kind
from tests.catalogs.callers import Caller as Native
from tests.demo import PASSWORD
from tests.iceberg_rest.world import Caller as Iceberg
from tests.replaying import replayed

pytestmark = pytest.mark.django_db

READS = [("use_schema", "allow"), ("select_table", "allow")]
SCHEMAS = "metalakes/demo/catalogs/lake/schemas"


def admin() -> Any:
    return actor_of(User.objects.get(username="admin"))


def member(name: str, metalake: str = "demo") -> None:
    User.objects.get_or_create(username=name, defaults={"password": User.objects.get(username="admin").password})
    people.add_user(admin(), metalake, name)


def role(name: str, *asks: Ask, user: str = "mia", metalake: str = "demo") -> None:
    roles.create_role(admin(), metalake, name, securables=list(asks))
    roles.assign_roles(admin(), metalake, "user", user, [name])


@pytest.fixture(autouse=True)
def demo(db: None) -> None:
    build_demo()


@replayed
def build_demo() -> None:
    snapshot.forget()
    account = User.objects.create_superuser("admin", PASSWORD)
    metalakes.create_metalake(actor_of(account), "demo", None, {})
    catalogs.create_catalog(admin(), "demo", "lake", "relational", "lakehouse-iceberg", None, {})
    owner = Iceberg("admin")
    for levels in (("sales",), ("travel",), ("travel", "secret")):
        owner.make_namespace(*levels)
    owner.make_table("sales", "orders")
    owner.make_table("travel", "flights")
    owner.make_table("travel%1Fsecret", "routes")
    member("mia")
    enter = Ask(Kind.CATALOG, "lake", [("use_catalog", "allow")])
    role("sellers", enter, Ask(Kind.SCHEMA, "lake.sales", READS))
    role("travellers", enter, Ask(Kind.SCHEMA, "lake.travel", READS))
    role("careful", Ask(Kind.SCHEMA, "lake.travel:secret", [("select_table", "deny")]))


@dataclass
class Asked:
    status: int
    message: str


def on_native(schema: str, table: str, header: str | None, user: str = "mia", metalake: str = "demo") -> Asked:
    sent = {} if header is None else {"X-Gravitino-Active-Roles": header}
    answer = Native(user).get(f"metalakes/{metalake}/catalogs/lake/schemas/{schema}/tables/{table}", **sent)
    return Asked(answer.status, answer.body.get("message", ""))


def on_iceberg(schema: str, table: str, header: str | None, user: str = "mia", metalake: str = "demo") -> Asked:
    sent = {} if header is None else {"HTTP_X_GRAVITINO_ACTIVE_ROLES": header}
    place = schema.replace(":", "%1F")
    answer = Iceberg(user, metalake=metalake).get(f"namespaces/{place}/tables/{table}", **sent)
    return Asked(answer.status, answer.error[2] if answer.status != 200 else "")


Load = Callable[..., Asked]
both_wires = pytest.mark.parametrize("load", [on_native, on_iceberg])


@both_wires
@pytest.mark.parametrize(
    "header", [None, "", "  ", "ALL", " ALL ", "sellers,travellers", "sellers, travellers,sellers"]
)
def test_all_roles_are_in_force_unless_the_header_says_otherwise(load: Load, header: str | None) -> None:
    assert load("sales", "orders", header).status == 200
    assert load("travel", "flights", header).status == 200


@both_wires
def test_none_hides_what_roles_open(load: Load) -> None:
    assert load("sales", "orders", "NONE").status == 404
    assert load("sales", "orders", "NONE") == load("sales", "orders", "careful")


@both_wires
def test_only_what_a_listed_role_allows_is_open(load: Load) -> None:
    assert load("sales", "orders", "sellers").status == 200
    assert load("travel", "flights", "sellers").status == 404
    assert load("travel", "flights", "travellers").status == 200


@both_wires
def test_a_deny_in_a_role_that_is_not_listed_still_denies(load: Load) -> None:
    assert load("travel:secret", "routes", None).status == 404
    assert load("travel:secret", "routes", "travellers").status == 404
    roles.unassign_roles(admin(), "demo", "user", "mia", ["careful"])
    assert load("travel:secret", "routes", "travellers").status == 200


@both_wires
def test_what_the_caller_owns_stays_open(load: Load) -> None:
    assert load("sales", "orders", "NONE", user="admin").status == 200


@both_wires
def test_a_role_through_a_group_counts_as_held(load: Load) -> None:
    member("nils")
    people.add_group(admin(), "demo", "crew")
    people.set_group_users(admin(), "demo", "crew", add=["nils"])
    roles.assign_roles(admin(), "demo", "group", "crew", ["travellers"])
    assert load("travel", "flights", "travellers", user="nils").status == 200
    assert load("travel", "flights", "NONE", user="nils").status == 404


@pytest.mark.store
@both_wires
@pytest.mark.parametrize(
    "header",
    [
        ",",
        "sellers,",
        ",sellers",
        "sellers,,travellers",
        "sellers, ,travellers",
        "ALL,sellers",
        "sellers,NONE",
        "ALL,NONE",
        "ALL,ALL",
        "sel\tlers",
        "sel\0lers",
        "\xff\xfe",
    ],
)
def test_a_malformed_header_is_refused(load: Load, header: str) -> None:
    for user in ("mia", "admin"):
        answer = load("sales", "orders", header, user=user)
        assert answer.status == 400
        assert "X-Gravitino-Active-Roles" in answer.message


@both_wires
@pytest.mark.parametrize(
    "header", ["nobody", "sellers,nobody", "pilots", "all", "none", "Sellers", "a'; --", "x" * 4000]
)
def test_a_role_that_is_unknown_or_not_held_is_forbidden(load: Load, header: str) -> None:
    member("nils")
    role("pilots", user="nils")
    answer = load("sales", "orders", header)
    assert answer.status == 403
    assert answer.message.startswith("mia does not hold the role ")


@both_wires
def test_the_owner_of_everything_holds_no_role_by_that(load: Load) -> None:
    assert load("sales", "orders", "sellers", user="admin").status == 403


@both_wires
def test_a_role_of_another_metalake_is_not_held_here(load: Load) -> None:
    metalakes.create_metalake(admin(), "other", None, {})
    member("mia", "other")
    role("sailors", metalake="other")
    role("sellers", metalake="other")
    assert load("sales", "orders", "sailors").status == 403
    assert load("sales", "orders", "sellers").status == 200


@both_wires
@pytest.mark.parametrize("header", ["sellers", "nobody", "NONE", "ALL"])
def test_who_is_no_member_is_answered_as_without_the_header(load: Load, header: str) -> None:
    User.objects.create_user("otto", PASSWORD)
    for metalake in ("demo", "nowhere"):
        assert load("sales", "orders", header, "otto", metalake) == load("sales", "orders", None, "otto", metalake)
        assert load("sales", "orders", header, "otto", metalake).status == 404


@both_wires
def test_a_role_that_was_taken_away_is_out_at_once(load: Load) -> None:
    assert load("sales", "orders", "sellers").status == 200
    roles.unassign_roles(admin(), "demo", "user", "mia", ["sellers"])
    assert load("sales", "orders", "sellers").status == 403


@both_wires
def test_names_of_roles_are_utf8(load: Load) -> None:
    role("vertrieb_süd")
    assert load("sales", "orders", "vertrieb_süd,sellers".encode().decode("latin-1")).status == 200
    assert load("sales", "orders", "vertrieb_süd").status == 400


@pytest.mark.store
def test_lists_follow() -> None:
    def schemas(header: str) -> list[str]:
        answer = Native("mia").get(SCHEMAS, **{"X-Gravitino-Active-Roles": header})
        return [] if answer.status == 404 else sorted(each["name"] for each in answer["identifiers"])

    def namespaces(header: str) -> list[list[str]]:
        answer = Iceberg("mia").get("namespaces", HTTP_X_GRAVITINO_ACTIVE_ROLES=header)
        return sorted(answer.json.get("namespaces", []))

    assert schemas("ALL") == ["sales", "travel"]
    assert (schemas("sellers"), namespaces("sellers")) == (["sales"], [["sales"]])
    assert (schemas("travellers"), namespaces("travellers")) == (["travel"], [["travel"]])
    assert (schemas("NONE"), namespaces("NONE")) == ([], [])


def test_a_write_is_narrowed_too() -> None:
    role("builders", Ask(Kind.SCHEMA, "lake.sales", [("create_table", "allow")]))
    table = {"name": "refunds", "columns": [{"name": "id", "type": "long", "nullable": True}]}
    path = f"{SCHEMAS}/sales/tables"
    assert Native("mia").post(path, table, **{"X-Gravitino-Active-Roles": "sellers"}).status == 403
    assert Native("mia").post(path, table, **{"X-Gravitino-Active-Roles": "sellers,builders"}).status == 200


def test_a_path_without_a_metalake_checks_the_syntax_alone() -> None:
    me = Native("mia")
    assert me.get("authn/me", **{"X-Gravitino-Active-Roles": "nobody"})["principal"] == "mia"
    assert me.get("metalakes", **{"X-Gravitino-Active-Roles": "NONE"}).status == 200
    assert me.get("metalakes", **{"X-Gravitino-Active-Roles": "a,,b"}).status == 400


def test_who_did_not_sign_in_is_told_so_first() -> None:
    sent = {"Authorization": "Basic", "X-Gravitino-Active-Roles": "a,,b"}
    assert Native("mia").get(SCHEMAS, **sent).status == 401


def test_the_header_costs_two_statements_and_its_absence_none() -> None:
    def statements(header: str | None) -> int:
        with CaptureQueriesContext(connection) as asked:
            assert on_iceberg("sales", "orders", header).status == 200
        return len(asked)

    statements(None)
    assert statements("ALL") == statements("") == statements(None)
    # Who calls is read alone then, and the roles by their names.
    assert statements("sellers") == statements(None) + 2
