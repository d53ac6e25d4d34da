"""Block G of the matrix: one question, asked by the native wire, the Iceberg wire and a page, has one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from django.db import connection, transaction
from django.test import Client

from authz import snapshot
from authz.callers.identity import actor_of
from authz.models import User
from authz.objects import by_ids
from authz.services import owners, people, roles
from authz.services.grant_entries import Ask
from catalogs.lookup import nearest
from catalogs.services import catalogs, metalakes, schemas, tables
from catalogs.table_stores import TableDraft
from formats.native.views import CreateViewRequest
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.privileges import Privilege
from tests.authz import model
from tests.authz.matrix import MAIN, OWN, TABLE, TEAM, VIEW, Case, Grant, Key, kind_of
from tests.authz.test_matrix import MIA, id_of, world_of
from tests.catalogs.callers import Caller as Native
from tests.catalogs.callers import update
from tests.iceberg_rest.test_errors import NEW_VIEW
from tests.iceberg_rest.world import COLUMNS, segment
from tests.iceberg_rest.world import Caller as Iceberg
from views_mgmt.services import views

pytestmark = [pytest.mark.store, pytest.mark.django_db, pytest.mark.timeout(300)]

ACME, LAKE, FLIGHTS, EUROPE, DAILY = (MAIN[:depth] for depth in range(1, 6))
P = Privilege
TRAVERSAL = (Grant(P.USE_CATALOG, LAKE), Grant(P.USE_SCHEMA, LAKE))
IN_CATALOG = TRAVERSAL[:1]


def asker(*grants: Grant, owns: tuple[Key, str] | None = None, member: bool = True) -> Case:
    return Case("G", "", ACME, "", grants, owns, member=member)


VIEWERS: dict[str, Case] = {
    "viewer": asker(*TRAVERSAL, Grant(P.SELECT_VIEW, DAILY, TEAM)),
    "analyst": asker(*TRAVERSAL, Grant(P.ALTER_VIEW, VIEW)),
    "cleaner": asker(*TRAVERSAL, Grant(P.DROP_VIEW, ACME), Grant(P.SELECT_VIEW, LAKE, TEAM, deny=True)),
    "author": asker(*TRAVERSAL, Grant(P.CREATE_VIEW, EUROPE), owns=(VIEW, "user")),
}
"""They ask about views alone."""

# Everything else is the admin's, who gives away the catalog and the metalake last.
ASKERS: dict[str, Case] = {
    **VIEWERS,
    "otto": asker(member=False),
    "mia": asker(),
    "visitor": asker(*IN_CATALOG),
    "guest": asker(*TRAVERSAL),
    "reader": asker(*TRAVERSAL, Grant(P.SELECT_TABLE, ACME, TEAM)),
    "writer": asker(*TRAVERSAL, Grant(P.MODIFY_TABLE, TABLE)),
    "denied": asker(*TRAVERSAL, Grant(P.SELECT_TABLE, LAKE), Grant(P.SELECT_TABLE, DAILY, TEAM, deny=True)),
    "deep": asker(*IN_CATALOG, Grant(P.USE_SCHEMA, DAILY), Grant(P.SELECT_TABLE, DAILY)),
    "maker": asker(*IN_CATALOG, Grant(P.CREATE_SCHEMA, FLIGHTS)),
    "builder": asker(*TRAVERSAL, Grant(P.CREATE_TABLE, EUROPE, TEAM)),
    "founder": asker(*IN_CATALOG, Grant(P.BOOTSTRAP_NAMESPACE, LAKE)),
    "granter": asker(*TRAVERSAL, Grant(P.MANAGE_GRANTS, EUROPE)),
    "steward": asker(*IN_CATALOG, owns=(FLIGHTS, TEAM)),
    "outsider": asker(owns=(EUROPE, "user")),
    "curator": asker(*IN_CATALOG, owns=(DAILY, "user")),
    "keeper": asker(*TRAVERSAL, owns=(TABLE, "user")),
    "director": asker(owns=(LAKE, TEAM)),
    "governor": asker(Grant(P.USE_CATALOG, LAKE, deny=True), owns=(ACME, TEAM)),
}

ENOUGH = ("author", "cleaner", "otto", "reader", "denied", "curator", "steward", "governor")
"""Who is asked on PostgreSQL: what they may do is decided in memory, and between them every statement is issued."""


class Question(NamedTuple):
    """`said` is the model's answer in its words: an operation, its object, and missing parents."""

    name: str
    said: Callable[[model.World], str]
    native: tuple[str, str, Any] | None = None
    iceberg: tuple[str, str, Any] | None = None
    page: tuple[Key, str] | None = None


