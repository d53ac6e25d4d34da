"""Runs `gcli` in this process against a real server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from metalake_client.cli.app import main


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


class Gcli:
    """Runs commands with the environment of one caller; `in_metalake` names the metalake."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *arguments: str) -> Ended:
        self.capsys.readouterr()
        code = main(arguments)
        shown = self.capsys.readouterr()
        return Ended(code, shown.out, shown.err)

    def ok(self, *arguments: str) -> Ended:
        ended = self(*arguments)
        assert ended.code == 0, (arguments, ended)
        return ended

    def json(self, *arguments: str) -> Any:
        return self.ok(*arguments, "--output", "json").data
