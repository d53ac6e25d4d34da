"""Result tables: each unit once and in all tables at once, whatever ends a run and whenever."""

from __future__ import annotations

import json

import pytest

from tests.pipelines.conftest import Lab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

PROGRAM = """
from pipelines.job import Job
from pipelines.results import ResultTable, Results, Unit
from metalake_client.failures import Failure
job = Job.from_environment()
spark = job.session()
ONE = ResultTable("audit", "one", "day date, times bigint", ("day",), "It's one.")
TWO = ResultTable("audit", "two", "day date, name string")
def results():
    return Results(job, spark, "counting", [ONE, TWO])
def unit(key, day="2026-01-01"):
    return Unit(day, key, f"day = date'{day}'")
def frames(times, day="2026-01-01"):
    return {
        ONE: lambda: spark.sql(f"select date'{day}' day, {times}L times"),
        TWO: lambda: spark.sql(f"select date'{day}' day, 'x{times}' name"),
    }
def snapshots():
    return [len(state.snapshots) for state in results()._states()]
def attempt(act):
    try:
        return act()
    except Failure as failure:
        return str(failure)
"""


def printed(lab: Lab, code: str) -> list[str]:
    return lab.python(PROGRAM + code).splitlines()


def seen(lab: Lab) -> list[tuple[str, int, str]]:
    rows = lab.rows("select o.day, times, name from system.audit.one o full join system.audit.two t on o.day = t.day")
    return sorted((row["day"], row["times"], row["name"]) for row in rows)


def test_a_unit_is_written_once_and_replaced_as_a_whole(lab: Lab) -> None:
    lines = printed(
        lab,
        """
for key, times, day in (("a", 1, "2026-01-01"), ("a", 1, "2026-01-01"), ("b", 2, "2026-01-02"), ("c", 3, "2026-01-01")):
    pending = results().write(unit(key, day), frames(times, day))
    print(len(pending.written), [row.times for row in pending.reader(ONE).collect()])
    pending.publish()
before = snapshots()
print(results().is_done(unit("c")), results().is_done(unit("a")), results().is_done(unit("b", "2026-01-02")))
results().write(unit("c"), frames(9)).publish()
print(snapshots() == before)
""",
    )
    assert lines == ["2 [1]", "0 [1]", "2 [2]", "2 [3]", "True False True", "True"]
    assert seen(lab) == [("2026-01-01", 3, "x3"), ("2026-01-02", 2, "x2")]
    assert lab.refs("audit", "one") == lab.refs("audit", "two") == {"main"}


def test_a_run_that_ended_half_way_is_gone_on_with(lab: Lab) -> None:
    half = """
class Killed(BaseException): pass
def killed(): raise Killed
try:
    results().write(unit("a"), {**frames(1), TWO: killed})
except Killed:
    print("ended")
"""
    assert printed(lab, half) == ["ended"]
    assert lab.rows("select * from system.audit.one") == []
    again = """
left = next(iter(set(results()._states()[0].refs) - {"main"}))
pending = results().write(unit("a"), {**frames(1), ONE: lambda: 1 / 0})
print(left == pending.written[0].branch)
pending.publish()
"""
    assert printed(lab, again) == ["True"]
    assert seen(lab) == [("2026-01-01", 1, "x1")]
    assert lab.refs("audit", "one") == lab.refs("audit", "two") == {"main"}


def test_of_two_runs_at_once_one_wins_and_the_other_says_so(lab: Lab) -> None:
    lines = printed(
        lab,
        """
results().write(unit("zero"), frames(7)).publish()
first, second = results().write(unit("a"), frames(1)), results().write(unit("b"), frames(2))
print(attempt(second.publish))
print(attempt(first.publish))
same, twin = results().write(unit("c"), frames(3)), results().write(unit("c"), frames(3))
print(attempt(same.publish), attempt(twin.publish))
""",
    )
    assert lines == ["None", "Another run of counting wrote 2026-01-01 meanwhile, and its results stand.", "None None"]
    assert seen(lab) == [("2026-01-01", 3, "x3")]
    assert lab.refs("audit", "one") == {"main"}


def test_a_dropped_table_is_made_anew_and_a_changed_one_refused(lab: Lab) -> None:
    printed(lab, 'results().write(unit("a"), frames(1)).publish()')
    lab.call("DELETE", "catalogs", "system", "schemas", "audit", "tables", "one")
    printed(lab, 'results().write(unit("a"), frames(1)).publish()')
    assert seen(lab) == [("2026-01-01", 1, "x1")]
    (line,) = printed(lab, 'spark.sql("alter table system.audit.one add column more int")\nprint(attempt(results))')
    assert "system.audit.one were changed by hand (more int)" in line and "drop the table" in line


def test_an_empty_unit_takes_the_rows_away(lab: Lab) -> None:
    printed(
        lab,
        """
results().write(unit("a"), frames(1)).publish()
nothing = {table: lambda frame=frame: frame().where("false") for table, frame in frames(1).items()}
results().write(unit("b"), nothing).publish()
results().write(unit("b"), {ONE: None, TWO: None}).publish()
""",
    )
    assert seen(lab) == []


def test_no_token_stands_where_others_read(lab: Lab) -> None:
    (line,) = printed(
        lab,
        """
import json
rows = [row.asDict() for row in spark.sql("SET -v").collect()] + [row.asDict() for row in spark.sql("SET").collect()]
conf = spark.sparkContext.getConf().getAll()
results()
plan = spark.table(ONE.full_name)._jdf.queryExecution().toString()
print(json.dumps([str(rows), str(conf), plan, repr(job)]))
""",
    )
    for text in [*json.loads(line), lab.spark.log.read_text()]:
        assert lab.token not in text and lab.system_token not in text
