"""A folder that the operator named, with programs of jobs; and people who may register, use and run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.catalogs.callers import Caller
from tests.demo import add_member, make_demo

Write = Callable[..., str]

SAYS = "#!/bin/sh\necho \"said $@\"\n"


@pytest.fixture
def named(tmp_path: Path, settings: Any) -> Path:
    """The only place that programs may lie in."""
    folder = tmp_path / "named"
    folder.mkdir()
    settings.METALAKE_JOB_PATHS = (str(folder),)
    settings.METALAKE_HOME = tmp_path / "home"
    settings.METALAKE_HOME.mkdir()
    return folder


@pytest.fixture
def program(named: Path) -> Write:
    """Writes an executable there; its path."""

    def write(text: str = SAYS, name: str = "say.sh") -> str:
        path = named / name
        path.write_text(text)
        path.chmod(0o700)
        return str(path)

    return write


@pytest.fixture
def admin(db: None) -> Caller:
    """The owner of the metalake demo."""
    make_demo()
    return Caller("admin")


@pytest.fixture
def mia(admin: Caller) -> Caller:
    """A member without any right."""
    add_member("mia")
    return Caller("mia")
