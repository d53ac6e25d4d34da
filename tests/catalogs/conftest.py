"""The metalake `demo` (tests/demo.py) and its people as callers of the native wire."""

from __future__ import annotations

import pytest

from tests.catalogs.callers import Caller
from tests.demo import add_member, add_user, make_demo


@pytest.fixture
def admin(db: None) -> Caller:
    """A service administrator, who owns what the fixtures make."""
    make_demo()
    return Caller("admin")


@pytest.fixture
def mia(admin: Caller) -> Caller:
    add_member("mia")
    return Caller("mia")


@pytest.fixture
def otto(admin: Caller) -> Caller:
    add_user("otto")
    return Caller("otto")
