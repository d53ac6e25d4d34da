"""SQL is read in a process of its own, which ends whatever the SQL is and whatever becomes of who asked."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from formats.sql.parsing import TOO_DEEP
from formats.sql.results import OutputColumn, Source, SourceColumn
from metalake.blocking import BeginAgain, short_reads
from metalake.errors import ProviderBusy, TooManyRequests
from tests.waiting import eventually
from views_mgmt.sql import process, program
from views_mgmt.sql.process import Question, SqlCaller, readings, translation

WRITE_ENDLESS = '"SELECT a FROM t UNION ALL " * 8000 + "SELECT 1"'
ENDLESS: str = eval(WRITE_ENDLESS)  # takes minutes, and has too few words to be refused
ANN, BEN, CAT, DAN = (SqlCaller(name, metalake) for name, metalake in [("ann", 1), ("ben", 1), ("cat", 1), ("dan", 2)])
PLAIN = Question("SELECT * FROM t", "trino", "lake", "shop", {Source("lake", "shop", "t"): {"id": "long"}})


def programs(parent: int | None = None) -> list[psutil.Process]:
    """The processes that read SQL for a process, this one unless another is named."""
    return [
        each
        for each in psutil.Process(parent).children()
        if each.status() != psutil.STATUS_ZOMBIE and "views_mgmt.sql.program" in each.cmdline()
    ]


def problem_of(sql: str, dialect: str = "trino") -> str:
    (reading,) = readings([Question(sql, dialect)], ANN)
    return " ".join(each.text for each in reading.problems)


def test_questions_are_answered_in_their_order() -> None:
    long, broken, plain = readings(
        [Question("SELECT 1 AS one -- " + "x" * 99, "spark"), Question("SELECT", "x"), PLAIN], ANN
    )
    assert long.columns is not None and long.columns[0].name == "one"
    assert broken.problems and broken.is_generic
    assert plain.sources == (Source("lake", "shop", "t"),)
    assert plain.columns == (OutputColumn("id", "long", (SourceColumn(0, "id"),)),)
    assert readings([], ANN) == [] and not programs()


def test_a_translation_is_made_there() -> None:
    assert translation("SELECT array_agg(a ORDER BY b) FROM t", "trino", "spark", ANN).not_carried_over
    assert translation("SELECT", "trino", "spark", ANN).problems


def test_what_takes_too_long_is_ended_and_the_next_call_works(settings: Any) -> None:
    settings.METALAKE_SQL_TIMEOUT = 1
    assert problem_of(ENDLESS) == "It could not be read within 1 s." and not programs()
    assert [each.text for each in translation(ENDLESS, "trino", "spark", ANN).problems] == [
        "It could not be read within 1 s."
    ]
    settings.METALAKE_SQL_TIMEOUT = 60
    assert readings([PLAIN], ANN)[0].columns


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT " + "(" * 3000 + "1" + ")" * 3000, TOO_DEEP),
        ("SELECT " + "CASE WHEN a THEN " * 3000 + "1" + " END" * 3000, TOO_DEEP),
        ("SELECT " + "[" * 5000, TOO_DEEP),
        ("SELECT a" + "::int" * 10_000, TOO_DEEP),
        ("SELECT " + "a, " * 100_000 + "a", "It has 200,002 words and signs; more than 50,000 are not read here."),
        ("SELECT '" + "x" * (2**20 - 9), "What begins with “'” here has no end."),
        ("SELECT '" + "x" * (2**20 - 9) + "'", ""),
        ("SELECT \x00 \ud800 FROM", "“FROM” is not expected."),
        ("x" * (2**21 + 1), process.NOT_REACHED),
    ],
)
def test_hostile_sql_has_an_answer(sql: str, problem: str) -> None:
    assert problem_of(sql) == problem


def test_columns_are_given_as_far_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MOST_TEXT", 500)
    wide = replace(
        PLAIN, columns_of={source: dict.fromkeys(map(str, range(50)), "long") for source in PLAIN.columns_of}
    )
    columns = [each.columns for each in readings([PLAIN, wide, wide], ANN)]
    assert columns[0] and not columns[1] and not columns[2]


def test_more_nesting_is_read_than_in_the_server() -> None:
    assert problem_of("SELECT " + "(" * 150 + "1" + ")" * 150) == ""


def test_memory_is_bounded() -> None:
    """The program with a limit that a query of 48,000 words needs more than."""
    line = f'{{"sql": "SELECT {"a1, " * 24_000} a1", "dialect": "trino", "columns_of": []}}\n'
    run = "from views_mgmt.sql import program; program.MEMORY = 64 * 1024 * 1024; program.main()"
    ended = subprocess.run(
        [sys.executable, "-c", run, "60", "10"], input=line, text=True, capture_output=True, cwd=process.ROOT
    )
    assert program.TOO_MUCH_MEMORY in ended.stdout or "MemoryError" in ended.stderr


def test_a_program_that_dies_is_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "views_mgmt" / "sql").mkdir(parents=True)
    (tmp_path / "views_mgmt" / "sql" / "program.py").write_text("import os; os.abort()")
    monkeypatch.setattr(process, "ROOT", tmp_path)
    assert problem_of("SELECT 1") == program.FAILED


def test_a_caller_and_a_metalake_have_their_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads holds a place of each, in all processes together: the others are answered meanwhile."""
    monkeypatch.setattr(process, "PATIENCE", 0.01)
    with process._place(ANN):
        with pytest.raises(TooManyRequests, match="already") as second:
            readings([PLAIN], ANN)
        assert second.value.retry_after == 1
        with pytest.raises(TooManyRequests):
            readings([PLAIN], SqlCaller("ann", 2))
        assert readings([PLAIN], BEN)[0].columns
        with process._place(BEN):
            with pytest.raises(ProviderBusy, match="Try again"):
                readings([PLAIN], CAT)
            assert readings([PLAIN], DAN)[0].columns, "the last place is never that metalake's"
            with process._place(DAN), pytest.raises(ProviderBusy):
                readings([PLAIN], SqlCaller("eve", 3))
    assert readings([PLAIN], ANN)[0].columns  # nothing of the refusals is left


