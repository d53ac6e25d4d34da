"""`simple` and authorization that is off: who acts without an account, and when one is made."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection

from authz.models import User
from metalake.models import Metalake, Securable
from tests.authz.issuer import Issuer, believe, good
from tests.cases import each
from tests.catalogs.callers import Answer, Caller
from tests.catalogs.conftest import admin  # noqa: F401 (fixture)
from tests.iceberg_rest.world import COLUMNS
from tests.iceberg_rest.world import Caller as IcebergCaller

pytestmark = [pytest.mark.store, pytest.mark.django_db]

SCHEMAS = "metalakes/demo/catalogs/lake/schemas"
ILLEGAL = ["x" * 129, " mia", "mia\u200b", "a\tb", "100% mia\n"]


@pytest.fixture
def simple(admin: Caller, settings: Any) -> Any:  # noqa: F811
    """A server that believes names; `anonymous` and `new` may create metalakes, and neither has an account."""
    settings.METALAKE_AUTHENTICATORS = ("simple",)
    settings.METALAKE_SERVICE_ADMINS = frozenset({"anonymous", "new"})
    return settings


@pytest.fixture
def off(simple: Any) -> Any:
    simple.METALAKE_AUTHORIZATION = "off"
    return simple


def accounts() -> set[str]:
    return set(User.objects.values_list("username", flat=True))


def nameless(method: str, path: str, body: Any = None) -> Answer:
    """As Gravitino's client calls when it is told no name."""
    return Caller("").send(method, path, body, Authorization="")


# Who creates metalakes


def test_a_named_creator_needs_no_account_before(simple: Any) -> None:
    assert nameless("GET", "metalakes")["metalakes"] == []
    assert accounts() == {"admin"}, "who reads needs none"
    made = nameless("POST", "metalakes", {"name": "acme", "properties": {"team": "data"}})["metalake"]
    assert (made["properties"], made["audit"]["creator"]) == ({"team": "data"}, "anonymous")
    account = User.objects.get(username="anonymous")
    assert not (account.has_usable_password() or account.is_staff or account.is_superuser)
    assert Metalake.objects.get(name="acme").owner_user == account
    assert [each["name"] for each in nameless("GET", "metalakes")["metalakes"]] == ["acme"]
    catalog = {"name": "sea", "type": "relational", "provider": "lakehouse-iceberg"}
    assert nameless("POST", "metalakes/acme/catalogs", catalog).status == 200
    assert nameless("POST", "metalakes/acme/catalogs/sea/schemas", {"name": "A"}).status == 200
    assert Caller("new").post("metalakes", {"name": "second"}).status == 200
    assert accounts() == {"admin", "anonymous", "new"}
    assert Caller("new").get("metalakes/acme").status == 404, "a name is no right"
    assert nameless("GET", "metalakes/demo").status == 404


def test_a_refused_creation_makes_no_account(simple: Any) -> None:
    for body in ({"name": "demo"}, {"name": "a b"}, {"name": "a", "properties": {"in-use": "true"}}):
        assert 400 <= nameless("POST", "metalakes", body).status < 500
    assert Caller("otto").post("metalakes", {"name": "acme"}).error[:2] == (403, 1008)
    assert Caller("otto").get("metalakes/demo").error[:2] == (404, 1003)
    assert Caller("otto").post(SCHEMAS, {"name": "A"}).error[:2] == (404, 1003)
    assert IcebergCaller("otto").post("namespaces", {"namespace": ["A"]}).status == 404
    assert accounts() == {"admin"}


def test_a_disabled_account_stays_out(simple: Any) -> None:
    User.objects.create_user("new", is_active=False)
    assert Caller("new").post("metalakes", {"name": "acme"}).status == 401


@each("name", ILLEGAL)
@each("authorization", ["on", "off"])
def test_what_can_be_nobody_s_name_is_refused(simple: Any, name: str, authorization: str) -> None:
    simple.METALAKE_AUTHORIZATION = authorization
    simple.METALAKE_SERVICE_ADMINS = frozenset({name})
    for answer in (Caller(name).get("metalakes"), Caller(name).post("metalakes", {"name": "acme"})):
        assert answer.status == 401 and "cannot be a user name" in answer.message
    assert IcebergCaller(name).get("namespaces").error[:2] == (401, "NotAuthorizedException")
    assert accounts() == {"admin"}


