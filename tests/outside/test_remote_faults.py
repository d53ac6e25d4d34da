"""Glue throttles, its keys expire, its lists lag behind: clear answers, the mirror is read on, and nothing is lost."""

from __future__ import annotations

import time
from datetime import timedelta
from threading import Thread
from typing import Any

import orjson
import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from catalogs.models import Catalog, Intent, RefreshRun, Tombstone
from metalake.models import Securable
from outside import recovery, refresh, steps
from providers import circuit_breaker, remote
from providers.glue.mapping import table_input
from tests.catalogs.callers import Caller
from tests.catalogs.conftest import admin  # noqa: F401 (fixture)
from tests.formats.hive.views.samples import of_spark
from tests.glue import ANY, Fault, Glue
from tests.iceberg_rest.world import basic
from tests.outside.crashes import lapse, settle_all
from tests.providers.glue_catalogs import files, settings, tables_of_engines

pytestmark = pytest.mark.django_db(transaction=True)

CATALOG = "/api/metalakes/demo/catalogs/aws"
TABLES = f"{CATALOG}/schemas/flights/tables"
VIEWS = f"{CATALOG}/schemas/flights/views"
ICEBERG = "/iceberg/demo/v1/aws/namespaces"
COLUMNS = [{"name": "carrier", "type": "string"}, {"name": "delay", "type": "integer"}]
ICEBERG_COLUMNS = {"type": "struct", "fields": [{"id": 1, "name": "carrier", "type": "string", "required": False}]}
HIVE = {"columns": COLUMNS, "properties": {"table_type": "HIVE"}}
VIEW = {"columns": COLUMNS, "representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT * FROM delays"}]}
SET = {"updates": [{"@type": "setProperty", "property": "team", "value": "ops"}]}
NEW_KEY, NEW_SECRET = "AKIANEWNEWNEWEXAMPLE", "a-new-secret-0123456789-a-new-secret"


def ask(method: str, path: str, body: Any = None) -> Any:
    """By `admin`, through the wire that the path is of."""
    content = b"" if body is None else orjson.dumps(body)
    headers = {"Authorization": basic("admin")}
    client = Client(raise_request_exception=False)
    return client.generic(method, path, content, content_type="application/json", headers=headers, RAW_URI=path)


def told(answer: Any) -> str:
    body = orjson.loads(answer.content)
    return str(body["error"]["message"] if "error" in body else body["message"])


MIRRORED = (
    f"{CATALOG}/schemas",
    f"{CATALOG}/schemas/flights",
    TABLES,
    f"{TABLES}/delays",
    ICEBERG,
    f"{ICEBERG}/flights",
    VIEWS,
    f"{VIEWS}/arrivals",
)
READS = (
    f"{CATALOG}/schemas?refresh=true",
    f"{TABLES}?refresh=true",
    f"{TABLES}/delays?refresh=true",
    f"{VIEWS}?refresh=true",
    f"{VIEWS}/arrivals?refresh=true",
)
WRITES = (
    ("POST", f"{CATALOG}/schemas", {"name": "hr"}),
    ("POST", TABLES, {"name": "late", **HIVE}),
    ("POST", f"{ICEBERG}/flights/tables", {"name": "late", "schema": ICEBERG_COLUMNS}),
    ("PUT", f"{TABLES}/weather", SET),
    ("DELETE", f"{TABLES}/weather", None),
    ("POST", ICEBERG, {"namespace": ["hr"]}),
    ("POST", VIEWS, {"name": "later", **VIEW}),
    ("PUT", f"{VIEWS}/arrivals", SET),
    ("PUT", f"{VIEWS}/arrivals", {"updates": [{"@type": "rename", "newName": "others"}]}),
    ("DELETE", f"{VIEWS}/arrivals", None),
)


