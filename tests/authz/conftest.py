"""The small world, and its users on the wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from authz import snapshot
from tests.authz.small_world import Wire, World, held


@pytest.fixture
def world(db: None) -> Iterator[World]:
    snapshot.forget()
    yield World()
    # Whatever was published, the process follows it as if it had read everything anew.
    assert held(snapshot.latest()) == held(snapshot.load())
    snapshot.forget()


@pytest.fixture
def wire(settings: Any) -> Wire:
    settings.ROOT_URLCONF = "tests.authz.urlconf"
    return Wire()
