"""The metastores and the Spark of the tests change nothing but their own folders, whatever they are told to delete."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import confined, parts
from tests.confined import NOT_CONFINED, give
from tests.hms import NEW, HiveMetastore, needs_hms
from tests.parts import needs
from tests.servers import REPOSITORY
from tests.spark import Spark, SparkError, needs_spark

FLIGHT = "UA,EWR,IAH\n"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A folder that anybody may change, with a file in it."""
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "flights.csv").write_text(FLIGHT)
    for each in (folder, folder / "flights.csv"):
        each.chmod(0o777)
    return folder


def ran(own: Path, script: str, *, as_user: bool = True) -> subprocess.CompletedProcess[str]:
    command = confined.confined([own], "sh", "-c", script, as_user=as_user)
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("as_user", [True, False])
def test_a_confined_program_changes_its_own_folder_alone(tmp_path: Path, kept: Path, as_user: bool) -> None:
    needs("confinement")
    own = tmp_path / "own"
    own.mkdir()
    give(own)
    flights = kept / "flights.csv"
    for script in (
        f"rm -r {kept}",
        f"echo more >> {flights}",
        f": > {flights}",
        f"mv {flights} {own}/moved",
        f"mv {flights} {kept}/moved",
        f"touch {own}/mine && mv {own}/mine {flights}",
        f"touch {kept}/more",
        f"mkdir {kept}/more",
        f"ln -s {own} {kept}/more",
    ):
        assert ran(own, script, as_user=as_user).returncode, script
    assert ran(own, f"cat {flights} > {own}/copy && rm {own}/copy", as_user=as_user).returncode == 0
    assert [file.name for file in kept.iterdir()] == ["flights.csv"]
    assert flights.read_text() == FLIGHT
    if as_user:
        assert ran(own, "id -u").stdout.strip() != "0"


@pytest.mark.parametrize("wall", ["nothing", "Landlock alone", "the user alone"])
def test_what_is_not_confined_is_not_started(tmp_path: Path, wall: str) -> None:
    """The attempt finds out, whichever wall is missing."""
    needs("confinement")
    own = tmp_path / "own"
    own.mkdir()
    own.chmod(0o777)
    missing = {
        "nothing": "confined.confine = lambda folders, as_user: None",
        "Landlock alone": "confined._leave_root = lambda libc: None",
        "the user alone": "confined.WRITES, confined.DEVICES = {1: 1 << 7}, ()",  # only making folders is shut
    }
    if wall == "Landlock alone" and os.geteuid():
        parts.not_offered("the suite does not run as root")
    script = f"from tests import confined; {missing[wall]}; confined.main(['{own}', 'touch', '{own}/started'])"
    ended = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ended.returncode == NOT_CONFINED, ended.stderr
    assert "touch is not started, for it would not be confined: it" in ended.stderr
    assert [file.name for file in own.iterdir() if not file.name.startswith(".")] == []
    assert list(tmp_path.iterdir()) == [own], "what was tried on is gone"


@pytest.mark.parametrize("start", [lambda: needs_hms(NEW), needs_spark])
def test_without_confinement_their_tests_skip_in_words(
    monkeypatch: pytest.MonkeyPatch, start: Callable[[], None]
) -> None:
    """Which METALAKE_TEST_ALL takes for a failure, as any such skip."""
    monkeypatch.setitem(parts.PARTS, "confinement", (lambda: False, parts.PARTS["confinement"][1]))
    with pytest.raises(pytest.skip.Exception, match=r"keep a metastore from the files of others: Linux.*Landlock"):
        start()


def test_a_metastore_cannot_delete_what_is_elsewhere(kept: Path, hms: HiveMetastore) -> None:
    from hive_metastore.ttypes import Database, FieldSchema, MetaException, SerDeInfo, StorageDescriptor, Table

    database = hms.create_database()
    storage = StorageDescriptor([FieldSchema("carrier", "string", None)], kept.as_uri(), serdeInfo=SerDeInfo())
    table = Table("flights", database, "mia", tableType="MANAGED_TABLE", sd=storage, parameters={}, partitionKeys=[])
    with hms.client() as client:
        client.create_table(table)
        client.drop_table(database, "flights", True)
        assert (kept / "flights.csv").exists()
        odd = f"{database}_odd"
        client.create_database(Database(name=odd, locationUri=kept.as_uri()))
        try:
            client.drop_database(odd, True, True)
        except MetaException:
            pass  # it says that it could not
    assert (kept / "flights.csv").read_text() == FLIGHT


def test_spark_cannot_delete_what_is_elsewhere(kept: Path, iceberg_spark: Spark) -> None:
    script = f"insert overwrite directory '{kept.as_uri()}' using csv select 'DL'"
    with pytest.raises(SparkError):
        iceberg_spark.sql(script)
    assert (kept / "flights.csv").read_text() == FLIGHT
