"""The API's description: valid, complete, and browsable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.staticfiles.finders import find
from django.core.management import call_command
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.validation import validate_schema

from metalake.rest.views import Endpoint

METHODS = {"get", "post", "put", "patch", "delete"}


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return SchemaGenerator().get_schema(request=None, public=True)


def operations(description: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for path in description["paths"].values() for method, item in path.items() if method in METHODS]


def endpoints(patterns: list[Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        path = prefix + str(pattern.pattern).lstrip("^")
        if isinstance(pattern, URLResolver):
            yield from endpoints(pattern.url_patterns, path)
        elif isinstance(pattern, URLPattern):
            view = getattr(pattern.callback, "cls", None)
            if view is not None and issubclass(view, Endpoint) and path.startswith("api/metalakes"):
                for method in METHODS & set(dir(view)):
                    yield plain(path), method


def plain(path: str) -> str:
    """Neither the names of parameters nor the trailing slash matter."""
    return re.sub(r"\(\?P<\w+>[^)]+\)|<\w+:\w+>|{\w+}", "{}", path).strip("/").removesuffix("/?$")


def test_it_is_valid(description: dict[str, Any]) -> None:
    assert description["openapi"].startswith("3.1")
    validate_schema(description)


def test_it_is_made_without_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("spectacular", "--validate", "--fail-on-warn")
    assert "openapi: 3.1" in capsys.readouterr().out


def test_every_endpoint_of_the_native_wire_is_in_it(description: dict[str, Any]) -> None:
    described = {(plain(path), method) for path, item in description["paths"].items() for method in METHODS & set(item)}
    served = set(endpoints(get_resolver().url_patterns))
    assert len(served) > 25
    assert served <= described


def test_every_reference_leads_somewhere(description: dict[str, Any]) -> None:
    text = OpenApiJsonRenderer().render(description).decode()
    known = set(description["components"]["schemas"])
    referred = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    assert referred
    assert referred <= known


def test_each_operation_has_a_name_of_its_own_and_says_what_it_does(description: dict[str, Any]) -> None:
    found = [operation for operation in operations(description) if operation["tags"] != ["schema"]]
    names = [operation["operationId"] for operation in found]
    assert sorted(names) == sorted(set(names))
    assert [operation["operationId"] for operation in found if not operation.get("summary")] == []


def test_bodies_replies_and_refusals_are_described(description: dict[str, Any]) -> None:
    create = description["paths"]["/api/metalakes/{metalake}/catalogs/{catalog}/schemas/{schema}/tables"]["post"]
    content = create["requestBody"]["content"]["application/json"]["schema"]
    assert content == {"$ref": "#/components/schemas/CreateTableRequest"}
    reply = create["responses"]["200"]["content"]["application/json"]["schema"]
    assert reply["properties"]["table"] == {"$ref": "#/components/schemas/TableReply"}
    assert reply["required"] == ["code", "table"]
    error = create["responses"]["4XX"]["content"]["application/json"]["schema"]
    assert error == {"$ref": "#/components/schemas/ErrorReply"}
    assert create["security"] == [{"basic": []}, {"bearer": []}]
    assert [parameter["name"] for parameter in create["parameters"]] == ["metalake", "catalog", "schema"]


def test_kinds_of_change_are_told_apart_by_their_type(description: dict[str, Any]) -> None:
    schemas = description["components"]["schemas"]
    updates = schemas["UpdatesRequest"]["properties"]["updates"]["items"]
    assert updates["discriminator"]["propertyName"] == "@type"
    assert set(updates["discriminator"]["mapping"]) == {"rename", "updateComment", "setProperty", "removeProperty"}
    assert len(schemas["TableUpdate"]["discriminator"]["mapping"]) == 15


@pytest.mark.django_db
def test_the_server_hands_it_out() -> None:
    answer = Client().get("/api/schema/?format=json")
    assert answer.status_code == 200
    assert answer.json()["openapi"].startswith("3.1")


@pytest.mark.django_db
def test_its_page_loads_only_what_we_serve() -> None:
    answer = Client().get("/api/schema/ui/")
    assert answer.status_code == 200
    page = answer.content.decode()
    assert "swagger-ui" in page
    assets = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert assets
    assets.remove(script := "/api/schema/ui/?script=")
    assert Client().get(script)["Content-Type"] == "application/javascript"
    for asset in assets:
        assert asset.startswith("/static/"), asset
        assert find(asset.removeprefix("/static/")), asset
