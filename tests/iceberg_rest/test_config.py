"""GET /v1/config: the prefix, the separator, and endpoints that tell the truth."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from authz.callers.identity import actor_of
from authz.models import User
from authz.operations import OPERATIONS
from catalogs.services import catalogs
from iceberg_rest.names import catalog_in, prefix_of
from iceberg_rest.urls import ROUTES
from metalake.errors import Invalid
from tests.iceberg_rest.world import Caller

NOT_SERVED = ("functions", "credentials", "/plan", "/sign", "oauth")


def test_it_works(owner: Caller) -> None:
    answer = owner.get("/iceberg/demo/v1/config?warehouse=lake")
    assert answer.status == 200
    assert answer.json["defaults"] == {}
    assert answer.json["overrides"] == {"prefix": "lake", "namespace-separator": "%1F"}
    assert "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}" in answer.json["endpoints"]
    assert "idempotency-key-lifetime" not in answer.json


def test_every_listed_endpoint_is_served_and_no_other(owner: Caller) -> None:
    """With the placeholders filled in, a listed endpoint is never 'nothing at this path' and never 405."""
    listed = owner.get("/iceberg/demo/v1/config?warehouse=lake").json["endpoints"]
    assert len(listed) == len(set(listed)) == len(ROUTES) - 1  # but for /v1/config itself
    assert not [endpoint for endpoint in listed for word in NOT_SERVED if word in endpoint]
    for endpoint in listed:
        assert re.fullmatch(r"(GET|HEAD|POST|DELETE) /v1/\{prefix\}/[a-z{}/-]+", endpoint)
        verb, path = endpoint.split(" ")
        filled = path.format(prefix="lake", namespace="nowhere", table="nothing", view="nothing")
        answer = owner.ask(verb, f"/iceberg/demo{filled}", {})
        assert answer.status != 405
        assert b"nothing at this path" not in answer.content


def test_every_route_has_its_row_in_the_operation_table() -> None:
    assert [route for route in ROUTES if route.operation not in OPERATIONS] == []


def test_without_a_warehouse(owner: Caller) -> None:
    for query in ("", "?warehouse="):
        status, type_, message = owner.get(f"/iceberg/demo/v1/config{query}").error
        assert (status, type_) == (400, "BadRequestException")
        assert "warehouse" in message


def test_a_missing_a_hidden_and_a_foreign_warehouse_look_alike(owner: Caller, member: Caller, outsider: Caller) -> None:
    def told(caller: Caller, warehouse: str) -> str:
        status, type_, message = caller.get(f"/iceberg/demo/v1/config?warehouse={warehouse}").error
        assert (status, type_) == (404, "NoSuchWarehouseException")
        return message.replace(f": {warehouse} in", ": X in")

    assert told(owner, "none") == told(member, "lake") == told(outsider, "lake") == told(outsider, "none")


def test_a_missing_metalake_looks_like_a_foreign_one(outsider: Caller) -> None:
    here = outsider.get("/iceberg/demo/v1/config?warehouse=lake").content
    nowhere = outsider.get("/iceberg/gone/v1/config?warehouse=lake").content
    assert here == nowhere.replace(b"gone", b"demo")


def test_a_disabled_catalog_says_so(owner: Caller) -> None:
    catalogs.set_catalog_enabled(_admin(), "demo", "lake", False)
    for path in ("/iceberg/demo/v1/config?warehouse=lake", "namespaces"):
        status, type_, message = owner.get(path).error
        assert (status, type_) == (403, "ForbiddenException")
        assert "disabled" in message


@pytest.mark.parametrize("name", ["größe", "a/b", "x=1", "_", "1"])
def test_a_catalog_of_any_name_is_reached_by_its_prefix_and_by_its_name(owner: Caller, name: str) -> None:
    catalogs.create_catalog(_admin(), "demo", name, "relational", "lakehouse-iceberg", None, {})
    encoded = quote(name, safe="")
    prefix = owner.get(f"/iceberg/demo/v1/config?warehouse={encoded}").json["overrides"]["prefix"]
    assert re.fullmatch(r"~?[A-Za-z0-9_-]+", prefix)
    owner.catalog = prefix
    owner.make_namespace("only here")
    owner.catalog = encoded
    assert owner.children() == [["only here"]]


@pytest.mark.parametrize("name", ["lake", "größe", "a/b=c", "雪", "a" * 64])
def test_a_prefix_can_be_read_back(name: str) -> None:
    assert catalog_in(prefix_of(name)) == name


@pytest.mark.parametrize("prefix", ["~", "~!", "~a", "~_w", "~%C3", "~AAE"])
def test_a_prefix_that_is_none(prefix: str) -> None:
    with pytest.raises(Invalid):
        catalog_in(prefix)


def _admin():
    return actor_of(User.objects.get(username="admin"))
