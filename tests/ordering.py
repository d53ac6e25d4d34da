"""Files whose tests need most time come first, so that at the end no worker is left alone with a long one.

Before them come those that use Spark: they lie at the beginning of one worker's share, of which no other takes any, so
that one Spark serves them all.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that may take longer than others says so by its time limit; a file stays together for its fixtures."""
    limits: defaultdict[Path, float] = defaultdict(float)
    of_spark = {item.path for item in items if "iceberg_spark" in getattr(item, "fixturenames", ())}
    for item in items:
        limit = item.get_closest_marker("timeout")
        if limit is not None:
            limits[item.path] = max(limits[item.path], *limit.args)
    items.sort(key=lambda item: (item.path not in of_spark, -limits[item.path]))
