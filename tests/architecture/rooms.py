"""The top-level folders of the server, as pyproject.toml names them: whatever is added there, these tests look at."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
CLIENTS = ("pipelines", "metalake_client")
ROOMS = tuple(room for room in PROJECT["tool"]["importlinter"]["root_packages"] if room not in CLIENTS)
