"""Views of a catalog whose provider offers none: stored here, in rows alone."""

from __future__ import annotations

import json
from itertools import chain

import pytest
from django.test import Client
from django.urls import reverse

from authz.callers.identity import issue_token
from authz.models import AuditEntry, User
from metalake.kinds import Kind
from metalake.models import Securable
from server.http.hot_reads import FastReads
from tests.cases import each
from tests.catalogs.callers import Caller
from tests.demo import PASSWORD, give
from tests.iceberg_rest.twins import Asked, read
from tests.providers.world import World
from tests.views_mgmt.conftest import DELAYS, SCHEMA, VIEWS, body, sql, update
from views_mgmt import versions
from views_mgmt.models import ViewMeta, ViewVersion
from views_mgmt.services import history

pytestmark = [pytest.mark.store, pytest.mark.django_db]
VIEW = f"{VIEWS}/delays"


@pytest.fixture
def delays(flights: World, admin: Caller) -> None:
    made = admin.send("POST", VIEWS, body(properties={"team": "ops"}, comment="By carrier"))
    assert made.status == 200, made.body


def alter(caller: Caller, *updates: dict, view: str = VIEW):
    return caller.send("PUT", view, {"updates": list(updates)})


def test_it_is_created_loaded_listed_and_dropped(flights: World, admin: Caller) -> None:
    made = admin.send("POST", VIEWS, body("delays", sql("spark"), sql("trino"), defaultCatalog="lake"))["view"]
    assert [each["dialect"] for each in made["representations"]] == ["spark", "trino"]
    assert made["securityMode"] == "DEFINER" and made["version"] == 1 and made["format"] == "metalake"
    loaded = admin.send("GET", VIEW)["view"]
    assert loaded == made and loaded["defaultCatalog"] == "lake"
    assert loaded["columns"][1]["comment"] == "minutes" and loaded["audit"]["creator"] == "admin"
    assert [each["name"] for each in admin.send("GET", VIEWS)["identifiers"]] == ["delays"]
    details = admin.send("GET", f"{VIEWS}?details=true")["views"]
    assert details[0]["dialects"] == ["spark", "trino"] and details[0]["broken"] is None
    assert admin.send("DELETE", VIEW)["dropped"] is True
    assert admin.send("DELETE", VIEW)["dropped"] is False
    assert admin.send("GET", VIEW).status == 404


def test_sql_is_stored_byte_for_byte(flights: World, admin: Caller) -> None:
    text = "  SELECT 'Zürich\t\u202e' -- 航班\r\n FROM\u00a0t;\n"
    admin.send("POST", VIEWS, body("odd", sql("Spark", text)))
    loaded = admin.send("GET", f"{VIEWS}/odd")["view"]["representations"]
    assert loaded == [{"type": "sql", "dialect": "Spark", "sql": text, "defaultCatalog": None, "defaultSchema": None}]


def test_every_alteration_is_one_version_or_none(delays: None, admin: Caller) -> None:
    many = [
        update("addRepresentation", representation=sql("trino")),
        update("updateComment", newComment="Late carriers"),
        update("setProperty", property="tier", value="gold"),
        update("removeProperty", property="team"),
    ]
    altered = alter(admin, *many)["view"]
    assert (
        altered["version"] == 2 and altered["comment"] == "Late carriers" and altered["properties"] == {"tier": "gold"}
    )
    refused = alter(
        admin, update("setProperty", property="a", value="b"), update("removeRepresentation", dialect="flink")
    )
    assert refused.status == 400 and "it has spark, trino" in refused.message
    assert admin.send("GET", VIEW)["view"]["version"] == 2
    alter(admin, update("setProperty", property="tier", value="gold"))
    assert admin.send("GET", VIEW)["view"]["version"] == 2, "what changes nothing is no version"
    alter(admin, update("updateRepresentation", representation=sql("TRINO", "SELECT 1")))
    now = admin.send("GET", VIEW)["view"]["representations"]
    assert [(each["dialect"], each["sql"]) for each in now] == [("spark", DELAYS), ("TRINO", "SELECT 1")]
    replaced = alter(admin, update("replaceView", representations=[sql("hive")]))["view"]
    assert replaced["columns"] == [] and replaced["comment"] is None and replaced["properties"] == {"tier": "gold"}
    last = alter(admin, update("removeRepresentation", dialect="hive"))
    assert last.status == 400 and "only dialect" in last.message


