"""The metastores and the Spark of the tests change nothing but throw-away files, whatever they are told to delete."""

import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.confined import confined
from tests.hms import HiveMetastore
from tests.servers import REPOSITORY

CAN = [sys.executable, "-c", "import sys; from tests.confined import confine; sys.exit(not confine())"]


@pytest.fixture
def kept() -> Iterator[Path]:
    """A folder that is not among those for throw-away files, with a file in it."""
    if subprocess.run(CAN, cwd=REPOSITORY, check=False).returncode:
        pytest.skip("this kernel has no Landlock")
    folder = REPOSITORY / "var" / f"confined-{uuid.uuid4().hex}"
    folder.mkdir(parents=True)
    (folder / "flights.csv").write_text("UA,EWR,IAH\n")
    yield folder
    shutil.rmtree(folder)


def test_a_confined_program_changes_throw_away_files_alone(kept: Path, tmp_path: Path) -> None:
    passing = tmp_path / "passing.csv"
    passing.touch()
    for script in (f"rm -r {kept}", f"echo more >> {kept}/flights.csv", f"mv {kept}/flights.csv {tmp_path}"):
        assert subprocess.run(confined("sh", "-c", script), stderr=subprocess.DEVNULL, check=False).returncode
    subprocess.run(confined("rm", str(passing)), check=True)
    assert not passing.exists()
    assert (kept / "flights.csv").read_text() == "UA,EWR,IAH\n"


def test_a_metastore_cannot_delete_what_is_elsewhere(kept: Path, hms: HiveMetastore) -> None:
    from hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor, Table

    database = hms.create_database()
    storage = StorageDescriptor([FieldSchema("carrier", "string", None)], kept.as_uri(), serdeInfo=SerDeInfo())
    table = Table("flights", database, "mia", tableType="MANAGED_TABLE", sd=storage, parameters={}, partitionKeys=[])
    with hms.client() as client:
        client.create_table(table)
        client.drop_table(database, "flights", True)
    assert (kept / "flights.csv").exists()
