"""Hive metastores of both versions, and Spark beside them."""

from __future__ import annotations

import pytest

from catalogs.providers.hive import HiveProvider
from tests.hms import HiveMetastore
from tests.providers.behaviours import Behaviours


def provider_on(hms: HiveMetastore, **settings: str) -> HiveProvider:
    return HiveProvider(1, {"metastore.uris": hms.uri, **settings})


class TestHive(Behaviours):
    tick = 1.1  # a metastore tells tables apart by the second they were made in

    @pytest.fixture
    def provider(self, any_hms: HiveMetastore) -> HiveProvider:
        return provider_on(any_hms)