def test_a_rename_may_come_with_other_changes(delays: None, admin: Caller) -> None:
    give("admin", Kind.CATALOG, "flights", "use_catalog")
    moved = alter(admin, update("rename", newName="late"), update("updateComment", newComment="x"))["view"]
    assert (moved["name"], moved["version"], moved["comment"]) == ("late", 2, "x")
    assert admin.send("GET", VIEW).status == 404
    admin.send("POST", "metalakes/demo/catalogs/flights/schemas", {"name": "jfk"})
    move, same = update("rename", newName="late", newSchemaName="jfk"), update("updateComment", newComment="x")
    there = alter(admin, move, same, view=f"{VIEWS}/late")
    assert there["view"]["version"] == 3
    assert admin.send("GET", VIEWS.replace("nyc", "jfk") + "/late").status == 200
    events = AuditEntry.objects.filter(event__startswith="view.").order_by("id").values_list("event", flat=True)
    assert list(events) == ["view.created", "view.renamed", "view.altered", "view.renamed"], "nothing else changed"


def test_versions_are_listed_loaded_compared_and_rolled_back_to(delays: None, admin: Caller) -> None:
    alter(admin, update("addRepresentation", representation=sql("trino")), update("updateComment", newComment="Two"))
    versions = admin.send("GET", f"{VIEW}/versions")
    assert [each["version"] for each in versions["versions"]] == [2, 1] and versions["next"] is None
    assert admin.send("GET", f"{VIEW}/versions/1")["version"]["comment"] == "By carrier"
    differences = {each["part"]: each for each in admin.send("GET", f"{VIEW}/versions/1/compare/2")["differences"]}
    assert set(differences) == {"comment", "representations.trino"}
    assert differences["comment"]["before"] == "By carrier" and differences["representations.trino"]["before"] is None
    back = admin.send("POST", f"{VIEW}/versions/1/rollback")["view"]
    assert back["version"] == 3 and back["comment"] == "By carrier" and len(back["representations"]) == 1
    for wrong, status in (("99", 404), ("0", 400), ("x", 400), ("99999999999", 400)):
        assert admin.send("GET", f"{VIEW}/versions/{wrong}").status == status


@pytest.mark.django_db(transaction=True)
def test_the_fast_path_loads_what_was_read_before_and_never_an_earlier_version(delays: None, admin: Caller) -> None:
    """Its connection is another one, which sees what was committed."""
    fast, path = FastReads(), f"/api/{VIEW}"
    headers = {"Authorization": f"Bearer {issue_token(User.objects.get(username='admin'), 'fast')}"}

    def straight() -> int | None:
        question = fast.find(read(Asked("GET", path, headers)))
        assert question
        answered = fast.answer(question, closes=False)
        return json.loads(answered.content.partition(b"\r\n\r\n")[2])["view"]["version"] if answered else None

    for number in (1, 2):
        assert straight() is None, "what is long to read is left to the others"
        assert admin.send("GET", VIEW)["view"]["version"] == number
        assert straight() == number
        alter(admin, update("updateComment", newComment=f"after {number}"))
    alter(admin, update("updateRepresentation", representation=sql("spark", DELAYS + " " * versions.SMALL)))
    assert admin.send("GET", VIEW)["view"]["version"] == 4
    assert straight() is None


def test_a_secret_among_the_properties_is_shown_by_no_answer_and_no_page(delays: None, admin: Caller) -> None:
    for secret in ("sesame-one", "sesame-two"):
        alter(admin, update("setProperty", property="jdbc-password", value=secret))
    compared = admin.send("GET", f"{VIEW}/versions/2/compare/3")
    assert [each["part"] for each in compared["differences"]] == ["properties.jdbc-password"]
    owner = Client()
    assert owner.login(username="admin", password=PASSWORD)
    view = ViewMeta.objects.get()
    pages = [f"/objects/{view.pk}{page}" for page in ("", "/versions", "/versions/compare?before=2&after=3")]
    pages += [reverse("admin:views_mgmt_viewversion_change", args=[row.pk]) for row in view.versions.all()]
    User.objects.filter(username="admin").update(is_staff=True, is_superuser=True)
    shown = [owner.get(page) for page in pages]
    assert {page.status_code for page in shown} == {200}
    answers = [str(compared.body), *(page.content.decode() for page in shown)]
    answers += [str(admin.send("GET", f"{VIEW}{path}").body) for path in ("", "/versions", "/versions/2")]
    assert not [answer for answer in answers if "sesame" in answer]
    assert all("******" in answer for answer in answers[:1] + answers[-3:])


