"""The metalake `demo` (tests/demo.py) with a reader by role, and its people as callers of the Iceberg wire."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest

from metalake.kinds import Kind
from providers.metadata_files import PARSED
from tests.demo import add_member, add_user, give, make_demo
from tests.iceberg_rest.world import Caller


@pytest.fixture(autouse=True)
def nobody_changes_what_is_shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Here small files are parsed once, too; at the end what was given out of them is what they say."""
    PARSED._entries.clear()
    monkeypatch.setattr(PARSED, "small", 0)
    yield
    for content, metadata in PARSED._entries.values():
        assert orjson.dumps(metadata) == content


@pytest.fixture
def owner(db: None) -> Caller:
    """Owns everything that the fixture makes; service administrators are named admin."""
    make_demo()
    return Caller("admin")


@pytest.fixture
def member(owner: Caller) -> Caller:
    """In the metalake, without any role."""
    add_member("mia")
    return Caller("mia")


@pytest.fixture
def reader(owner: Caller) -> Caller:
    """May load every table of the catalog and change none."""
    add_member("rita")
    give("rita", Kind.CATALOG, "lake", "use_catalog", "use_schema", "select_table", role="readers")
    return Caller("rita")


@pytest.fixture
def outsider(owner: Caller) -> Caller:
    """An account that belongs to no metalake."""
    add_user("otto")
    return Caller("otto")
