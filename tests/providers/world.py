"""The world of the memory provider: one JSON file, so that processes that are killed leave it as it was."""

from __future__ import annotations

import fcntl
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson

from tests.faults import Faults

LEVELS = "\x1f"
_faults: defaultdict[str, Faults] = defaultdict(Faults)  # of this process, by the world's file


class World:
    """The file: schemas and tables by their place, faults that wait for a verb, and how often each verb was called."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.exists():
            self.path.write_bytes(orjson.dumps({"schemas": {}, "tables": {}, "faults": {}, "calls": {}}))

    @property
    def faults(self) -> Faults:
        """Those by number, which only this process meets."""
        return _faults[str(self.path)]

    @contextmanager
    def open(self) -> Iterator[dict[str, Any]]:
        with self.path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            state = orjson.loads(file.read())
            try:
                yield state
            finally:
                file.seek(0)
                file.write(orjson.dumps(state))
                file.truncate()

    def fail(self, verb: str, *faults: str) -> None:
        """The next calls of a verb: "down", "busy", "lost" (applied), "dropped" (not applied), "slow:0.5", "denied".

        "late:0.5": the answer is lost, and half a second later it is applied; "bug": it is applied and breaks;
        "twice": the provider itself tried it again.
        """
        with self.open() as state:
            state["faults"].setdefault(verb, []).extend(faults)

    def heal(self) -> None:
        self.faults.heal()
        with self.open() as state:
            state["faults"] = {}

    def calls(self, verb: str) -> int:
        with self.open() as state:
            return int(state["calls"].get(verb, 0))

    def schemas(self) -> set[str]:
        with self.open() as state:
            return {name.replace(LEVELS, ".") for name in state["schemas"]}

    def tables(self) -> set[str]:
        with self.open() as state:
            return {name.replace(LEVELS, ".") for name in state["tables"]}

    def put_schema(self, *levels: str, **properties: str) -> None:
        """Made by somebody else."""
        with self.open() as state:
            state["schemas"][LEVELS.join(levels)] = fresh({"comment": None, "properties": properties})

    def put_table(self, *levels: str, columns: Sequence[str] = ("id",), **properties: str) -> None:
        """Made by somebody else."""
        shown = [{"name": name, "type": "long", "nullable": True, "autoIncrement": False} for name in columns]
        with self.open() as state:
            state["tables"][LEVELS.join(levels)] = fresh({"comment": None, "columns": shown, "properties": properties})

    def drop(self, *levels: str) -> None:
        """By somebody else."""
        with self.open() as state:
            for kept in (state["schemas"], state["tables"]):
                kept.pop(LEVELS.join(levels), None)


def fresh(definition: dict[str, Any]) -> dict[str, Any]:
    return {"identity": uuid4().hex, "definition": definition}