@pytest.fixture
def aws(admin: Caller, glue: Glue, monkeypatch: pytest.MonkeyPatch) -> Glue:  # noqa: F811
    """The catalog `aws`, whose answers are good for an hour and were just given."""
    circuit_breaker.forget_all()
    glue.create_bucket("lake")
    glue.client().create_database(DatabaseInput={"Name": "flights"})
    for table in tables_of_engines():
        glue.client().create_table(DatabaseName="flights", TableInput=table)
    view = table_input(of_spark()) | {"Name": "arrivals"}  # beside late_flights, which cannot be read
    glue.client().create_table(DatabaseName="flights", TableInput=view)
    given = {"name": "aws", "type": "relational", "provider": "glue", "properties": settings(glue, cache_ttl="3600")}
    assert ask("POST", "/api/metalakes/demo/catalogs", given).status_code == 200
    assert [ask("GET", path).status_code for path in MIRRORED] == [200] * len(MIRRORED)
    monkeypatch.setattr(steps, "READ_BACK", 0.01)
    return glue


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_pause", lambda failure, attempt: 0.0)


def names(path: str) -> set[str]:
    return {one["name"] for one in orjson.loads(ask("GET", path).content)["identifiers"]}


def mirror_is_read() -> bool:
    return [ask("GET", path).status_code for path in MIRRORED] == [200] * len(MIRRORED)


def held(glue: Glue) -> dict[str, set[str]]:
    client = glue.client()
    databases = [one["Name"] for one in client.get_databases()["DatabaseList"]]
    return {name: {table["Name"] for table in client.get_tables(DatabaseName=name)["TableList"]} for name in databases}


def line() -> circuit_breaker.Line:
    return circuit_breaker.line_of(Catalog.objects.get(name="aws").pk)


def comes_back(answer: Any) -> bool:
    """Told that nothing was done, and when to come back."""
    return answer.status_code == 503 and int(answer.get("Retry-After", 0)) > 0 and "throttles" in told(answer)


# Throttling


@pytest.mark.store
def test_everything_is_throttled(aws: Glue, no_pauses: None) -> None:
    before = held(aws)
    aws.fail(ANY, Fault.THROTTLED, times=None)
    for _ in range(3):
        answers = [ask("GET", path) for path in READS] + [ask(*write) for write in WRITES]
        assert all(map(comes_back, answers)), [(answer.status_code, answer.content) for answer in answers]
        assert mirror_is_read()
    assert not line().is_open and not line().health.failures, "who throttles is not away"
    aws.heal()
    assert held(aws) == before
    assert [ask("GET", path).status_code for path in READS] == [200] * len(READS)
    for write in WRITES[:2]:
        assert ask(*write).status_code == 200, write
    settle_all()
    assert set(Intent.objects.values_list("state", flat=True)) <= {"committed", "aborted"}
    assert held(aws) == {"flights": before["flights"] | {"late"}, "hr": set()}
    assert names(f"{TABLES}?refresh=true") == held(aws)["flights"] - {"late_flights", "arrivals"}


@pytest.mark.store
def test_throttling_begins_in_the_middle_of_a_write(aws: Glue, no_pauses: None) -> None:
    """The table is made, and whether it is cannot be asked."""
    aws.fail("CreateTable", Fault.REPLY_LOST)
    aws.fail("GetTable", Fault.THROTTLED, times=None)
    made = ask("POST", TABLES, {"name": "late", **HIVE})
    assert made.status_code == 504 and "not known yet" in told(made), made.content
    assert "late" in held(aws)["flights"] and "late" not in names(TABLES)
    lapse()
    recovery.sweep()
    assert Intent.objects.get(verb="create_table").state == Intent.State.OPEN
    assert mirror_is_read()
    aws.heal()
    settle_all()
    assert Intent.objects.get(verb="create_table").state == Intent.State.COMMITTED
    assert "late" in names(TABLES)
    assert Securable.objects.get(name="late").creator == "admin"


def test_a_write_that_is_done_needs_no_more_answers(aws: Glue, no_pauses: None) -> None:
    live = {"@type": "setProperty", "property": "cache-ttl", "value": "0"}
    assert ask("PUT", CATALOG, {"updates": [live]}).status_code == 200
    aws.fail("GetTable", Fault.THROTTLED, times=None, after=1)
    made = ask("POST", TABLES, {"name": "late", **HIVE})
    assert made.status_code == 200 and orjson.loads(made.content)["table"]["name"] == "late", made.content
    aws.heal()
    assert ask("POST", f"{CATALOG}/schemas", {"name": "hr"}).status_code == 200
    aws.fail("GetDatabase", Fault.THROTTLED, times=None, after=3)
    shown = ask("PUT", f"{CATALOG}/schemas/hr", SET)
    assert shown.status_code == 200 and b'"team":"ops"' in shown.content, shown.content
    assert Intent.objects.exclude(state=Intent.State.COMMITTED).count() == 0


