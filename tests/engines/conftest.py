"""What the tests of several engines on a Hive metastore share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from formats.hive.tables import HiveTable
from providers.hive.objects import hive_table
from tests.hms import HiveMetastore


@pytest.fixture
def entry(hms: HiveMetastore, database: str) -> Callable[[str], HiveTable]:
    """The entry of a view as the metastore has it."""

    def load(name: str) -> HiveTable:
        with hms.client() as client:
            return hive_table(client.get_table(database, name))

    return load
