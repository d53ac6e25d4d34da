"""The metastores and the Spark of the tests change nothing but throw-away files, whatever they are told to delete."""

import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.confined import confined
from tests.hms import HiveMetastore
from tests.servers import REPOSITORY

CAN = [sys.executable, "-c", "import sys; from tests.confined import confine; sys.exit(not confine())"]
FLIGHT = "UA,EWR,IAH\n"


@pytest.fixture(autouse=True)
def landlock() -> None:
    if subprocess.run(CAN, cwd=REPOSITORY, check=False).returncode:
        pytest.xfail("this kernel has no Landlock")


@pytest.fixture
def kept() -> Iterator[Path]:
    """A folder that is not among those for throw-away files, with a file in it."""
    if Path.home().resolve().is_relative_to(Path(tempfile.gettempdir()).resolve()):
        pytest.xfail("the home folder is one for throw-away files here")
    folder = Path.home() / ".cache" / "metalake-tests" / f"kept-{uuid.uuid4().hex}"
    folder.mkdir(parents=True)
    (folder / "flights.csv").write_text(FLIGHT)
    yield folder
    shutil.rmtree(folder)


def test_a_confined_program_changes_throw_away_files_alone(tmp_path: Path) -> None:
    kept, passing = tmp_path / "kept", tmp_path / "passing"
    for folder in (kept, passing):
        folder.mkdir()
        (folder / "flights.csv").write_text(FLIGHT)

    def run(script: str) -> int:
        environment = os.environ | {"TMPDIR": str(passing)}
        ended = subprocess.run(confined("sh", "-c", script), env=environment, stderr=subprocess.DEVNULL, check=False)
        return ended.returncode

    for script in (f"rm -r {kept}", f"echo more >> {kept}/flights.csv", f"mv {kept}/flights.csv {passing}/moved"):
        assert run(script), script
    assert run(f"rm {passing}/flights.csv") == 0
    assert (kept / "flights.csv").read_text() == FLIGHT
    assert list(passing.iterdir()) == []


def test_a_metastore_cannot_delete_what_is_elsewhere(kept: Path, hms: HiveMetastore) -> None:
    from hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor, Table

    database = hms.create_database()
    storage = StorageDescriptor([FieldSchema("carrier", "string", None)], kept.as_uri(), serdeInfo=SerDeInfo())
    table = Table("flights", database, "mia", tableType="MANAGED_TABLE", sd=storage, parameters={}, partitionKeys=[])
    with hms.client() as client:
        client.create_table(table)
        client.drop_table(database, "flights", True)
    assert (kept / "flights.csv").exists()
