"""Each job that writes tables by spark-submit with an executor of its own, as its machine, its server or another run
fails it: killed at random moments, twice at once, with a full disk, with a token that is revoked.

A run that was killed, and another after it, leave what one run leaves that nothing happened to; meanwhile nobody sees
a part of a result.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.names import own_name
from tests.pipelines.cases import CASES, PATIENCE, Runs
from tests.pipelines.conftest import Lab
from tests.servers import MetalakeServer, StartMetalake
from tests.spark import Spark

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]
KILLS = 20
ALONE = "local[1]"


@pytest.fixture
def own_server(start_metalake: StartMetalake, iceberg_spark: Spark) -> MetalakeServer:
    return start_metalake(METALAKE_WAREHOUSE=str(iceberg_spark.folder / own_name("system")))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (own := tmp_path / "spark").mkdir()
    yield own
    shutil.rmtree(own, ignore_errors=True)


@pytest.mark.parametrize("name", CASES)
def test_killed_at_random_moments(own_server: MetalakeServer, iceberg_spark: Spark, folder: Path, name: str) -> None:
    clean, killed = (Runs(CASES[name], Lab(own_server, iceberg_spark), folder) for _ in range(2))
    clean.run_to_its_end()
    clean.change(0)
    seconds = clean.run_to_its_end()
    chance, ends = random.Random(17), list[str]()
    for number in range(KILLS):
        killed.change(number)
        if number:
            clean.change(number)
        ends.append(_one_killed(killed, chance, seconds))
        killed.require_whole(branches=True)
    assert ends.count("nothing") < KILLS / 2, (seconds, ends)
    for runs in (clean, killed):
        runs.run_to_its_end()
        runs.require_whole(branches=False)
    assert killed.results() == clean.results()
    assert any(killed.results())


def _one_killed(runs: Runs, chance: random.Random, seconds: float) -> str:
    """Kill a part of a run after a part of its time; what was killed, and how the run ended."""
    run, server = runs.start(), runs.lab.server
    if run.has_ended(chance.uniform(0.05, 1) * seconds):
        return "nothing"
    what = run.kill_some(chance, server)
    code = run.ends(PATIENCE)
    assert what == "driver" or code == 0 or _is_clear(run.output), run.output[-5000:]
    return f"{what}: {code}"


def _is_clear(output: str) -> bool:
    """Whether it says what went wrong in a sentence of its own."""
    return bool(output.strip()) and "Traceback" not in output


@pytest.mark.parametrize("name", CASES)
def test_two_at_once(own_server: MetalakeServer, iceberg_spark: Spark, tmp_path: Path, folder: Path, name: str) -> None:
    clean, twice = (Runs(CASES[name], Lab(own_server, iceberg_spark), folder) for _ in range(2))
    clean.run_to_its_end()
    (other := tmp_path / "other").mkdir()
    for number in range(2):
        both = [twice.start(), twice.start(other)]
        codes = [run.ends(PATIENCE) for run in both]
        assert 0 in codes, [run.output[-3000:] for run in both]
        assert all(code == 0 or "Another run of" in run.output for code, run in zip(codes, both, strict=True))
        twice.require_whole(branches=True)
        for runs in (clean, twice):
            runs.change(number)
    for runs in (clean, twice):
        runs.run_to_its_end()
    assert twice.results() == clean.results()


@pytest.mark.parametrize("name", CASES)
def test_a_disk_that_is_full(own_server: MetalakeServer, iceberg_spark: Spark, folder: Path, name: str) -> None:
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("needs the right to mount a small disk: unshare -m")
    runs = Runs(CASES[name], Lab(own_server, iceberg_spark), folder)
    run, most = runs.start(master=ALONE), 0
    while not run.has_ended(0.2):
        most = max(most, _size_of(folder))
    assert run.ends() == 0, run.output[-5000:]
    codes = []
    for number, part in enumerate((0.3, 0.9, 0.97, 0.99)):
        runs.change(number)
        run = runs.start(master=ALONE, disk=int(most * part))
        codes.append(run.ends(PATIENCE))
        assert codes[-1] == 0 or _is_clear(run.output), run.output[-5000:]
        runs.require_whole(branches=True)
    assert any(codes), (most, codes)
    runs.run_to_its_end()
    runs.require_whole(branches=False)


def _size_of(folder: Path) -> int:
    sizes = []
    for path in folder.rglob("*"):
        try:
            sizes.append(path.stat().st_blocks * 512)
        except OSError:
            continue
    return sum(sizes)


@pytest.mark.parametrize("which", ["token", "system_token"])
@pytest.mark.parametrize("name", CASES)
def test_a_token_that_is_revoked_half_way(
    own_server: MetalakeServer, iceberg_spark: Spark, folder: Path, name: str, which: str
) -> None:
    clean, revoked = (Runs(CASES[name], Lab(own_server, iceberg_spark), folder) for _ in range(2))
    clean.run_to_its_end()
    clean.change(0)
    seconds = clean.run_to_its_end()
    codes = []
    for number, part in enumerate((0.4, 0.8)):
        revoked.change(number)
        if number:
            clean.change(number)
        run = revoked.start()
        run.has_ended(part * seconds)
        secret = revoked.lab.revoke(which)
        codes.append(run.ends(PATIENCE))
        assert codes[-1] == 0 or _is_clear(run.output), run.output[-5000:]
        assert secret not in run.output
        revoked.require_whole(branches=True)
    assert any(codes), codes
    for runs in (clean, revoked):
        runs.run_to_its_end()
        runs.require_whole(branches=False)
    assert revoked.results() == clean.results()
