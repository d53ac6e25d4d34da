"""Views of catalogs of Metalake's own Iceberg tables, over the native wire: Iceberg view metadata files."""

from __future__ import annotations

import os
import threading
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from authz.models import AuditEntry
from catalogs.models import LocationClaim, ReservedPlace
from catalogs.services import vacuum
from metalake.errors import Conflict
from metalake.models import Securable
from providers.metadata_files import MetadataFiles
from tests.catalogs.callers import Caller
from tests.iceberg_rest.world import Caller as IcebergCaller
from tests.views_mgmt.conftest import DELAYS, body, sql, update
from views_mgmt.delegated import pointers
from views_mgmt.models import View, ViewVersion

pytestmark = [pytest.mark.store, pytest.mark.django_db]

SCHEMA = "metalakes/demo/catalogs/lake/schemas/nyc"
VIEWS = f"{SCHEMA}/views"
VIEW = f"{VIEWS}/delays"


@pytest.fixture
def home(admin: Caller) -> Caller:
    for schema in ("nyc", "jfk"):
        assert admin.send("POST", "metalakes/demo/catalogs/lake/schemas", {"name": schema}).status == 200
    return admin


@pytest.fixture
def delays(home: Caller) -> Caller:
    made = home.send("POST", VIEWS, body("delays", sql("spark"), sql("trino"), defaultSchema="nyc", comment="Late"))
    assert made.status == 200, made.body
    return home


def alter(caller: Caller, *updates: dict[str, Any], view: str = VIEW):
    return caller.send("PUT", view, {"updates": list(updates)})


def files() -> list[Path]:
    folder = Path(View.objects.get().metadata_location.removeprefix("file://")).parent
    return sorted(folder.iterdir())


def test_both_wires_show_the_same_view(delays: Caller) -> None:
    native = delays.send("GET", VIEW)["view"]
    assert (native["format"], native["engine"], native["securityMode"]) == ("iceberg", "iceberg", None)
    assert [each["dialect"] for each in native["representations"]] == ["spark", "trino"]
    assert native["defaultSchema"] == "nyc" and native["comment"] == "Late" and native["version"] == 1
    assert [column["name"] for column in native["columns"]] == ["carrier", "delay"]
    metadata = IcebergCaller("admin").get("namespaces/nyc/views/delays").json["metadata"]
    assert metadata["properties"] == {"comment": "Late"}
    assert metadata["versions"][0]["default-namespace"] == ["nyc"]
    assert [each["sql"] for each in metadata["versions"][0]["representations"]] == [DELAYS, DELAYS]
    details = delays.send("GET", f"{VIEWS}?details=true")["views"]
    assert [(each["name"], each["dialects"], each["format"]) for each in details] == [
        ("delays", ["spark", "trino"], "iceberg")
    ]


def test_alterations_are_one_file_and_one_version_or_none(delays: Caller) -> None:
    many = (
        update("removeRepresentation", dialect="trino"),
        update("addRepresentation", representation=sql("flink")),
        update("setProperty", property="team", value="ops"),
        update("rename", newName="late", newSchemaName="jfk"),
    )
    moved = alter(delays, *many)["view"]
    assert (moved["name"], moved["version"]) == ("late", 2)
    assert [each["dialect"] for each in moved["representations"]] == ["spark", "flink"]
    view = VIEW.replace("nyc", "jfk").replace("delays", "late")
    assert delays.send("GET", view)["view"] == moved and delays.send("GET", VIEW).status == 404
    assert alter(delays, update("setProperty", property="team", value="ops"), view=view)["view"]["version"] == 2
    assert len(files()) == 2
    events = AuditEntry.objects.filter(event__startswith="view.").order_by("id")
    assert [each.event for each in events] == ["view.created", "view.renamed", "view.altered"]
    assert events[2].details["changed"] == ["properties", "representations"]
    back = delays.send("POST", f"{view}/versions/1/rollback")["view"]
    assert back["version"] == 3 and [each["dialect"] for each in back["representations"]] == ["spark", "trino"]
    assert Securable.objects.get(name="late").comment == "Late"


