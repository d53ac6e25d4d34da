"""The audit and the record of use by day: whole days once, late rows in their own day, and what had no use for long."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pipelines import audit_rollup
from tests.pipelines.conftest import Lab
from tests.servers import STORE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

HOUR = 3600
TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
AUDIT, USE = "system.audit.changes", "system.audit.daily_use"


class Past:
    """Rows of days before today in the store of a server, of one metalake."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.metalake = self._one(
            "SELECT id FROM metalake_securable WHERE kind = 'metalake' AND name = ?", lab.metalake
        )
        self.admin = self._one("SELECT id FROM authz_user WHERE username = 'admin'")

    def _do(self, statement: str, *values: Any) -> Any:
        with closing(sqlite3.connect(self.lab.server.home / STORE, timeout=20)) as store, store:
            return store.execute(statement, values).fetchall()

    def _one(self, statement: str, *values: Any) -> int:
        return int(self._do(statement, *values)[0][0])

    def object(self, name: str) -> int:
        return self._one("SELECT max(id) FROM metalake_securable WHERE name = ?", name)

    def all_is_old(self) -> None:
        """What happened until now was long ago."""
        self._do("UPDATE authz_auditentry SET at = '2020-01-01 10:00:00' WHERE metalake_id = ?", self.metalake)

    def audit(self, back: int, event: str, name: str, **details: str) -> None:
        at = (TODAY - timedelta(days=back) + timedelta(hours=5)).strftime("%Y-%m-%d %H:%M:%S")
        self._do(
            "INSERT INTO authz_auditentry (at, actor, event, kind, object_id, full_name, metalake_id, details, "
            "request_id) VALUES (?, 'mia', ?, 'table', 0, ?, ?, ?, '')",
            *(at, event, name, self.metalake, json.dumps(details)),
        )

    def use(self, back: int, on: str, times: int = 1, outcome: str = "allowed", hour: int = 5) -> None:
        """Use by admin on a day so many days back."""
        about, caller, question = (
            self._id("useobject", object_id=self.object(on), metalake_id=self.metalake),
            self._id("usecaller", user_id=self.admin, claimed="[]", digest="0" * 64),
            self._id("usequestion", operation="load_table", outcome=outcome, wire="iceberg", engine="spark"),
        )
        began = int((TODAY - timedelta(days=back)).timestamp()) // HOUR + hour
        self._do("INSERT INTO authz_use VALUES (?, ?, ?, ?, ?, 60, 120)", began, about, caller, question, times)

    def _id(self, table: str, **fields: Any) -> int:
        marks = ", ".join("?" * len(fields))
        self._do(f"INSERT OR IGNORE INTO authz_{table} ({', '.join(fields)}) VALUES ({marks})", *fields.values())
        where = " AND ".join(f"{name} = ?" for name in fields)
        return self._one(f"SELECT id FROM authz_{table} WHERE {where}", *fields.values())


@pytest.fixture
def past(lab: Lab) -> Past:
    return begun(lab)


def begun(lab: Lab) -> Past:
    """Two tables, of which one is used, and days of audit and use before today."""
    properties = {"warehouse": str(lab.server.environment["METALAKE_WAREHOUSE"]) + "/" + lab.metalake}
    lake = {"name": "lake", "type": "relational", "provider": "lakehouse-iceberg", "properties": properties}
    lab.call("POST", "catalogs", body=lake)
    lab.call("POST", "catalogs", "lake", "schemas", body={"name": "nyc"})
    for name in (f"used_{lab.metalake}", f"idle_{lab.metalake}"):
        table = {"name": name, "columns": [{"name": "id", "type": "long"}]}
        lab.call("POST", "catalogs", "lake", "schemas", "nyc", "tables", body=table)
    made = Past(lab)
    made.all_is_old()
    made.audit(3, "table.altered", "lake.nyc.a", changed="x")
    made.audit(2, "access.refused", "DELETE /api/metalakes/m", why="no")
    made.audit(2, "table.dropped", "lake.nyc.b")
    for back in (5, 3, 2):
        made.use(back, f"used_{lab.metalake}", times=back)
    made.use(2, f"idle_{lab.metalake}", outcome="refused")
    return made


def days(lab: Lab, table: str, what: str = "count(*)") -> dict[int, int]:
    """By how many days ago."""
    rows = lab.rows(f"select day, {what} n from {table} where day >= date'2021-01-01' group by day")
    return {(TODAY.date() - datetime.fromisoformat(row["day"]).date()).days: row["n"] for row in rows}


