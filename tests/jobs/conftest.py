"""A folder that the operator named, with programs of jobs; and people who may register, use and run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.catalogs.conftest import admin, mia  # noqa: F401 (the people of demo, by the native wire)
from tests.jobs.serving import Serving, StartServing
from tests.names import own_name
from tests.servers import MetalakeServer, StartMetalake, running_metalake

Write = Callable[..., str]

SAYS = '#!/bin/sh\necho "said $@"\n'


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
def start_serving(start_metalake: StartMetalake, tmp_path: Path) -> StartServing:
    """Start a server whose jobs may lie in one folder of the test."""

    def start(**environment: Any) -> Serving:
        named = tmp_path / "programs"
        named.mkdir()
        return Serving(start_metalake(METALAKE_JOB_PATHS=str(named), **environment), named)

    return start


@pytest.fixture(scope="module")
def job_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MetalakeServer, Path]]:
    """A server for the tests of a file, and the folder that its jobs may lie in."""
    named = tmp_path_factory.mktemp("programs")
    with running_metalake(tmp_path_factory.mktemp("metalake"), METALAKE_JOB_PATHS=str(named)) as server:
        yield server, named


@pytest.fixture
def serving(job_server: tuple[MetalakeServer, Path]) -> Serving:
    """In a metalake of the test's own; a test may kill the server."""
    server, named = job_server
    if server.process is None:
        server.start()
    return Serving(server, named, own_name("m"))
