"""The access review by spark-submit, as a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipelines.conftest import Lab
from tests.pipelines.submitting import Submitted
from tests.pipelines.test_access_review import rights, small_world

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]


def test_it_runs_to_its_end(lab: Lab, tmp_path: Path) -> None:
    small_world(lab)
    warehouses = [Path(lab.server.environment["METALAKE_WAREHOUSE"])]
    arguments = ("--days=0", "--sample=100")
    run = Submitted("pipelines.access_review", arguments, lab.environment, tmp_path, warehouses=warehouses)
    assert run.ends() == 0, run.output[-5000:]
    assert "no difference" in run.output and lab.token not in run.output and lab.system_token not in run.output
    assert rights(lab, "mia", "select_table") == [("lake.travel", ["lake.travel:nyc.secret"])]