def test_a_walk_waits_while_it_is_throttled(aws: Glue, no_pauses: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if pauses.count(5) == 3:
            aws.heal()

    monkeypatch.setattr("outside.calls.time.sleep", sleep)
    aws.fail("GetTables", Fault.THROTTLED, times=None)
    run = refresh.carry_on(refresh.begin(Catalog.objects.get(name="aws").pk, here=True).pk)
    assert run is not None and (run.state, run.error) == (RefreshRun.State.DONE, "")
    assert pauses.count(5) == 3


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_minute_of_throttling(aws: Glue, monkeypatch: pytest.MonkeyPatch) -> None:
    """In real time: a write and a walk are under way as it begins."""
    aws.fail("CreateTable", Fault.REPLY_LOST)
    aws.fail("GetTable", Fault.THROTTLED, times=None)
    assert ask("POST", TABLES, {"name": "late", **HIVE}).status_code == 504
    aws.fail(ANY, Fault.THROTTLED, times=None)
    begun = refresh.begin(Catalog.objects.get(name="aws").pk, here=True).pk

    def walk() -> None:
        try:
            refresh.carry_on(begun)
        finally:
            connection.close()

    walking = Thread(target=walk)
    walking.start()
    until, asked = time.monotonic() + 60, 0
    while time.monotonic() < until:
        answers = [ask("GET", READS[asked % 3]), ask(*WRITES[asked % 4])]
        assert all(answer.status_code in (503, 409) for answer in answers), [each.content for each in answers]
        assert mirror_is_read()
        recovery.sweep()
        asked += 1
    assert asked > 5 and not line().is_open
    aws.heal()
    until = time.monotonic() + 60
    while Intent.objects.exclude(lease_until=None).exists() and time.monotonic() < until:
        recovery.sweep()
        time.sleep(1)
    assert Intent.objects.get(verb="create_table").state == Intent.State.COMMITTED
    walking.join(60)
    run = RefreshRun.objects.get(pk=begun)
    assert (run.state, run.error) == (RefreshRun.State.DONE, "")
    assert "late" in names(TABLES)


# Keys


def test_keys_expire_and_new_ones_are_given(aws: Glue, no_pauses: None) -> None:
    before = held(aws)
    aws.expired.add(aws.access_key)
    answers = [ask("GET", path) for path in READS] + [ask(*write) for write in WRITES]
    for answer in answers:
        assert answer.status_code in (502, 503), answer.content
        assert told(answer) == "The AWS credentials have expired; give the catalog new ones."
        assert not any(secret in answer.content.decode() for secret in (aws.access_key, aws.secret_key))
    assert mirror_is_read()
    assert not line().is_open, "who refuses keys is not away"
    given = {"aws-access-key-id": NEW_KEY, "aws-secret-access-key": NEW_SECRET}
    updates = [{"@type": "setProperty", "property": name, "value": value} for name, value in given.items()]
    altered = ask("PUT", CATALOG, {"updates": updates})
    assert altered.status_code == 200 and NEW_SECRET not in altered.content.decode(), altered.content
    assert [ask("GET", path).status_code for path in READS] == [200] * len(READS)
    for write in (WRITES[0], WRITES[2], WRITES[3]):
        assert ask(*write).status_code == 200, write
    aws.heal()
    assert held(aws) == {"flights": before["flights"] | {"late"}, "hr": set()}


@pytest.mark.parametrize(("among", "made"), [(TABLES, HIVE), (VIEWS, VIEW)], ids=["table", "view"])
def test_keys_expire_in_the_middle_of_a_write(aws: Glue, no_pauses: None, among: str, made: dict[str, Any]) -> None:
    """What was made is found once there are keys that work."""
    aws.fail("CreateTable", Fault.REPLY_LOST)
    aws.fail("GetTable", Fault.EXPIRED, times=None)
    assert ask("POST", among, {"name": "late", **made}).status_code == 504
    lapse()
    recovery.sweep()
    intent = Intent.objects.get()
    assert intent.state == Intent.State.OPEN and "have expired" in intent.last_failure
    aws.heal()
    settle_all()
    assert "late" in names(among) and Intent.objects.get().state == Intent.State.COMMITTED


def test_keys_expire_between_the_calls_of_a_view_s_rename(aws: Glue, no_pauses: None) -> None:
    """Its second entry is made and the first one stays: the sweeper takes the second one back, or drops the first."""
    before = held(aws)
    aws.fail("DeleteTable", Fault.EXPIRED, times=None)
    refused = ask("PUT", f"{VIEWS}/arrivals", {"updates": [{"@type": "rename", "newName": "others"}]})
    assert refused.status_code in (502, 504), refused.content
    aws.heal()
    settle_all()
    assert held(aws) == before and names(f"{VIEWS}?refresh=true") == {"late_flights", "arrivals"}
    assert Intent.objects.get().state == Intent.State.ABORTED


def test_keys_expire_before_and_in_the_middle_of_an_iceberg_commit(aws: Glue, no_pauses: None) -> None:
    """Nothing was changed and the engine is told so: an unknown outcome would cost it the job, and its files."""
    assert ask(*WRITES[2]).status_code == 200
    table = f"{ICEBERG}/flights/tables/late"
    before, kept = orjson.loads(ask("GET", table).content)["metadata-location"], files(aws)
    commit = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"owner": "ops"}}]}
    for operation in (ANY, "UpdateTable", "s3:PUT"):
        aws.fail(operation, Fault.EXPIRED, times=None)
        refused = ask("POST", table, commit)
        assert refused.status_code == 409 and "have expired" in told(refused), (operation, refused.content)
        aws.heal()
        assert orjson.loads(ask("GET", f"{table}?refresh=true").content)["metadata-location"] == before, operation
        assert files(aws) == kept, operation
    done = orjson.loads(ask("POST", table, commit).content)
    assert done["metadata-location"] != before and done["metadata"]["properties"]["owner"] == "ops"


