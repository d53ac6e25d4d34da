"""Views on the wire: create, load, list, replace, rename, register, drop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from authz.models import AuditEntry
from catalogs.models import LocationClaim
from metalake.kinds import Kind
from metalake.models import Securable
from tests.cases import each
from tests.catalogs.callers import Caller as Native
from tests.demo import add_member, give
from tests.iceberg_rest.test_commit import staged
from tests.iceberg_rest.world import COLUMNS, LATE, Caller, replacing, view_version
from tests.views_mgmt.conftest import sql, update
from views_mgmt.models import View, ViewVersion

pytestmark = [pytest.mark.store, pytest.mark.django_db]

VIEWS = "namespaces/a/views"
VIEW = f"{VIEWS}/late"
MISS = (404, "NoSuchViewException", "View does not exist: a.late")


@pytest.fixture
def home(owner: Caller) -> Caller:
    owner.make_namespace("a")
    return owner


def body(name: str = "late", *dialects: str, **parts: Any) -> dict[str, Any]:
    return {"name": name, "schema": COLUMNS, "view-version": view_version(*dialects), "properties": {}} | parts


def make(caller: Caller, name: str = "late", *dialects: str, **parts: Any) -> dict[str, Any]:
    return caller.make_view("a", name, *dialects, **parts)


def file_of(result: dict[str, Any]) -> Path:
    return Path(result["metadata-location"].removeprefix("file://"))


def names(caller: Caller, namespace: str = "a") -> list[str]:
    answer = caller.get(f"namespaces/{namespace}/views")
    assert answer.status == 200, answer.content
    return [identifier["name"] for identifier in answer.json["identifiers"]]


def test_create_load_list_and_drop(home: Caller) -> None:
    made = make(home, properties={"comment": "Late flights", "team": "ops"})
    metadata = made["metadata"]
    assert set(made) == {"metadata-location", "metadata"}
    assert metadata["current-version-id"] == 1 and metadata["schemas"][0]["schema-id"] == 0
    assert metadata["versions"][0]["representations"][0] == {"type": "sql", "sql": LATE, "dialect": "spark"}
    content = file_of(made).read_bytes()
    assert home.get(VIEW).content.endswith(b'"metadata":' + content + b"}"), "the stored bytes, unparsed"
    assert home.head(VIEW).status == 204 and names(home) == ["late"] and home.tables("a") == []
    assert Securable.objects.get(name="late").comment == "Late flights"
    assert home.delete("namespaces/a").error[1] == "NamespaceNotEmptyException"
    assert home.delete(VIEW).status == 204
    for answer in (home.get(VIEW), home.delete(VIEW), home.post(VIEW, replacing())):
        assert answer.error == MISS
    assert home.head(VIEW).status == 404 and names(home) == []


def test_each_change_is_a_new_file_and_a_version_that_stays(home: Caller) -> None:
    made = make(home)
    uuid = made["metadata"]["view-uuid"]
    replaced = home.post(VIEW, replacing("Spark", "trino", uuid=uuid, sql="SELECT 1")).json
    assert (
        replaced["metadata"]["current-version-id"] == 2 and replaced["metadata-location"] != made["metadata-location"]
    )
    again = home.post(VIEW, replacing("Spark", "trino", uuid=uuid, sql="SELECT 1")).json
    assert again == replaced, "an equal version changes nothing"
    home.post(VIEW, {"updates": [{"action": "set-properties", "updates": {"team": "ops"}}]})
    rows = ViewVersion.objects.order_by("version")
    stored = [(row.version, row.stored_as["version-id"], row.definition.dialects) for row in rows]
    assert stored == [(1, 1, ["spark"]), (2, 2, ["Spark", "trino"]), (3, 2, ["Spark", "trino"])]
    assert rows[0].stored_as["metadata-location"] == made["metadata-location"]
    row = View.objects.get()
    assert row.metadata_location == rows[2].stored_as["metadata-location"] and str(row.uuid) == uuid
    events = AuditEntry.objects.filter(event__startswith="view.").order_by("id").values_list("event", flat=True)
    assert list(events) == ["view.created", "view.replaced", "view.replaced"]
    assert len(list(file_of(made).parent.iterdir())) == 3, "no file is left of what changed nothing"


def test_versions_stay_that_icebergs_own_history_has_let_go(home: Caller) -> None:
    make(home, properties={"version.history.num-entries": "2"})
    for number in range(2, 6):
        last = home.post(VIEW, replacing(sql=f"SELECT {number}")).json
    assert [each["version-id"] for each in last["metadata"]["versions"]] == [4, 5]
    queries = [row.definition.representations[0].sql for row in ViewVersion.objects.order_by("version")]
    assert queries == [LATE, *(f"SELECT {number}" for number in range(2, 6))]


def test_refused_replaces(home: Caller) -> None:
    made = make(home, "late", "spark", "trino")
    before, uuid = file_of(made), made["metadata"]["view-uuid"]
    other = "00000000-0000-4000-8000-000000000000"
    status, type_, message = home.post(VIEW, replacing(uuid=other)).error
    assert (status, type_) == (409, "CommitFailedException")
    assert message == f"Requirement failed: view UUID does not match: expected {uuid} != {other}"
    status, type_, message = home.post(VIEW, replacing("spark")).error
    assert (status, type_) == (400, "BadRequestException") and "loss of view dialects" in message
    status, type_, message = home.post(VIEW, replacing("spark", "trino", "Trino")).error
    assert (status, type_) == (400, "IllegalArgumentException")
    assert message == "Invalid view version: Cannot add multiple queries for dialect trino"
    for wrong in (
        {"requirements": [{"type": "assert-current-schema-id", "current-schema-id": 0}]},
        {"updates": [{"action": "add-snapshot", "snapshot": {}}]},
        {"updates": [{"action": "assign-uuid", "uuid": other}]},
        {"updates": [{"action": "set-properties", "updates": {"s3.endpoint": "http://elsewhere"}}]},
        {"updates": [{"action": "set-location", "location": "file:///etc"}]},
        {"identifier": {"namespace": ["a"], "name": "other"}, "updates": []},
    ):
        assert home.post(VIEW, wrong).error[0] == 400, wrong
    assert file_of(home.get(VIEW).json) == before and list(before.parent.iterdir()) == [before]
    assert ViewVersion.objects.count() == 1
    allowed = {"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "true"}}
    assert home.post(VIEW, {"updates": [allowed, *replacing("spark")["updates"]]}).status == 200


def test_tables_and_views_share_names_and_are_not_each_other(home: Caller) -> None:
    make(home)
    home.make_table("a", "t")
    exists = 409, "AlreadyExistsException"
    assert home.post(VIEWS, body()).error == (*exists, "View already exists: a.late")
    assert home.post(VIEWS, body("t")).error == (*exists, "Table with same name already exists: a.t")
    table = {"name": "late", "schema": COLUMNS}
    assert home.post("namespaces/a/tables", table).error == (*exists, "View with same name already exists: a.late")
    assert home.post("namespaces/a/tables/late", staged(home, "other")).error == (
        *exists,
        "View with same name already exists: a.late",
    )
    assert home.get(f"{VIEWS}/t").error == (404, "NoSuchViewException", "View does not exist: a.t")
    assert home.post(f"{VIEWS}/t", replacing()).error[1] == "NoSuchViewException"
    assert home.get("namespaces/a/tables/late").error == (404, "NoSuchTableException", "Table does not exist: a.late")
    assert home.delete(f"{VIEWS}/t").status == home.delete("namespaces/a/tables/late").status == 404
    assert home.post("namespaces/b/views", body()).error[1] == "NoSuchNamespaceException"


def rename(caller: Caller, source: tuple[str, str], target: tuple[str, str]):
    named = [{"namespace": [namespace], "name": name} for namespace, name in (source, target)]
    return caller.post("views/rename", {"source": named[0], "destination": named[1]})


def test_rename_in_and_across_namespaces(home: Caller) -> None:
    made = make(home)
    home.make_namespace("b")
    home.make_table("b", "t")
    make(home, "other")
    assert rename(home, ("a", "late"), ("a", "later")).status == 204
    assert rename(home, ("a", "later"), ("b", "late")).status == 204
    assert home.get("namespaces/b/views/late").json == made, "its metadata stays as it is"
    assert names(home) == ["other"] and names(home, "b") == ["late"]
    taken = rename(home, ("b", "late"), ("a", "other")).error
    assert taken == (409, "AlreadyExistsException", "Cannot rename b.late to a.other. View already exists")
    assert rename(home, ("b", "late"), ("b", "t")).error[2] == "Cannot rename b.late to b.t. Table already exists"
    assert rename(home, ("a", "late"), ("a", "x")).error == MISS
    missing = rename(home, ("b", "late"), ("c", "late")).error
    assert missing == (404, "NoSuchNamespaceException", "Namespace does not exist: c")
    assert ViewVersion.objects.filter(view__view_name="late").count() == 3


def test_register_meets_every_version_in_the_file(home: Caller) -> None:
    make(home)
    location = home.post(VIEW, replacing("spark", "trino")).json["metadata-location"]
    register = {"name": "back", "metadata-location": location}
    assert home.post("namespaces/a/register-view", register).error[0] == 400, "it is another view's"
    home.delete(VIEW)
    back = home.post("namespaces/a/register-view", register)
    assert back.status == 200 and back.json["metadata-location"] == location
    assert home.get(f"{VIEWS}/back").content == back.content
    met = ViewVersion.objects.filter(view__view_name="back").order_by("version")
    assert [(row.stored_as["version-id"], row.definition.dialects) for row in met] == [
        (1, ["spark"]),
        (2, ["spark", "trino"]),
    ]
    assert home.post("namespaces/a/register-view", register).error == (
        *(409, "AlreadyExistsException"),
        "View already exists: a.back",
    )
    assert home.post(f"{VIEWS}/back", replacing("spark", "trino", sql="SELECT 3")).status == 200
    assert met.all().count() == 3


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b'{"format-version": 2}', b'{"format-version": 1, "view-uuid": "x"}', b"\x1f\x8bbroken"],
)
def test_register_what_is_no_view(home: Caller, content: bytes) -> None:
    made = make(home)
    home.delete(VIEW)
    file_of(made).with_name("other.metadata.json").write_bytes(content)
    location = made["metadata-location"].rpartition("/")[0] + "/other.metadata.json"
    refused = home.post("namespaces/a/register-view", {"name": "back", "metadata-location": location}).error
    assert refused[0] == 400 and names(home) == []


def test_a_view_has_a_place_of_its_own(home: Caller) -> None:
    made = make(home)
    place = made["metadata"]["location"]
    assert LocationClaim.objects.get().location == place
    overlap = home.post(VIEWS, body("other", location=f"{place}/inside")).error
    assert overlap[0] == 400 and "overlaps another table's or view's" in overlap[2]
    for location in ("file:///etc", "s3://elsewhere/x", "relative"):
        assert home.post(VIEWS, body("other", location=location)).error[0] == 400
    assert not View.objects.filter(name="other").exists()


@each(
    "parts, says",
    [
        ({"name": ""}, "name"),
        ({"name": "a\x1fb"}, ""),
        ({"schema": {"type": "struct"}}, "fields"),
        ({"view-version": {}}, "default-namespace"),
        ({"view-version": view_version() | {"representations": []}}, "at least one"),
        ({"view-version": view_version(sql=" ")}, "blank"),
        ({"view-version": view_version("spark", "SPARK")}, "multiple queries for dialect spark"),
        ({"view-version": view_version(*(f"d{number}" for number in range(33)))}, "there are 33"),
        ({"view-version": view_version(sql="x" * (1024 * 1024 + 1))}, "has 1048577 bytes"),
        ({"view-version": view_version("spa\nrk")}, "representations[0].dialect"),
        ({"properties": {"io-impl": "org.example.Evil"}}, "class"),
        ({"properties": {"version.history.num-entries": "0"}}, "version.history.num-entries must be positive"),
    ],
)
def test_bad_views_are_refused(home: Caller, parts: dict[str, Any], says: str) -> None:
    status, _, message = home.post(VIEWS, body() | parts).error
    assert status == 400 and says in message, message
    assert not View.objects.exists() and not ViewVersion.objects.exists()


def test_hidden_is_missing(home: Caller, member: Caller) -> None:
    make(home)
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema")
    assert names(member) == []
    for name in ("late", "nothing"):
        missing = 404, "NoSuchViewException", f"View does not exist: a.{name}"
        assert member.get(f"{VIEWS}/{name}").error == missing
        assert member.delete(f"{VIEWS}/{name}").error == missing
        assert member.post(f"{VIEWS}/{name}", replacing()).error == missing
        assert rename(member, ("a", name), ("a", "x")).error == missing
        assert member.head(f"{VIEWS}/{name}").status == 404


def test_each_right_allows_its_own_act(home: Caller) -> None:
    make(home)
    for name, privilege in (("rita", "select_view"), ("emil", "alter_view"), ("dora", "drop_view")):
        add_member(name)
        give(name, Kind.CATALOG, "lake", "use_catalog", "use_schema", role=f"in-{name}")
        give(name, Kind.SCHEMA, "lake.a", privilege, role=f"as-{name}")
    rita, emil, dora = Caller("rita"), Caller("emil"), Caller("dora")
    forbidden = 403, "ForbiddenException"
    assert rita.get(VIEW).status == 200 and emil.get(VIEW).status == 200
    assert rita.post(VIEW, replacing()).error[:2] == forbidden
    assert rita.delete(VIEW).error[:2] == emil.delete(VIEW).error[:2] == forbidden
    assert rita.post(VIEWS, body("other")).error[:2] == forbidden
    assert emil.post(VIEW, replacing(sql="SELECT 2")).status == 200
    assert dora.head(VIEW).status == 204 and dora.get(VIEW).error[:2] == forbidden
    assert dora.delete(VIEW).status == 204


def test_only_its_direct_owner_changes_the_sql_of_a_view_that_trino_runs_with_its_owners_rights(home: Caller) -> None:
    add_member("mia")
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema", "alter_view", "create_view")
    mia = Caller("mia")
    make(home, properties={"trino.run-as-owner": "admin"})
    status, type_, message = mia.post(VIEW, replacing(sql="SELECT * FROM payroll")).error
    assert (status, type_) == (403, "ForbiddenException") and "its owner alone" in message
    assert mia.post(VIEW, {"updates": [{"action": "set-properties", "updates": {"a": "b"}}]}).status == 200
    assert home.post(VIEW, replacing(sql="SELECT 2")).status == 200
    nested: dict[str, Any] = view_version() | {"default-namespace": ["a", "b"]}
    made = make(home, "nested", properties={"trino.run-as-owner": "admin"}, **{"view-version": nested})
    assert made["metadata"]["versions"][0]["default-namespace"] == ["a", "b"]
    spelled: dict[str, Any] = {"default-namespace": ["a:b"]}
    respelled = replacing(**spelled)
    assert mia.post(f"{VIEWS}/nested", respelled).error[0] == 403, "an engine would read its SQL in another schema"
    assert home.post(f"{VIEWS}/nested", respelled).status == 200
    make(mia, "own", properties={"trino.run-as-owner": "mia"})
    assert home.post(f"{VIEWS}/own", replacing(sql="SELECT 2")).error[0] == 403, "owning what is above is not enough"


def test_its_direct_owner_says_whether_a_view_runs_with_their_rights(home: Caller) -> None:
    add_member("mia")
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema", "alter_view", "create_view")
    mia, native = Caller("mia"), "metalakes/demo/catalogs/lake/schemas/a/views/late"

    def names_owner(caller: Caller, owner: str | None, name: str = "trino.run-as-owner") -> int:
        change: dict[str, Any] = {"action": "remove-properties", "removals": [name]}
        if owner is not None:
            change = {"action": "set-properties", "updates": {name: owner}}
        return caller.post(VIEW, {"updates": [change]}).status

    def replaced(caller: str, mode: str) -> int:
        change = update("replaceView", representations=[sql("spark")], securityMode=mode)
        return Native(caller).put(native, change).status

    def mode() -> Any:
        return Native("mia").get(native)["view"]["securityMode"]

    make(mia)
    assert names_owner(home, "admin") == names_owner(home, "mia") == replaced("admin", "DEFINER") == 403
    assert names_owner(mia, "admin") == 403 and mode() is None, "as nobody but oneself"
    assert names_owner(mia, "mia") == 200 and mode() == "DEFINER"
    assert names_owner(home, None) == names_owner(mia, "admin") == replaced("admin", "INVOKER") == 403
    assert names_owner(mia, None) == 200 and mode() is None
    assert replaced("mia", "DEFINER") == 200 and mode() == "DEFINER"
    assert mia.get(VIEW).json["metadata"]["properties"]["trino.run-as-owner"] == "mia"
    assert replaced("mia", "INVOKER") == 200 and mode() is None
    assert names_owner(mia, "mia", "TRINO.Run-As-Owner") == 400 and mode() is None
    misspelled = update("setProperty", property="Trino.run-as-owner", value="mia")
    assert Native("mia").put(native, misspelled).status == 400
    assert mia.post(VIEWS, body("other", properties={"TRINO.Run-As-Owner": "admin"})).error[0] == 400
    home.delete(VIEW)
    make(home, properties={"trino.run-as-owner": "alice"})
    assert names_owner(home, "bob") == 200, "as its owner, who owns the catalog, could make it"


def test_a_file_that_names_an_owner_in_another_spelling_is_not_registered(home: Caller) -> None:
    made = make(home, properties={"trino.run-as-owner": "admin"})
    home.delete(VIEW)
    file = file_of(made)
    file.write_bytes(file.read_bytes().replace(b"trino.run-as-owner", b"TRINO.Run-As-Owner"))
    register = {"name": "back", "metadata-location": made["metadata-location"]}
    status, _, message = home.post("namespaces/a/register-view", register).error
    assert status == 400 and "this spelling is reserved" in message
    assert not View.objects.exists()


def test_nobody_makes_a_view_that_trino_runs_with_the_rights_of_another(home: Caller) -> None:
    add_member("mia")
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema", "create_view", "create_schema")
    mia, as_admin = Caller("mia"), {"trino.run-as-owner": "admin"}
    assert mia.post("namespaces", {"namespace": ["own"]}).status == 200
    for views in (VIEWS, "namespaces/own/views"):
        status, type_, message = mia.post(views, body("late", properties=as_admin)).error
        assert (status, type_) == (403, "ForbiddenException") and "with the rights of 'admin'" in message, message
    assert not View.objects.exists() and not LocationClaim.objects.exists()
    made = make(home, "late", properties={"trino.run-as-owner": "tom"})
    home.delete(VIEW)
    register = {"name": "back", "metadata-location": made["metadata-location"]}
    assert mia.post("namespaces/a/register-view", register).error[:2] == (403, "ForbiddenException")
    assert home.post("namespaces/a/register-view", register).status == 200
    make(mia, "mine", properties={"trino.run-as-owner": "mia"})