def says(operation: str, on: Key, missing: int = 0, privilege: str = "") -> Callable[[model.World], str]:
    return lambda world: model.answer(world, MIA, operation, id_of(on), missing, privilege)


def moves(kind: Kind, key: Key) -> Callable[[model.World], str]:
    def said(world: model.World) -> str:
        owned, made = says("set_owner", key)(world), says(f"create_{kind}", EUROPE)(world)
        if owned != "ok" or made != "ok":
            return made if owned == "ok" else owned
        # Another asker is denied something in the old schema, and only who may lift that may move things out of it.
        return says("grant_privilege", EUROPE, privilege="use_schema")(world)

    return said


CATALOG = "metalakes/acme/catalogs/lake"
SCHEMAS = f"{CATALOG}/schemas"
_native = {key: f"{SCHEMAS}/{':'.join(key[2:])}" for key in (FLIGHTS, EUROPE, DAILY)}
_iceberg = {key: f"namespaces/{segment(*key[2:])}" for key in (FLIGHTS, EUROPE, DAILY)}
_view = f"{_native[DAILY]}/views/delays", f"{_iceberg[DAILY]}/views/delays"
_table = f"{_native[DAILY]}/tables/departures", f"{_iceberg[DAILY]}/tables/departures"
_column = {"name": "id", "type": "long", "nullable": True}
_property = {"updates": [update("setProperty", property="team", value="ops")]}
_rename = {"source": {"namespace": DAILY[2:], "name": "departures"}}


def _schema_questions(key: Key) -> Iterator[Question]:
    name, native, iceberg = key[-1], _native[key], _iceberg[key]
    below = f"{':'.join(key[2:])}:new"
    parent = "%1F".join(key[2:])
    yield Question(
        f"load {name}", says("load_schema", key), ("GET", native, None), ("GET", iceberg, None), (key, "load")
    )
    yield Question(
        f"list schemas of {name}",
        says("list_schemas", key),
        ("GET", f"{SCHEMAS}?parentSchema={':'.join(key[2:])}", None),
        ("GET", f"namespaces?parent={parent}", None),
        (key, "list"),
    )
    yield Question(
        f"list tables of {name}",
        says("list_tables", key),
        ("GET", f"{native}/tables", None),
        ("GET", f"{iceberg}/tables", None),
        (key, "list"),
    )
    yield Question(
        f"create schema in {name}",
        says("create_schema", key),
        ("POST", SCHEMAS, {"name": below, "properties": {}}),
        ("POST", "namespaces", {"namespace": [*key[2:], "new"], "properties": {}}),
    )
    yield Question(
        f"create schemas in {name}",
        says("create_schema", key, missing=1),
        ("POST", SCHEMAS, {"name": f"{below}:newer", "properties": {}}),
        ("POST", "namespaces", {"namespace": [*key[2:], "new", "newer"], "properties": {}}),
    )
    yield Question(
        f"create table in {name}",
        says("create_table", key),
        ("POST", f"{native}/tables", {"name": "arrivals", "columns": [_column], "properties": {}}),
        ("POST", f"{iceberg}/tables", {"name": "arrivals", "schema": COLUMNS}),
    )
    yield Question(
        f"alter {name}",
        says("alter_schema", key),
        ("PUT", native, _property),
        ("POST", f"{iceberg}/properties", {"updates": {"team": "ops"}}),
    )
    yield Question(f"drop {name}", says("drop_schema", key), ("DELETE", native, None), ("DELETE", iceberg, None))


