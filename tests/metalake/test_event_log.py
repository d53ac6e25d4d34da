"""The event log holds whole lines, whatever the disk does."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from metalake import event_log

EVENT = {"event": "table.created", "table": "nycflights13.flights", "columns": 19}
ON_A_SMALL_DISK = """
import resource, sys
from django.conf import settings

settings.configure(METALAKE_EVENT_LOG=sys.argv[1])
from metalake.event_log import append

resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
append({"event": "table.created", "table": "nycflights13.flights", "columns": 19})
"""


@pytest.fixture
def log(settings, tmp_path: Path) -> Path:
    settings.METALAKE_EVENT_LOG = str(tmp_path / "events")
    return tmp_path / "events"


def lines(log: Path) -> list[dict]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_a_line_that_does_not_fit_is_taken_back_and_said(log: Path) -> None:
    event_log.append(EVENT)
    size = log.stat().st_size
    ended = subprocess.run(
        [sys.executable, "-c", ON_A_SMALL_DISK, str(log), str(size + 10)],
        cwd=Path(event_log.__file__).resolve().parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "OSError" in ended.stderr and "No space left" in ended.stderr, ended.stderr
    assert log.stat().st_size == size
    event_log.append(EVENT)
    assert lines(log) == [EVENT, EVENT]


def test_what_a_crash_left_of_a_line_stays_apart(log: Path) -> None:
    log.write_bytes(b'{"event":"table.cre')
    event_log.append(EVENT)
    broken, whole = log.read_text().splitlines()
    assert (broken, json.loads(whole)) == ('{"event":"table.cre', EVENT)


def test_a_pipe_takes_events_too(settings, tmp_path: Path) -> None:
    settings.METALAKE_EVENT_LOG = str(tmp_path / "pipe")
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        event_log.append(EVENT)
        assert json.loads(os.read(reader, resource.getpagesize())) == EVENT
    finally:
        os.close(reader)