def test_dropping_it_keeps_versions_and_reserves_its_place(delays: Caller) -> None:
    place = LocationClaim.objects.get().location
    assert delays.send("DELETE", VIEW)["dropped"] is True
    assert not View.objects.exists() and not LocationClaim.objects.exists()
    assert ReservedPlace.objects.get().location == place
    assert ViewVersion.objects.get().stored_as["version-id"] == 1
    assert delays.send("POST", VIEWS, body("delays"))["view"]["version"] == 1
    assert LocationClaim.objects.get().location != place


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"securityMode": "DEFINER"}, "securityMode: an Iceberg view has none"),
        ({"securityMode": "INVOKER"}, "securityMode: an Iceberg view has none"),
        ({"properties": {"comment": "x"}}, "properties.comment: is reserved"),
        ({"properties": {"s3.endpoint": "x"}}, "s3.endpoint"),
        ({"representations": [sql("spark"), sql("trino", defaultSchema="x")]}, "representations[1].defaultSchema"),
        ({"columns": [{"name": "a", "type": "varchar(3)"}]}, "columns[0]"),
    ],
)
def test_what_iceberg_cannot_hold_is_refused_with_its_place(home: Caller, parts: dict[str, Any], says: str) -> None:
    refused = home.send("POST", VIEWS, body() | parts)
    assert refused.status in (400, 405) and says in refused.message, refused.body
    assert not View.objects.exists() and not ViewVersion.objects.exists()
    home.send("POST", VIEWS, body())
    if "securityMode" not in parts and "properties" not in parts:
        assert alter(home, update("replaceView", **{"representations": [sql("spark")]} | parts)).status in (400, 405)
        assert ViewVersion.objects.count() == 1


def test_a_change_that_lost_a_race_is_made_on_the_new_state(delays: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    swap = pointers.DelegatedPointers.swap
    rivals = [update("setProperty", property="rival", value="first")]

    def second(*arguments: Any) -> Any:
        if rivals:
            assert alter(delays, rivals.pop()).status == 200
        return swap(*arguments)

    monkeypatch.setattr(pointers.DelegatedPointers, "swap", second)
    late = alter(delays, update("addRepresentation", representation=sql("flink")))["view"]
    assert late["version"] == 3 and late["properties"] == {"rival": "first"} and len(late["representations"]) == 3
    assert len(files()) == 3, "the loser's first file is removed"


def test_a_file_is_not_left_behind_when_its_row_is_refused(delays: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise Conflict("Others keep changing this object.")

    before = files()
    monkeypatch.setattr(pointers.versions, "add", fails)
    assert alter(delays, update("updateComment", newComment="x")).status == 409
    assert files() == before and delays.send("GET", VIEW)["view"]["comment"] == "Late"


def aged(path: Path) -> Path:
    then = vacuum.now() - 2 * vacuum.DAY
    os.utime(path, (then, then))
    return path


def run(command: str) -> str:
    out = StringIO()
    call_command(command, *(["--delete"] if command == "vacuum" else []), stdout=out)
    return out.getvalue()


def test_what_a_killed_process_leaves_is_vacuumed_and_the_past_stays(
    delays: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    alter(delays, update("updateComment", newComment="x"))
    past = files()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(pointers.DelegatedPointers, "swap", killed)
        alter(delays, update("updateComment", newComment="y"))
    (left,) = set(files()) - set(past)
    for path in files():
        aged(path)
    assert f"removed  {left}" in run("vacuum") and files() == past
    (entry,) = AuditEntry.objects.filter(event="view.orphan_removed")
    assert entry.details["file"] == str(left)


def test_a_change_whose_file_was_taken_writes_another(delays: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    write, stopped = MetadataFiles.write, list[Path]()

    def slow(self: MetadataFiles, *asked: Any) -> tuple[str, bytes]:
        location, content = write(self, *asked)
        if not stopped:
            stopped.append(aged(Path(location.removeprefix("file://"))))
            assert "Removed 1 metadata files" in run("vacuum")
        return location, content

    monkeypatch.setattr(MetadataFiles, "write", slow)
    assert alter(delays, update("updateComment", newComment="x"))["view"]["comment"] == "x"
    assert not stopped[0].exists() and len(files()) == 2


def test_views_without_their_files_are_named(delays: Caller) -> None:
    assert "demo.lake: 1 tables and views, 0 that cannot be read" in run("check_tables")
    files()[0].unlink()
    with pytest.raises(CommandError, match="1 tables or views cannot be read"):
        run("check_tables")


@pytest.mark.django_db(transaction=True)
def test_changes_at_once_lose_nothing(delays: Caller) -> None:
    statuses = list[int]()

    def change(name: str) -> None:
        try:
            for number in range(4):
                answer = alter(Caller("admin"), update("setProperty", property=f"{name}{number}", value="x"))
                statuses.append(answer.status)
        finally:
            connection.close()

    threads = [threading.Thread(target=change, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = statuses.count(200)
    assert set(statuses) <= {200, 409} and made >= 4
    rows = ViewVersion.objects.order_by("version")
    assert [len(row.properties) for row in rows] == list(range(made + 1)), "each builds on the one before"
    assert len(files()) == made + 1 and delays.send("GET", VIEW)["view"]["version"] == made + 1