def test_a_list_of_versions_ends_early_where_their_sql_is_long(
    delays: None, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        alter(admin, update("updateComment", newComment=str(number)))
    long = sql("spark", DELAYS + " " * 10_000)
    for number in (1, 2):
        alter(admin, update("updateRepresentation", representation=long | {"sql": long["sql"] + "--" * number}))
    for largest, shown in ((0, [2]), (21_000, range(3, 7)), (1_000_000, [7])):
        monkeypatch.setattr(history, "LARGEST_LIST", largest)
        numbers, before = list[list[int]](), ""
        while not numbers or before:
            page = admin.send("GET", f"{VIEW}/versions{before}")
            numbers.append([each["version"] for each in page["versions"]])
            before = f"?before={page['next']}" if page["next"] else ""
        assert len(numbers[0]) in shown and [*chain(*numbers)] == [7, 6, 5, 4, 3, 2, 1], numbers


def test_a_dropped_view_keeps_its_versions_and_frees_its_name(delays: None, admin: Caller) -> None:
    admin.send("DELETE", VIEW)
    assert admin.send("POST", VIEWS, body()).status == 200
    assert ViewMeta.objects.filter(view_name="delays").count() == 2
    gone = ViewMeta.objects.exclude(deleted_at=0).get()
    assert ViewVersion.objects.filter(view=gone, deleted_at=gone.deleted_at).count() == 1
    assert admin.send("GET", VIEW)["view"]["version"] == 1, "it is another view"


def test_tables_and_views_share_names_and_are_not_each_other(delays: None, flights: World, admin: Caller) -> None:
    table = {"name": "delays", "columns": [{"name": "id", "type": "long"}]}
    refused = admin.send("POST", f"{SCHEMA}/tables", table)
    assert refused.status == 409 and "View with same name already exists: nyc.delays" in refused.message
    assert admin.send("GET", f"{SCHEMA}/tables/delays").status == 404
    flights.put_table("nyc", "carriers")
    assert [each["name"] for each in admin.send("GET", f"{SCHEMA}/tables")["identifiers"]] == ["carriers"]
    refused = admin.send("POST", VIEWS, body("carriers"))
    assert refused.status == 409 and "Table with same name already exists: nyc.carriers" in refused.message
    assert admin.send("GET", f"{VIEWS}/carriers").status == 404


def test_a_table_that_turns_up_outside_under_the_name_of_a_view_is_left_out(
    delays: None, flights: World, admin: Caller
) -> None:
    flights.put_table("nyc", "delays")
    flights.put_table("nyc", "carriers")
    listed = admin.send("GET", f"{SCHEMA}/tables?refresh=true")["identifiers"]
    assert [each["name"] for each in listed] == ["carriers"]
    assert admin.send("GET", VIEW).status == 200
    assert Securable.objects.filter(name="delays").count() == 1


def test_only_its_direct_owner_changes_the_sql_of_a_definer_view(delays: None, admin: Caller, mia: Caller) -> None:
    give("mia", Kind.CATALOG, "flights", "use_catalog")
    give("mia", Kind.SCHEMA, "flights.nyc", "use_schema", "alter_view", "create_view", role="editor")
    body_change = update("updateRepresentation", representation=sql("spark", "SELECT * FROM payroll"))
    other_columns = update("replaceView", representations=[sql("spark")], columns=[{"name": "a", "type": "long"}])
    for change in (body_change, other_columns):
        refused = alter(mia, change)
        assert refused.status == 403 and "owner alone" in refused.message
    assert alter(mia, update("setProperty", property="seen", value="yes"))["view"]["version"] == 2
    assert mia.send("POST", f"{VIEW}/versions/1/rollback").status == 200, "the SQL is the same"
    assert mia.send("POST", VIEWS, body("own")).status == 200
    assert alter(admin, body_change, view=f"{VIEWS}/own").status == 403, "owning what is above is not enough"
    assert alter(mia, body_change, view=f"{VIEWS}/own").status == 200
    invoker = body("plain", securityMode="INVOKER")
    assert admin.send("POST", VIEWS, invoker)["view"]["securityMode"] == "INVOKER"
    assert alter(mia, body_change, view=f"{VIEWS}/plain").status == 200
    as_owner, as_invoker = (
        update("replaceView", representations=[sql("spark")], securityMode=m) for m in ("DEFINER", "INVOKER")
    )
    refused = alter(mia, as_owner, view=f"{VIEWS}/plain")
    assert refused.status == 403 and "by that user alone" in refused.message, "it would run with the rights of another"
    assert alter(admin, as_owner, view=f"{VIEWS}/plain")["view"]["securityMode"] == "DEFINER"
    assert alter(mia, as_invoker, view=f"{VIEWS}/plain").status == 403
    assert alter(admin, as_invoker, view=f"{VIEWS}/plain")["view"]["securityMode"] == "INVOKER"


def test_a_definer_view_is_not_handed_on_and_becomes_invoker_when_its_owner_goes(
    flights: World, admin: Caller, mia: Caller
) -> None:
    give("mia", Kind.CATALOG, "flights", "use_catalog")
    give("mia", Kind.SCHEMA, "flights.nyc", "use_schema", "create_view", role="editor")
    assert mia.send("POST", VIEWS, body()).status == 200
    owner = {"name": "admin", "type": "USER"}
    handed = admin.send("PUT", "metalakes/demo/owners/view/flights.nyc.delays", owner)
    assert handed.status == 403 and "drop it" in handed.message
    assert admin.send("DELETE", "metalakes/demo/users/mia").status == 200
    now = admin.send("GET", VIEW)["view"]
    assert now["securityMode"] == "INVOKER" and now["version"] == 2
    assert admin.send("PUT", "metalakes/demo/owners/view/flights.nyc.delays", owner).status == 200
    assert alter(admin, update("updateComment", newComment="mine")).status == 200


@each(
    "parts, status, says",
    [
        ({"representations": []}, 400, "at least one"),
        ({"representations": [sql("spark"), sql("SPARK")]}, 400, "two in dialect 'spark'"),
        ({"representations": [sql("spark", " \n")]}, 400, "representations[0].sql: must not be blank"),
        ({"representations": [sql(" ")]}, 400, "representations[0].dialect"),
        ({"representations": [sql("spa\nrk")]}, 400, "representations[0].dialect"),
        ({"representations": [sql("spa\u202erk")]}, 400, "representations[0].dialect"),
        ({"representations": [sql("d" * 256)]}, 400, "dialect: must have at most 255 characters"),
        ({"representations": [sql(f"d{number}") for number in range(33)]}, 413, "at most 32"),
        ({"representations": [sql("spark", "x" * (1024 * 1024 + 1))]}, 413, "at most 1048576"),
        ({"representations": [{"type": "dataframe", "dialect": "x", "sql": "y"}]}, 400, "representations[0].type"),
        ({"columns": [{"name": "a", "type": "long"}, {"name": "a", "type": "date"}]}, 400, "two of the name"),
        ({"columns": [{"name": "a", "type": "long"}, {"name": "A", "type": "date"}]}, 400, "differ only in case"),
        ({"name": "late "}, 400, "blanks"),
        ({"securityMode": "OWNER"}, 400, "securityMode"),
        ({"name": ""}, 400, "name"),
        ({"name": "*"}, 400, ""),
        ({"unknown": 1}, 400, "unknown"),
    ],
)
def test_bad_requests_say_what_is_wrong(flights: World, admin: Caller, parts: dict, status: int, says: str) -> None:
    refused = admin.send("POST", VIEWS, body() | parts)
    assert refused.status == status and says in refused.message, refused.body
    assert not ViewMeta.objects.exists() and not Securable.objects.filter(kind=Kind.VIEW).exists()
