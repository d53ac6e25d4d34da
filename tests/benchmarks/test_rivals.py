"""A peer that cannot be started is a sentence in the comparison with other catalogs, and nothing else stops."""

from __future__ import annotations

from contextlib import ExitStack
from typing import NoReturn

import pytest

from benchmarks import peers, rivals
from benchmarks.peers import Side
from benchmarks.rival_rows import ROWS
from tests.jars import JarsMissing


def left_out(name: str, begin: object, capsys: pytest.CaptureFixture[str]) -> str:
    with ExitStack() as stack:
        assert rivals.peer(name, begin, stack) is None  # type: ignore[arg-type]
    said = capsys.readouterr().out
    assert said.startswith(f"  {name} is left out: ") and said.count("\n") == 1 and "Traceback" not in said
    return said


def test_a_peer_without_a_java_is_left_out(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "java", lambda least: peers_java(least + 1000))
    assert "Java 1017" in left_out("fixture", peers.fixture, capsys)
    assert "Java 1021" in left_out("nessie", lambda stack: peers.nessie(stack, "http://127.0.0.1:1", "b"), capsys)


peers_java = peers.java


def test_a_peer_without_a_jar_is_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    def missing(*_: object) -> NoReturn:
        raise JarsMissing("no jar of it is here")

    monkeypatch.setenv("METALAKE_HOME", str(tmp_path))
    monkeypatch.setattr(peers, "java", lambda least: "java")
    monkeypatch.setattr(peers, "jars", missing)
    monkeypatch.setattr(peers, "fetched", missing)
    assert "no jar" in left_out("fixture", peers.fixture, capsys)
    assert "no jar" in left_out("nessie", lambda stack: peers.nessie(stack, "http://127.0.0.1:1", "b"), capsys)


def test_a_row_is_measured_beside_the_peers_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def drive(url: str, *_: object) -> rivals.Turn:
        asked.append(url)
        return rivals.Turn(100.0, 1.0, 2.0, 100, 0, 0)

    monkeypatch.setattr(rivals, "drive", drive)
    row = next(row for row in ROWS if row.name == "list 180 namespaces")
    result = rivals.measure(row, {"ours": Side("ours", "http://ours", "/iceberg/m/v1/c")}, rounds=1, seconds=1)
    assert result["rates"] == {"ours": 100.0} and result["ratios"] == {}
    assert asked == ["http://ours/iceberg/m/v1/c/namespaces"] * 2
    assert "| list 180 namespaces | 8 | 100 |" in rivals.table([result])