def _table_questions() -> Iterator[Question]:
    native, iceberg = _table
    yield Question(
        "load table", says("load_table", TABLE), ("GET", native, None), ("GET", iceberg, None), (TABLE, "load")
    )
    yield Question(
        "alter table",
        says("commit_table", TABLE),
        ("PUT", native, _property),
        ("POST", iceberg, {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}),
    )
    yield Question(
        "rename table",
        says("alter_table", TABLE),
        ("PUT", native, {"updates": [update("rename", newName="takeoffs")]}),
        ("POST", "tables/rename", {**_rename, "destination": {"namespace": DAILY[2:], "name": "takeoffs"}}),
    )
    yield Question(
        "move table",
        moves(Kind.TABLE, TABLE),
        ("PUT", native, {"updates": [update("rename", newName="departures", newSchemaName="flights:europe")]}),
        ("POST", "tables/rename", {**_rename, "destination": {"namespace": EUROPE[2:], "name": "departures"}}),
    )
    yield Question("drop table", says("drop_table", TABLE), ("DELETE", native, None), ("DELETE", iceberg, None))


def _view_questions() -> Iterator[Question]:
    native, iceberg = _view
    source = {"source": {"namespace": DAILY[2:], "name": "delays"}}
    query = {"type": "sql", "dialect": "spark", "sql": "SELECT 1"}
    for key in (EUROPE, DAILY):
        yield Question(
            f"list views of {key[-1]}",
            says("list_views", key),
            ("GET", f"{_native[key]}/views", None),
            ("GET", f"{_iceberg[key]}/views", None),
        )
        yield Question(
            f"create view in {key[-1]}",
            says("create_view", key),
            ("POST", f"{_native[key]}/views", {"name": "late", "representations": [query]}),
            ("POST", f"{_iceberg[key]}/views", NEW_VIEW),
        )
    yield Question("load view", says("load_view", VIEW), ("GET", native, None), ("GET", iceberg, None))
    yield Question("versions of view", says("load_view", VIEW), ("GET", f"{native}/versions", None))
    yield Question(
        "alter view",
        says("alter_view", VIEW),
        ("PUT", native, _property),
        ("POST", iceberg, {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}),
    )
    yield Question("roll view back", says("alter_view", VIEW), ("POST", f"{native}/versions/1/rollback", None))
    yield Question(
        "rename view",
        says("alter_view", VIEW),
        ("PUT", native, {"updates": [update("rename", newName="late")]}),
        ("POST", "views/rename", {**source, "destination": {"namespace": DAILY[2:], "name": "late"}}),
    )
    yield Question(
        "move view",
        moves(Kind.VIEW, VIEW),
        ("PUT", native, {"updates": [update("rename", newName="delays", newSchemaName="flights:europe")]}),
        ("POST", "views/rename", {**source, "destination": {"namespace": EUROPE[2:], "name": "delays"}}),
    )
    yield Question("drop view", says("drop_view", VIEW), ("DELETE", native, None), ("DELETE", iceberg, None))


def _granting_questions() -> Iterator[Question]:
    """Asking who may do what on an object is for whoever may grant there: the page against the grant itself."""
    for key, privilege in ((ACME, "use_schema"), (LAKE, "use_schema"), (EUROPE, "use_schema"), (TABLE, "select_table")):
        full_name = ".".join([*key[1:2], ":".join(key[2:5]), *key[5:]]).strip(".") or "acme"
        yield Question(
            f"grant on {key[-1]}",
            says("grant_privilege", key, privilege=privilege),
            (
                "PUT",
                f"metalakes/acme/permissions/roles/empty/{kind_of(key)}/{full_name}/grant",
                {"privileges": [{"name": privilege, "condition": "allow"}]},
            ),
            page=(key, "grants"),
        )


