"""Deny by default: every route names a row of the operation table or is declared open, and answers nobody otherwise."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from authz.operations import FAMILIES, OPERATIONS
from iceberg_rest import urls as iceberg_urls
from iceberg_rest.routes import ROUTES
from metalake.rest.views import Endpoint

ANYONE, CALLER = "anyone", "caller"
GRANTING = tuple(sorted({row.name for row in FAMILIES["grant_on"].values()}))  # on the object of a request

# What is no endpoint of a wire, with the rows or families that what it shows asks. CALLER is about oneself alone.
# A page asks them through its services; tests/authz/test_parity.py compares its answers with them.
PAGES = {
    "": (CALLER,),
    "tree": (CALLER,),
    "objects/<int:object_id>": ("load", "list_below", "list_tables", "list_views", "read_access"),
    "objects/<int:object_id>/change": (
        "own",
        *("alter_metalake", "alter_catalog", "alter_schema", "alter_table", "alter_view", "move_table", "move_view"),
        *("enable_metalake", "enable_catalog", "choose_places"),
        *("drop_metalake", "drop_catalog", "drop_schema", "drop_table", "drop_view"),
    ),
    "objects/<int:object_id>/columns": ("load",),
    "objects/<int:object_id>/columns/change": ("load", "alter_table"),
    "objects/<int:object_id>/snapshots": ("load",),
    "objects/<int:object_id>/lineage": ("load",),
    "choose/<str:section>": (CALLER,),
    "objects/<int:object_id>/dialects": ("load",),
    "objects/<int:object_id>/dialects/change": ("load", "alter_view"),
    "objects/<int:object_id>/dialects/remove": ("load", "alter_view"),
    "objects/<int:object_id>/versions": ("load",),
    "objects/<int:object_id>/versions/compare": ("load",),
    "objects/<int:object_id>/versions/roll-back": ("load", "alter_view"),
    "objects/<int:object_id>/access": ("read_access",),
    "objects/<int:object_id>/access.csv": ("read_access",),
    "objects/<int:object_id>/access/changes": ("read_access",),
    "objects/<int:object_id>/access/compare": ("read_access",),
    "objects/<int:object_id>/why": ("load", "read_access"),
    "metalakes/<int:metalake_id>/matrix": ("load_metalake",),
    "metalakes/<int:metalake_id>/matrix/changes": ("load_metalake",),
    "objects/<int:object_id>/history": ("read_access",),
    "objects/<int:object_id>/children": ("list_below", "list_tables", "list_views", "read_access"),
    "objects/<int:object_id>/schemas/new": ("load", "create_schema", "bootstrap_schema"),
    "objects/<int:object_id>/tables/new": ("load", "create_table"),
    "objects/<int:object_id>/views/new": ("load", "create_view"),
    "metalakes/new": (CALLER,),
    "metalakes/<int:metalake_id>/people": ("list_members", "list_roles", "read_roles"),
    "metalakes/<int:metalake_id>/people/change": ("assign_roles", "manage_users", "manage_groups", "drop_role"),
    "metalakes/<int:metalake_id>/people/undo": ("manage_users", "manage_groups"),
    "metalakes/<int:metalake_id>/people/compare": ("read_access_to_metalake",),
    "metalakes/<int:metalake_id>/people/users": ("manage_users",),
    "metalakes/<int:metalake_id>/people/users/<int:user_id>": ("list_members",),
    "metalakes/<int:metalake_id>/people/users/<int:user_id>/invitation": ("manage_users",),
    "metalakes/<int:metalake_id>/people/groups": ("manage_groups",),
    "metalakes/<int:metalake_id>/people/groups/<int:group_id>": ("list_members",),
    "metalakes/<int:metalake_id>/people/roles": ("create_role",),
    "metalakes/<int:metalake_id>/people/roles/<int:role_id>": ("load_role",),
    "metalakes/<int:metalake_id>/people/roles/<int:role_id>/edit": ("load_role", "grant_on_metalake", "assign_roles"),
    "metalakes/<int:metalake_id>/plan": ("load_metalake",),
    "metalakes/<int:metalake_id>/plan/present": ("read_roles", "grant_on_catalog", "grant_on_schema"),
    "metalakes/<int:metalake_id>/jobs": (
        "list_jobs",
        "list_job_templates",
        "load_built_in_templates",
        "manage_jobs",
        "read_access_to_metalake",
    ),
    "metalakes/<int:metalake_id>/audit": ("load_metalake", "read_access_to_metalake"),
    "metalakes/<int:metalake_id>/audit.csv": ("load_metalake", "read_access_to_metalake"),
    "metalakes/<int:metalake_id>/audit.jsonl": ("load_metalake", "read_access_to_metalake"),
    "metalakes/<int:metalake_id>/reviewed": ("read_access_to_metalake",),
    "metalakes/<int:metalake_id>/jobs/change": (
        "register_job_template",
        "alter_job_template",
        "drop_job_template",
        "create_system_catalog",
        "list_jobs",
        "manage_jobs",
    ),
    "metalakes/<int:metalake_id>/jobs/template": ("register_job_template", "alter_job_template"),
    "metalakes/<int:metalake_id>/jobs/findings": ("load_view", "read_access_to_metalake"),
    "metalakes/<int:metalake_id>/jobs/start": ("load_job_template", "run_job"),
    "metalakes/<int:metalake_id>/jobs/runs/<int:run_id>": ("list_jobs", "manage_jobs"),
    "metalakes/<int:metalake_id>/jobs/runs/<int:run_id>/cancel": ("list_jobs", "manage_jobs"),
    "metalakes/<int:metalake_id>/jobs/schedules": ("list_jobs", "manage_jobs"),
    "search": (CALLER,),
    "invitations/<str:secret>": (ANYONE,),
    "objects/<int:object_id>/see-as": ("read_access",),
    "objects/<int:object_id>/users": ("read_access",),
    "objects/<int:object_id>/request": ("load",),
    "metalakes/<int:metalake_id>/access/requests": ("load_metalake", *GRANTING),
    "metalakes/<int:metalake_id>/access/requests/<int:request_id>": GRANTING,
    "metalakes/<int:metalake_id>/access/requests/<int:request_id>/withdraw": (CALLER,),
    "metalakes/<int:metalake_id>/access/findings": ("read_access_to_metalake",),
    "metalakes/<int:metalake_id>/access/findings/mend": (
        "read_access_to_metalake",
        *sorted({row.name for row in FAMILIES["own"].values()}),
    ),
    "objects/<int:object_id>/grant": ("grant_on",),
    "objects/<int:object_id>/grant/people": ("grant_on",),
    "objects/<int:object_id>/revoke": ("grant_on",),
    "metalakes/<int:metalake_id>/undo": ("load_metalake",),
    "metalakes/<int:metalake_id>/catalogs/new": ("create_catalog", "test_connection"),
    "catalogs/<int:catalog_id>/settings": ("alter_catalog",),
    "catalogs/<int:catalog_id>/nesting": ("alter_catalog",),
    "catalogs/<int:catalog_id>/outside": ("refresh_catalog",),
    "catalogs/<int:catalog_id>/refreshes": ("refresh_catalog",),
    "catalogs/<int:catalog_id>/refreshes/<int:run_id>/stop": ("refresh_catalog",),
    "catalogs/<int:catalog_id>/writes/<int:intent_id>/retry": ("refresh_catalog",),
    "catalogs/<int:catalog_id>/writes/<int:intent_id>/give-up": ("refresh_catalog",),
    "account": (CALLER,),
    "account/password": (CALLER,),
    "account/sessions": (CALLER,),
    "tokens": (CALLER,),
    "tokens/<int:token_id>/revoke": (CALLER,),
    "components": (CALLER,),
    "login": (ANYONE,),
    "logout": (ANYONE,),
    "metrics": (ANYONE,),
    "api/schema/": (ANYONE,),
    "api/schema/ui/": (ANYONE,),
}
DOCS = Path(__file__).parents[2] / "docs" / "browser.md"
METHODS = ("get", "head", "post", "put", "patch", "delete")


class Found(NamedTuple):
    path: str
    callback: Callable[..., Any]


def routes(patterns: list[Any] | None = None, prefix: str = "") -> Iterator[Found]:
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        path = prefix + str(pattern.pattern).removeprefix("^")
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, path)
        else:
            assert isinstance(pattern, URLPattern)
            yield Found(path, pattern.callback)


def endpoint_of(found: Found) -> type[Endpoint] | None:
    view = getattr(found.callback, "cls", None)
    return view if isinstance(view, type) and issubclass(view, Endpoint) else None


def is_iceberg(found: Found) -> bool:
    return found.path.startswith("iceberg/")


def is_admin(found: Found) -> bool:
    return found.path.startswith("admin/")


NATIVE = [(found.path, view) for found in routes() if (view := endpoint_of(found))]
OTHERS = [found for found in routes() if not (endpoint_of(found) or is_iceberg(found) or is_admin(found))]


def declared(view: type[Endpoint]) -> dict[str, str]:
    """Each method that a native endpoint serves, with what it asks."""
    handlers = {method: getattr(view, method) for method in METHODS if hasattr(view, method)}
    # APIView answers HEAD by GET.
    handlers.pop("head", None)
    return {method: handler.declaration.operation for method, handler in handlers.items()}


def is_known(asked: str) -> bool:
    return asked in OPERATIONS or asked in FAMILIES or asked in (ANYONE, CALLER)


def sample(path: str) -> str:
    """A URL that the route matches."""
    path = re.sub(r"\(\?P<\w+>[^)]+\)|<str:\w+>|<path:\w+>", "x", path).removesuffix("$").removesuffix("/?")
    path = re.sub(r"<int:\w+>", "1", path)
    return "/" + re.sub(r"\(\?:([^)]*)\)\??", r"\1", path)


# The native wire


def test_there_are_routes_to_look_at() -> None:
    assert len(NATIVE) > 25
    assert len(ROUTES) > 10


def test_every_native_endpoint_names_its_operation() -> None:
    assert [view.__name__ for _, view in NATIVE if not declared(view)] == [], "serves nothing"
    for path, view in NATIVE:
        for method, operation in declared(view).items():
            where = f"{method} {path}: {operation}"
            assert is_known(operation), where
            in_path, in_query = "<type>" in path, "type" in getattr(view, method).declaration.query
            assert operation in FAMILIES or not in_path, f"{where}: it is about objects of any kind: name a family"
            assert operation not in FAMILIES or in_path or in_query, f"{where}: name the row, not its family"
            assert (operation == ANYONE) == view.is_open(), f"{where}: who may ask is said twice, differently"


@pytest.mark.django_db
def test_no_native_endpoint_answers_nobody() -> None:
    asked = [(method, path, operation) for path, view in NATIVE for method, operation in declared(view).items()]
    refused = [Client().generic(method.upper(), sample(path)).status_code == 401 for method, path, _ in asked]
    assert [each for each, is_refused in zip(asked, refused, strict=True) if is_refused == (each[2] == ANYONE)] == []


# The Iceberg wire


def test_every_iceberg_route_names_its_operation() -> None:
    for route in ROUTES:
        assert route.operation in OPERATIONS, str(route)


def test_the_iceberg_urls_are_those_of_the_table() -> None:
    assert len(iceberg_urls.PATHS) == len({route.path for route in ROUTES})
    for route in ROUTES:
        path = "demo" + re.sub(r"{\w+}", "x", route.path)
        assert sum(bool(pattern.match(path)) for pattern, _, _ in iceberg_urls.PATHS) == 1, str(route)


@pytest.mark.django_db
def test_no_iceberg_route_answers_nobody() -> None:
    for route in ROUTES:
        path = "/iceberg/demo" + re.sub(r"{\w+}", "x", route.path)
        assert Client().generic(route.method, path).status_code == 401, str(route)


# Pages, and what is beside them


def test_every_other_route_says_who_reaches_it() -> None:
    """And nothing is declared that is not there."""
    assert PAGES.keys() == {found.path for found in OTHERS}


def test_a_page_asks_rows_of_the_table() -> None:
    for path, asked in PAGES.items():
        assert asked and all(map(is_known, asked)), path
        about_an_object = "object_id" in path
        assert any(name in FAMILIES for name in asked) == about_an_object, f"{path}: an object's kind is not in it"
        names_a_kind = "metalake_id" in path or "catalog_id" in path
        assert about_an_object or names_a_kind or asked in ((ANYONE,), (CALLER,)), path


def test_every_operation_has_a_page_or_a_reason_why_not() -> None:
    """And nothing is called missing that a page asks."""
    asked = {name for names in PAGES.values() for name in names}
    on_pages = (asked & OPERATIONS.keys()) | {
        row.name for name in asked & FAMILIES.keys() for row in FAMILIES[name].values()
    }
    section = DOCS.read_text().split("\n## What is not on a page\n")[1].split("\n## ")[0]
    named = {
        name
        for line in section.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    assert OPERATIONS.keys() - on_pages == named


@pytest.mark.django_db
def test_a_page_sends_strangers_to_sign_in() -> None:
    closed = [path for path, asked in PAGES.items() if asked != (ANYONE,)]
    for method, path in itertools.product(("GET", "POST"), closed):
        answer = Client().generic(method, sample(path))
        assert answer.status_code in (302, 405), f"{method} {path}"
        if answer.status_code == 302:
            assert answer["Location"].startswith("/login"), f"{method} {path}"


@pytest.mark.django_db
def test_the_admin_sends_everybody_but_operators_to_sign_in(django_user_model: Any) -> None:
    member = Client()
    member.force_login(django_user_model.objects.create_user("mia", "a long enough password"))
    for client in (Client(), member):
        for found in filter(is_admin, routes()):
            path = sample(found.path)
            if path.startswith(("/admin/login", "/admin/logout", "/admin/jsi18n")) or "(" in path:
                continue
            answer = client.get(path)
            assert answer.status_code in (301, 302, 403, 404), path
            if answer.status_code == 302:
                assert "/login" in answer["Location"], path


# The table itself


def test_every_operation_is_named_as_it_is_listed() -> None:
    for name, operation in OPERATIONS.items():
        assert operation.name == name
        assert name not in FAMILIES and name not in (ANYONE, CALLER)
        assert operation.on, name
        assert operation.owners, f"nobody owns what {name} is asked on"


def test_every_family_asks_an_object_of_its_kind() -> None:
    for name, rows in FAMILIES.items():
        for kind, operation in rows.items():
            assert OPERATIONS.get(operation.name) is operation, name
            assert kind in operation.on, f"{name} of a {kind} is {operation.name}"
