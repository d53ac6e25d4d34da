"""What caches between may do with answers of the wires, whose bodies differ by caller."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from metalake.kinds import Kind
from tests.demo import give
from tests.iceberg_rest.world import Caller, basic

BY_CALLER = {"Authorization", "X-Iceberg-Access-Delegation", "X-Gravitino-Active-Roles"}
TABLE = "namespaces/a/tables/t"
NATIVE = "/api/metalakes/demo"
KEPT, NOT_KEPT = "private, no-cache", "no-store"


def caching(answer: Any) -> tuple[str, bool]:
    fields = {name.strip() for name in answer.headers["Vary"].split(",")}
    return answer.headers["Cache-Control"], fields >= BY_CALLER


@pytest.fixture
def table(owner: Caller) -> Caller:
    owner.make_namespace("a")
    owner.make_table("a", "t")
    return owner


def test_every_answer_says_who_may_keep_it(table: Caller, outsider: Caller) -> None:
    loaded = table.get(TABLE)
    same = table.get(TABLE, HTTP_IF_NONE_MATCH=loaded.headers["ETag"])
    assert same.status == 304
    missing, listed = table.get("namespaces/a/tables/none"), table.get("namespaces")
    for answer in (loaded, same, missing, listed, table.head(TABLE), outsider.get(TABLE)):
        assert caching(answer) == (KEPT, True), answer
    unknown = table.get(TABLE, HTTP_AUTHORIZATION=basic("admin", "wrong"))
    for answer in (unknown, table.post("namespaces", {"namespace": ["b"]})):
        assert caching(answer) == (NOT_KEPT, True), answer


def test_so_does_every_answer_of_the_native_wire(table: Caller) -> None:
    client = Client(raise_request_exception=False, headers={"Authorization": basic("admin")})
    state = "/api/bulk/metalakes/demo/access/state"  # which is streamed
    for path in (NATIVE, f"{NATIVE}/catalogs", f"{NATIVE}/none", state, "/configs", "/health/ready"):
        assert caching(client.get(path)) == (KEPT, True), path
    secret = client.post("/api/tokens", {"name": "mine"}, content_type="application/json")
    assert secret.status_code in (200, 201), secret.content
    assert caching(secret) == (NOT_KEPT, True)
    assert caching(Client().get(NATIVE)) == (NOT_KEPT, True)
    described = Client().get("/api/schema/")
    assert (described["Cache-Control"], described["Vary"]) == ("public, no-cache", "Accept")
    assert Client().get("/", RAW_URI="api")["Cache-Control"] == NOT_KEPT


def test_a_tag_of_anothers_answer_opens_nothing(table: Caller, member: Caller) -> None:
    """The tag is made of the metadata file and the mode, all that a load differs by; rights are asked before it."""
    tag = table.get(TABLE).headers["ETag"]
    for sent in (tag, f"W/{tag}", "*"):
        assert member.get(TABLE, HTTP_IF_NONE_MATCH=sent).status == 404
    give(member.name, Kind.CATALOG, "lake", "use_catalog", "use_schema", "select_table")
    assert member.get(TABLE, HTTP_IF_NONE_MATCH=tag).status == 304
    for path in (f"{TABLE}?snapshots=refs", "namespaces/a/tables/u"):
        table.ask("POST", "namespaces/a/tables", {"name": "u", "schema": {"type": "struct", "fields": []}})
        assert member.get(path, HTTP_IF_NONE_MATCH=tag).status == 200