VIEW_QUESTIONS = list(_view_questions())
QUESTIONS = [
    Question("load metalake", says("load_metalake", ACME), ("GET", "metalakes/acme", None), page=(ACME, "load")),
    Question(
        "list catalogs", says("list_catalogs", ACME), ("GET", "metalakes/acme/catalogs", None), page=(ACME, "list")
    ),
    Question(
        "load catalog",
        says("load_catalog", LAKE),
        ("GET", CATALOG, None),
        ("GET", "/iceberg/acme/v1/config?warehouse=lake", None),
        (LAKE, "load"),
    ),
    Question(
        "list schemas",
        says("list_schemas", LAKE),
        ("GET", SCHEMAS, None),
        ("GET", "namespaces", None),
        (LAKE, "list"),
    ),
    Question(
        "create schema",
        says("create_schema", LAKE),
        ("POST", SCHEMAS, {"name": "trains", "properties": {}}),
        ("POST", "namespaces", {"namespace": ["trains"], "properties": {}}),
    ),
    Question(
        "create schemas",
        says("create_schema", LAKE, missing=1),
        ("POST", SCHEMAS, {"name": "trains:night", "properties": {}}),
        ("POST", "namespaces", {"namespace": ["trains", "night"], "properties": {}}),
    ),
    *list(_schema_questions(FLIGHTS))[:3],
    *_schema_questions(EUROPE),
    *list(_schema_questions(DAILY))[:3],
    *_table_questions(),
    *VIEW_QUESTIONS,
    *_granting_questions(),
]


@pytest.fixture
def ids(db: None) -> dict[Key, int]:
    """The branch and its askers, made by the services; the ids of the branch."""
    snapshot.forget()
    User.objects.create_superuser("admin", "correct horse battery")

    def admin() -> Any:
        return actor_of(User.objects.get(username="admin"))

    metalakes.create_metalake(admin(), "acme", None, {})
    catalogs.create_catalog(admin(), "acme", "lake", "relational", "lakehouse-iceberg", None, {})
    schemas.create_schema(admin(), Address(metalake="acme", catalog="lake", schema=DAILY[2:]), None, {})
    draft = TableDraft(COLUMNS, None, None, {})
    tables.create_table(admin(), Address(metalake="acme", catalog="lake", schema=DAILY[2:], leaf="departures"), draft)
    delays = Address(metalake="acme", catalog="lake", schema=DAILY[2:], leaf="delays", leaf_kind=Kind.VIEW)
    query = {"type": "sql", "dialect": "spark", "sql": "SELECT id FROM departures"}
    views.create_view(admin(), delays, CreateViewRequest.model_validate({"name": "delays", "representations": [query]}))
    roles.create_role(admin(), "acme", "empty")
    table = nearest(Address(metalake="acme", catalog="lake", schema=DAILY[2:], leaf="departures"))
    view = nearest(delays)
    assert table and view
    made = {
        key: node.id for key, node in zip((*(MAIN[:depth] for depth in range(1, 6)), TABLE), table.nodes, strict=True)
    } | {VIEW: view.id}
    for name, asker in asked_here().items():
        _add(admin, name, asker, made)
    return made


def asked_here() -> dict[str, Case]:
    return {name: ASKERS[name] for name in (ASKERS if connection.vendor == "sqlite" else ENOUGH)}