# Lists that lag behind


@pytest.mark.store
def test_what_is_not_listed_yet_is_neither_buried_nor_hidden(aws: Glue, admin: Caller) -> None:  # noqa: F811
    aws.stop_listing_new_ones()
    admin.post("metalakes/demo/catalogs/aws/schemas", {"name": "hr"})["schema"]
    admin.post("metalakes/demo/catalogs/aws/schemas/flights/tables", {"name": "late", **HIVE})["table"]
    admin.post("metalakes/demo/catalogs/aws/schemas/hr/tables", {"name": "staff", **HIVE})["table"]

    def all_are_there() -> bool:
        listed = names(f"{CATALOG}/schemas?refresh=true"), names(f"{TABLES}?refresh=true")
        loaded = ask("GET", f"{CATALOG}/schemas/hr/tables/staff?refresh=true").status_code
        return "hr" in listed[0] and "late" in listed[1] and loaded == 200

    assert all_are_there()
    run = refresh.carry_on(refresh.begin(Catalog.objects.get(name="aws").pk, here=True).pk)
    assert run is not None and (run.state, run.dropped, run.held_back) == ("done", 0, 0)
    Securable.objects.update(create_time=timezone.now() - timedelta(hours=1))
    assert all_are_there(), "it is not listed for longer than anybody expects"
    run = refresh.carry_on(refresh.begin(Catalog.objects.get(name="aws").pk, here=True).pk)
    assert run is not None and (run.state, run.dropped) == ("done", 0)
    assert all_are_there() and not Tombstone.objects.exists()
    aws.client().delete_table(DatabaseName="flights", Name="late")
    assert "late" not in names(f"{TABLES}?refresh=true"), "what is really gone is buried"
    assert Tombstone.objects.get().full_name == "aws.flights.late"
