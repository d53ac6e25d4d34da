"""Every command line in the documents is run: here, by the test that is named for it, or it says that it is not.

gcli's lines run in this process, in the order of the page, in a metalake that has what the pages name.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.glue import Glue
from tests.metalake_client.gcli import Gcli
from tests.servers import REPOSITORY, MetalakeServer

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
COMMANDS = {"bash", "sh", "console", "sql", "python"}
PROGRAMS = r"gcli|make|pip|python|curl|duckdb|docker|export|apt|\.venv/bin/\S+"
PROGRAM = re.compile(rf"^(?:[A-Z_]+=\S+ )*(?:{PROGRAMS}) ", re.MULTILINE)
MARK = re.compile(r"\*Not run by the suite: [^*]+\.\*")
SAYS_URL = ("https://metalake.example.org", "http://127.0.0.1:8090")

# Blocks that other tests run, by page and heading.
DISPATCH = "Spark: Iceberg's and Hive's tables by one name"
BLOCKS_ELSEWHERE = {
    ("jobs", "Which programs may run"): "tests/jobs/test_docs.py",
    ("jobs", "Register, run, look"): "tests/jobs/test_docs.py",
    ("jobs", "Schedules"): "tests/jobs/test_docs.py",
    ("jobs", "A harvest"): "tests/pipelines/test_harvest.py",
    ("jobs", "What jobs find out"): "tests/jobs/services/test_system.py",
    ("operations", "Several nodes"): "tests/metalake/test_operating.py",
    ("operations", "Backup and restore"): "tests/metalake/test_operating.py",
    ("spark", "Spark"): "tests/metalake_client/spark/test_session.py",
    ("spark", "Views"): "tests/metalake_client/spark/test_session.py",
    (
        "spark-mixed",
        "Spark: Iceberg's and Hive's tables by one name",
    ): "tests/metalake_client/spark/dispatch/test_jar.py",
}
# Lines and calls in blocks whose other lines run here, by how they begin.
LINES_ELSEWHERE = {
    "pip install ./metalake_client": "tests/metalake_client/test_wheel.py",
    "sql-client.sh -i": "tests/flink.py",
    ". ~/pyiceberg.sh": "tests/metalake_client/engines/test_files_at_work.py",
    'python -c "from pyiceberg.catalog': "tests/metalake_client/engines/test_files_at_work.py",
    "connection.create_function": "tests/metalake_client/engines/test_files_at_work.py",
}


class Block(NamedTuple):
    page: Path
    line: int
    heading: str
    before: str  # the last paragraph above it
    language: str
    code: str

    @property
    def is_elsewhere(self) -> bool:
        return (self.page.stem, self.heading) in BLOCKS_ELSEWHERE


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for found in BLOCK.finditer(text):
        above = text[: found.start()].rstrip()
        heading = HEADING.findall(BLOCK.sub("", above))[-1]
        yield Block(page, above.count("\n") + 2, heading, above.rpartition("\n\n")[2], *found.groups())


EXAMPLES = REPOSITORY / "docs" / "examples.md"  # tests/test_examples.py runs it whole
PAGES = [*sorted({*(REPOSITORY / "docs").rglob("*.md")} - {EXAMPLES}), REPOSITORY / "CONTRIBUTING.md"]
BLOCKS = [block for page in PAGES for block in blocks(page)]


@pytest.fixture
def world(
    gcli: Gcli, glue: Glue, metalake_server: MetalakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """What the pages' commands name; the pairs of what they say and what it is here."""
    monkeypatch.chdir(tmp_path)
    view = {"columns": [], "representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT 1"}]}
    table = {"columns": [{"name": "id", "type": "long"}], "properties": {}}
    Path("table.json").write_text(json.dumps(table))
    Path("view.json").write_text(json.dumps(view))
    Path("v.sql").write_text("SELECT 1")
    for line in (
        "catalog create --name lake --provider lakehouse-iceberg", "schema create --catalog lake --schema sales:emea",
        "table create --catalog lake --schema sales --table orders --file table.json",
        "table create --catalog lake --schema sales:emea --table orders --file table.json",
        "view create --catalog lake --schema sales --view v --file view.json",
        "role create --name analysts", "user create --name rita",
    ):  # fmt: skip
        gcli.ok(*line.split())
    keys = (
        f"aws-glue-endpoint={glue.endpoint},aws-access-key-id={glue.access_key},aws-secret-access-key={glue.secret_key}"
    )
    here = dict.fromkeys(SAYS_URL, metalake_server.url) | {"aws-region=us-east-1": f"aws-region=us-east-1,{keys}"}
    return here | {"--folder ~": "--folder home", "--folder /opt": "--folder opt"}


def run_lines(block: Block, gcli: Gcli, here: dict[str, str]) -> None:
    for line in block.code.splitlines():
        command = re.sub(r"\s+#.*", "", line)
        if not command or command.startswith(("export METALAKE_TOKEN=", *LINES_ELSEWHERE)):
            continue
        assert command.startswith("gcli "), f"{block.page.name}:{block.line} is neither run nor marked: {line}"
        for said, meant in here.items():
            command = command.replace(said, meant)
        gcli.ok(*shlex.split(command.replace("--metalake demo", ""))[1:])


@pytest.mark.timeout(300)
def test_every_command_line_is_run_or_says_that_it_is_not(gcli: Gcli, world: dict[str, str], tmp_path: Path) -> None:
    for block in BLOCKS:
        where = f"{block.page.name}:{block.line}"
        if block.language not in COMMANDS:
            assert block.language or not PROGRAM.search(block.code), f"{where} is no bash, and looks like it"
        elif MARK.fullmatch(block.before) or block.is_elsewhere:
            continue
        elif block.language == "sql":
            written = "\n".join(file.read_text() for file in tmp_path.rglob("*.sql"))
            written = written.replace(world[SAYS_URL[1]], SAYS_URL[1])
            lines = [re.sub(r"\bdemo\b", r"\\S+", re.escape(line)) for line in block.code.splitlines()]
            assert not [line for line in lines if not re.search(line, written)], (where, written)
        elif block.language == "python":
            if not any(each in block.code for each in LINES_ELSEWHERE):
                exec(compile(block.code, where, "exec"), {})
        else:
            run_lines(block, gcli, world)


def test_what_runs_elsewhere_is_there() -> None:
    for file in {*BLOCKS_ELSEWHERE.values(), *LINES_ELSEWHERE.values()}:
        assert (REPOSITORY / file).is_file(), file
    code = "\n".join(block.code for block in BLOCKS)
    assert not [line for line in LINES_ELSEWHERE if line not in code]
    there = {(block.page.stem, block.heading) for block in BLOCKS}
    assert BLOCKS_ELSEWHERE.keys() <= there, there
