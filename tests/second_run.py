"""What the second run, on PostgreSQL, repeats of the tests marked `store`.

Mark a test `store` when PostgreSQL may answer it otherwise than SQLite: a statement that no other such test issues,
transactions, locks, races, lost connections, migrations, how text is compared and ordered, JSON, NULL, large numbers.
What a request may look like, and what is refused before the store is asked, is settled by the first run.

`store(once=True)` is for tests whose parameters are values of one case: the statements are the same for each, so the
first parameter is repeated. `python -m pytest -p tests.statements` lists the statements that no such test issues.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file that does not name the mark has nothing to repeat: three quarters of the tests need no import for it."""
    if "store" not in str(config.option.markexpr).split(" and ") or not collection_path.match("test_*.py"):
        return None
    return True if "mark.store" not in collection_path.read_text() else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not os.environ.get("METALAKE_TEST_DATABASE_URL"):
        return
    repeated: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    seen: set[str] = set()
    for item in items:
        case = item.nodeid.partition("[")[0]
        mark = item.get_closest_marker("store")
        more = mark is not None and mark.kwargs.get("once") and case in seen
        (left_out if more else repeated).append(item)
        seen.add(case)
    config.hook.pytest_deselected(items=left_out)
    items[:] = repeated
