"""The system in memory stands in for real ones in many tests, so it must do what they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.providers.bare import BareProvider
from tests.providers.behaviours import Behaviours
from tests.providers.flat import FlatMemoryProvider
from tests.providers.memory import MemoryProvider
from tests.providers.viewing import ViewingProvider


class TestMemory(Behaviours):
    @pytest.fixture
    def provider(self, tmp_path: Path) -> MemoryProvider:
        return MemoryProvider(1, {"world": str(tmp_path / "world.json")})


class TestFlatMemory(Behaviours):
    @pytest.fixture
    def provider(self, tmp_path: Path) -> FlatMemoryProvider:
        return FlatMemoryProvider(1, {"world": str(tmp_path / "world.json")})


class TestBareMemory(Behaviours):
    @pytest.fixture
    def provider(self, tmp_path: Path) -> BareProvider:
        return BareProvider(1, {"world": str(tmp_path / "world.json")})


class TestMemoryWithViews(Behaviours):
    @pytest.fixture
    def provider(self, tmp_path: Path) -> ViewingProvider:
        return ViewingProvider(1, {"world": str(tmp_path / "world.json")})
