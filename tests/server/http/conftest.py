"""What holds after every test of the server: nothing was said of a failure of ours, and others are answered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.http.sockets import HEALTH, line
from tests.servers import MetalakeServer


@pytest.fixture
def server(metalake_server: MetalakeServer) -> Iterator[MetalakeServer]:
    """The shared server; fails where it logs a failure of its own or does not answer the next client at once."""
    before = metalake_server.log.stat().st_size
    yield metalake_server
    require_sound(metalake_server, before)


def require_sound(server: MetalakeServer, before: int = 0) -> None:
    with line(server) as after:
        assert after.ask(HEALTH).status == 200
    with server.log.open("rb") as log:
        log.seek(before)
        said = log.read()
    for sign in (b"Traceback", b'"level":"error"', b'"level": "error"', b'"status":5', b"Exception in"):
        assert sign not in said, said.decode(errors="replace")