# Authorization is off


def test_whoever_is_named_may_act(off: Any) -> None:
    assert [each["name"] for each in Caller("otto").get("metalakes")["metalakes"]] == ["demo"]
    for path in ("metalakes/demo", "metalakes/demo/catalogs/lake", SCHEMAS, "metalakes/demo/users"):
        assert Caller("otto").get(path).status == 200
    assert IcebergCaller("otto").get("namespaces").status == 200
    for update in ({"@type": "setProperty", "property": "a", "value": "1"}, {"@type": "rename", "newName": "demo"}):
        assert Caller("otto").put("metalakes/demo", update).status == 200
    assert accounts() == {"admin"}, "who owns nothing needs none"
    assert Caller("otto").post("metalakes", {"name": "acme"})["metalake"]["audit"]["creator"] == "otto"
    assert accounts() == {"admin", "otto"}


def test_what_is_made_is_its_maker_s(off: Any) -> None:
    catalog = {"name": "sea", "type": "relational", "provider": "lakehouse-iceberg"}
    assert Caller("c").post("metalakes/demo/catalogs", catalog).status == 200
    assert Caller("s").post(SCHEMAS, {"name": "A:B"}).status == 200
    table = {"name": "t", "columns": [{"name": "id", "type": "long"}]}
    assert Caller("t").post(f"{SCHEMAS}/A/tables", table).status == 200
    assert Caller("r").post("metalakes/demo/roles", {"name": "readers", "securableObjects": []}).status == 200
    IcebergCaller("n").make_namespace("N")
    IcebergCaller("w").make_table("N", "w", schema=COLUMNS)
    made = Securable.objects.filter(name__in=["sea", "B", "t", "readers", "N", "w"])
    owners = dict(made.values_list("name", "owner_user__username"))
    assert owners == {"sea": "c", "B": "s", "t": "t", "readers": "r", "N": "n", "w": "w"}
    update = {"action": "set-properties", "updates": {"a": "1"}}
    assert IcebergCaller("x").post("namespaces/N/tables/w", {"requirements": [], "updates": [update]}).status == 200
    assert IcebergCaller("x").delete("namespaces/N/tables/w").status == 204
    assert Caller("x").delete("metalakes/demo/catalogs/sea?force=true")["dropped"] is True
    assert accounts() == {"admin", *"cstrnw"}, "who changes and drops owns nothing"


# Everybody else


@pytest.fixture
def issuer(settings: Any) -> Any:
    issuer = Issuer()
    believe(settings, issuer)
    yield issuer
    issuer.close()


@pytest.mark.parametrize("authorization", ["on", "off"])
def test_other_authenticators_make_no_account(simple: Any, authorization: str, issuer: Issuer) -> None:
    simple.METALAKE_AUTHORIZATION = authorization
    simple.METALAKE_AUTHENTICATORS = ("basic", "token", "oauth")
    told = {"Authorization": f"Bearer {good(issuer, sub='new')}"}
    for headers, status in [({}, 401), ({"Authorization": "Bearer mlk_nobody"}, 401), (told, 403)]:
        caller = Caller("new")
        assert caller.send("POST", "metalakes", {"name": "acme"}, **headers).status == status
        below = caller.send("POST", SCHEMAS, {"name": "A"}, **headers)
        assert below.status == (404 if status == 403 and authorization == "on" else status)
    if authorization == "off":
        assert "has no account" in below.message
    assert accounts() == {"admin"}
    simple.METALAKE_AUTHENTICATORS = ("simple", "oauth")
    assert Caller("").send("POST", "metalakes", {"name": "acme"}, **told).status == 403
    assert accounts() == {"admin"}, "a token is no name that is believed"


@pytest.mark.django_db(transaction=True)
def test_two_first_creations_make_one_account(off: Any) -> None:
    answers, ready = [], threading.Barrier(4)

    def create(name: str) -> None:
        ready.wait()
        answers.append(Caller("new").post("metalakes", {"name": name}).status)
        connection.close()

    threads = [threading.Thread(target=create, args=(f"m{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 4
    assert accounts() == {"admin", "new"}
    assert set(Metalake.objects.filter(name__startswith="m").values_list("owner_user__username", flat=True)) == {"new"}