def roll(lab: Lab, *given: str, code: int = 0, before: str = "") -> str:
    ended, output = lab.run("pipelines.audit_rollup", "--days=2", *given, before=before)
    assert ended == code, output
    return output


def snapshots(lab: Lab) -> list[int]:
    names = ("changes", "refusals", "use", "daily_use", "days", "dormant_objects", "dormant_people")
    return [lab.rows(f"select count(*) n from system.audit.{name}.snapshots")[0]["n"] for name in names]


def test_days_are_written_once_and_what_had_no_use_is_told(lab: Lab, past: Past) -> None:
    assert "4 days were written" in roll(lab)
    assert days(lab, AUDIT) == {3: 1, 2: 1} and days(lab, "system.audit.refusals") == {2: 1}
    assert days(lab, USE, "sum(allowed)") == {5: 5, 3: 3, 2: 2}
    assert days(lab, USE, "sum(refused)")[2] == 1
    (refusal,) = lab.rows("select * from system.audit.refusals")
    assert (refusal["actor"], refusal["asked"], refusal["why"]) == ("mia", "DELETE /api/metalakes/m", "no")
    idle = lab.rows("select array_join(path, '.') name, kind, last_at from system.audit.dormant_objects")
    names = {row["name"] for row in idle}
    assert f"lake.nyc.idle_{lab.metalake}" in names and "system" in names
    assert not names & {"lake", "lake.nyc", f"lake.nyc.used_{lab.metalake}"}, "what is used keeps what it lies in"
    report = lab.call("GET", "access", "dormant")
    assert {each["on"]["fullName"] for each in report["objects"]} == names
    assert report["report"]["days"] == 2 and report["report"]["objectCount"] == len(idle)
    assert [each["user"] for each in report["people"]] == [lab.system["principal"]]
    before = snapshots(lab)
    assert "Nothing is new" in roll(lab)
    assert snapshots(lab) == before, "an unchanged day is not written"


@pytest.mark.long
def test_what_comes_late_goes_to_its_own_day(lab: Lab, past: Past) -> None:
    roll(lab)
    past.audit(3, "table.altered", "lake.nyc.late", changed="y")
    past.use(2, f"used_{lab.metalake}", times=10, hour=7)
    assert "2 days were written" in roll(lab)
    assert days(lab, AUDIT) == {3: 2, 2: 1} and days(lab, USE, "sum(allowed)") == {5: 5, 3: 3, 2: 12}
    assert days(lab, "system.audit.use") == {5: 1, 3: 1, 2: 3}
    lab.rows("drop table system.audit.changes")
    roll(lab)
    assert days(lab, AUDIT) == {3: 2, 2: 1} and days(lab, USE, "sum(allowed)") == {5: 5, 3: 3, 2: 12}


@pytest.mark.long
def test_a_run_that_is_killed_leaves_what_a_clean_one_leaves(lab: Lab, past: Past) -> None:
    killed = (
        "from unittest import mock\nfrom pipelines.results import Pending\n"
        "mock.patch.object(Pending, 'publish', side_effect=KeyboardInterrupt).start()"
    )
    assert "Interrupted" in roll(lab, code=130, before=killed)
    assert days(lab, AUDIT) == days(lab, USE) == {}
    past.audit(3, "table.altered", "lake.nyc.late", changed="y")
    roll(lab, before="from unittest import mock\nmock.patch.stopall()")
    assert days(lab, AUDIT) == {3: 2, 2: 1} and days(lab, USE, "sum(allowed)") == {5: 5, 3: 3, 2: 2}


@pytest.mark.long
def test_nothing_is_said_of_a_time_before_the_record(lab: Lab, past: Past) -> None:
    assert "does not go back 30 days" in roll(lab, "--days=30")
    assert "report" not in lab.call("GET", "access", "dormant")


@pytest.mark.parametrize("given", ["--days=0", "--days=x", "--late=-1", "--more=1", "days=3"])
def test_a_wrong_argument_is_named(
    given: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("METALAKE_URL", "METALAKE_METALAKE", "METALAKE_TOKEN"):
        monkeypatch.setenv(name, "x")
    assert audit_rollup.main([given]) == 2
    assert given.split("=")[0].strip("-") in capsys.readouterr().err