def test_few_of_a_metalake_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever would be behind them is told at once, so that waiting takes few threads of a process."""
    monkeypatch.setattr(process, "PATIENCE", 60)
    with ThreadPoolExecutor() as threads, process._place(ANN), process._place(BEN):
        waits = threads.submit(readings, [PLAIN], CAT)
        assert eventually(lambda: process.CALLERS._value == 1)
        with pytest.raises(ProviderBusy):
            readings([PLAIN], SqlCaller("eve", 1))
        assert not waits.done() and readings([PLAIN], DAN)[0].columns
    assert waits.result()[0].columns


def test_what_is_read_in_the_background_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    run, niceness = process._run, list[int]()

    def noted(asked: bytes, seconds: float, nice: int) -> tuple[list[bytes], str]:
        niceness.append(nice)
        return run(asked, seconds, nice)

    monkeypatch.setattr(process, "_run", noted)
    assert readings([PLAIN], None)[0].columns and readings([PLAIN], ANN)[0].columns
    assert niceness == [program.LAST, program.NICENESS] and program.LAST > program.NICENESS


@pytest.mark.parametrize("of_the_thread", [0, 5])
def test_how_nice_the_program_is_does_not_depend_on_who_asks(of_the_thread: int) -> None:
    shown = "from views_mgmt.sql import program; program._limit(9, 10); print(os.getpriority(os.PRIO_PROCESS, 0))"
    asked = f"import os; os.nice({of_the_thread}); {shown}"
    assert int(subprocess.check_output([sys.executable, "-c", asked], cwd=process.ROOT)) == 10


def test_a_short_read_begins_again_elsewhere() -> None:
    with short_reads(), pytest.raises(BeginAgain):
        readings([PLAIN], ANN)


ASKS = f"""
import os, socket
os.environ["DJANGO_SETTINGS_MODULE"] = "metalake.settings"
import django; django.setup()
from views_mgmt.sql.process import SqlCaller, Question, readings
listener = socket.create_server(("127.0.0.1", 0))
readings([Question({WRITE_ENDLESS}, "trino")], SqlCaller("ann", 1))
"""


def test_it_has_nothing_of_the_server_and_ends_after_it(tmp_path: Path) -> None:
    environment = {"METALAKE_HOME": str(tmp_path), "METALAKE_SECRET_KEY": "s" * 50, "METALAKE_SQL_TIMEOUT": "5"}
    asking = subprocess.Popen([sys.executable, "-c", ASKS], cwd=process.ROOT, env=environment, stderr=subprocess.PIPE)
    try:
        assert eventually(lambda: bool(programs(asking.pid)))
        (reading,) = programs(asking.pid)
        assert reading.environ() == {"PYTHONPATH": str(process.ROOT)} and reading.cwd() == "/"
        assert eventually(lambda: reading.num_fds() <= 4)  # it may have a module open that it imports
        assert not reading.net_connections()
        assert eventually(lambda: reading.nice() == psutil.Process().nice() + program.NICENESS)
    finally:
        asking.kill()
        asking.communicate()
    assert eventually(lambda: not reading.is_running())


def test_it_loads_neither_django_nor_pydantic() -> None:
    """Which would triple the time of its start."""
    loads = "import sys, views_mgmt.sql.program, formats.sql.analysis, formats.sql.translating; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, cwd=process.ROOT, check=True)
    assert not {"django", "pydantic"} & set(ended.stdout.split())