def _add(admin: Callable[[], Any], name: str, asker: Case, made: dict[Key, int]) -> None:
    User.objects.create_user(name, "correct horse battery")
    if not asker.member:
        return
    people.add_user(admin(), "acme", name)
    people.add_group(admin(), "acme", f"team of {name}")
    people.set_group_users(admin(), "acme", f"team of {name}", add=[name])
    located = {key: by_ids([id])[id] for key, id in made.items()}
    full_names = {key: ".".join(found.full_name) for key, found in located.items()}
    for held in (OWN, TEAM):
        given: dict[Key, list[tuple[str, str]]] = {}
        for grant in asker.grants:
            if grant.role == held:
                given.setdefault(grant.at, []).append((grant.privilege.value, "deny" if grant.deny else "allow"))
        role = f"{held}-{name}"
        asked = [Ask(kind_of(key), full_names[key], pairs) for key, pairs in given.items()]
        roles.create_role(admin(), "acme", role, securables=asked)
        holder, holder_name = ("user", name) if held == OWN else ("group", f"team of {name}")
        roles.assign_roles(admin(), "acme", holder, holder_name, [role])
    if asker.owner:
        key, party = asker.owner
        owner, type_ = (name, "user") if party == "user" else (f"team of {name}", "group")
        owners.set_owner(admin(), "acme", Kind(kind_of(key)), full_names[key], owner, type_)


def answer_of(status: int, dropped: bool = True) -> str:
    assert status in (200, 204, 403, 404, 409), status
    if status == 404 or not dropped:
        return "unseen"
    return "forbidden" if status == 403 else "ok"  # 409 comes after the rights


def ask_native(name: str, method: str, path: str, body: Any) -> str:
    answer = Native(name).send(method, path, body)
    if answer.body.get("schema", {}).get("audit") == {}:
        return "forbidden"  # a path: its name and no more
    return answer_of(answer.status, answer.body.get("dropped", True))


def ask_iceberg(name: str, verb: str, path: str, body: Any) -> str:
    answer = Iceberg(name, "acme", "lake").ask(verb, path, body)
    if (
        (verb, answer.status) == ("GET", 200)
        and answer.json.keys() == {"namespace", "properties"}
        and not answer.json["properties"]
    ):
        return "forbidden"
    return answer_of(answer.status)


class Pages:
    """What the signed-in askers are shown."""

    def __init__(self, ids: dict[Key, int]) -> None:
        self.ids = ids
        self.clients = {name: Client() for name in asked_here()}
        for name, client in self.clients.items():
            client.force_login(User.objects.get(username=name))

    def ask(self, name: str, key: Key, shown: str) -> str:
        path = f"/objects/{self.ids[key]}" + {"list": "/children", "grants": "/access"}.get(shown, "")
        answer = self.clients[name].get(path)
        content = answer.content.decode()
        if shown == "load" and "leads to something below that you may see" in content:
            return "forbidden"
        if shown == "grants" and "You see your own ways alone" in content:
            return "forbidden"
        return answer_of(answer.status_code)


def undone(ask: Callable[..., str], *asked: Any) -> str:
    """The answer, and nothing changed."""
    before = transaction.savepoint()
    try:
        return ask(*asked)
    finally:
        transaction.savepoint_rollback(before)


def test_every_surface_gives_one_answer(ids: dict[Key, int]) -> None:
    pages = Pages(ids)
    compared, wrong, answers = 0, [], set()
    for name, case in asked_here().items():
        world = world_of(case)
        for question in VIEW_QUESTIONS if name in VIEWERS else QUESTIONS:
            said = question.said(world)
            found = {}
            if question.native:
                found["native"] = undone(ask_native, name, *question.native)
            if question.iceberg:
                found["iceberg"] = undone(ask_iceberg, name, *question.iceberg)
            if question.page and shows(world, *question.page):
                found["page"] = undone(pages.ask, name, *question.page)
            compared += len(found) > 1
            answers.add((question.name, said))
            if set(found.values()) != {said}:
                wrong.append(f"{name}: {question.name}: {said} says the model, {found}")
    assert not wrong, "\n".join([f"{len(wrong)} of {compared}", *wrong[:10]])
    assert compared >= 200, compared
    assert all((question.name, "ok") in answers for question in QUESTIONS)


def shows(world: model.World, key: Key, shown: str) -> bool:
    """Whoever may grant on a table that they may not load does it by its name: no page leads there."""
    grants_unseen = says("grant_privilege", key)(world) == "ok" and not model.Actor(world, MIA).sees(id_of(key))
    return shown != "grants" or not grants_unseen
