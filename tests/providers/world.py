"""The world of the memory provider: one JSON file, so that processes that are killed leave it as it was."""

from __future__ import annotations

import fcntl
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from typing import Any
from uuid import uuid4

import orjson

from formats.native.view_definition import Representation, ViewDefinition
from metalake.errors import (
    AlreadyExists,
    Conflict,
    Invalid,
    MetalakeError,
    NotFound,
    OutcomeUnknown,
    ProviderBusy,
    ProviderUnavailable,
)
from metalake.kinds import Kind
from providers.remote_objects import Page, Remote, digest
from tests.faults import Faults

LEVELS = "\x1f"
MARKER = "metalake.intent"  # the property that tells what is ours from a namesake
PAGE = 3
LAYOUT = {  # of every table, as the native wire has it
    "partitioning": [],
    "sortOrders": [],
    "indexes": [],
    "distribution": {"strategy": "none", "number": 0, "funcArgs": []},
}
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

    def call(self, verb: str, act: Callable[[dict[str, Any]], Any]) -> Any:
        """What `act` makes of the world, with the fault that waits for the verb."""
        with self.open() as state:
            state["calls"][verb] = state["calls"].get(verb, 0) + 1
            state["pids"] = sorted({*state.get("pids", ()), os.getpid()})
            faults = state["faults"].get(verb) or []
            fault = faults.pop(0) if faults else ""
        fault = fault or self.faults.next(verb)
        name, _, value = fault.partition(":")
        self._refuse(verb, name)
        if name == "late":
            self._delay(act, float(value) if value else None)
            raise silence(verb)
        if fault in ("slow", "slow, dropped"):
            return self.faults.slow(lambda: self._apply(act), arrives=fault == "slow")
        if name == "slow":
            time.sleep(float(value))
        answer = self._apply(act)
        if name == "twice":
            answer = self._apply(act)
        if name == "lost":
            raise silence(verb)
        if name == "bug":
            raise KeyError("CreateTime")
        return answer

    @staticmethod
    def _refuse(verb: str, fault: str) -> None:
        if fault == "down":
            raise ProviderUnavailable("Memory refused the connection.", kind="catalog")
        if fault == "busy":
            raise ProviderBusy("Memory is busy.", kind="catalog")
        if fault == "denied":
            raise ProviderUnavailable("Memory knows no such key.", kind="catalog", retryable=False)
        if fault == "dropped":
            raise silence(verb)

    def _delay(self, act: Callable[[dict[str, Any]], Any], seconds: float | None) -> None:
        """Applied after these seconds, or when all is healed; nobody hears of it."""
        if seconds is None:
            self.faults.arrive_late(lambda: self._apply(act))
        else:
            Timer(seconds, self._apply_late, [act]).start()

    def _apply_late(self, act: Callable[[dict[str, Any]], Any]) -> None:
        with suppress(MetalakeError):
            self._apply(act)

    def _apply(self, act: Callable[[dict[str, Any]], Any]) -> Any:
        with self.open() as state:
            return act(state)

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

    def put_view(self, *levels: str, sql: str = "SELECT 1 AS id", **parts: Any) -> None:
        """Made by somebody else, in the dialect spark; `parts` are others of its definition."""
        spark = Representation(dialect="spark", sql=sql)
        shown = ViewDefinition(representations=(spark,), columns=({"name": "id", "type": "long"},)).as_json()
        with self.open() as state:
            state["tables"][LEVELS.join(levels)] = fresh(shown | parts, Kind.VIEW)

    def drop(self, *levels: str) -> None:
        """By somebody else."""
        with self.open() as state:
            for kept in (state["schemas"], state["tables"]):
                kept.pop(LEVELS.join(levels), None)


def fresh(definition: dict[str, Any], kind: str = "") -> dict[str, Any]:
    """A new object; a view says that it is one, since it shares the names of tables."""
    made = {"identity": uuid4().hex, "definition": definition}
    return made | {"kind": kind} if kind else made


def silence(verb: str) -> MetalakeError:
    """No answer came: of a read nothing is lost, of a write the outcome is not known."""
    message = "Memory did not answer."
    is_read = verb.startswith(("list", "load"))
    return ProviderUnavailable(message, kind="catalog") if is_read else OutcomeUnknown(message, kind="catalog")


# Objects of the world as a provider's answers have them


def remote_of(name: str, there: dict[str, Any], kind: str) -> Remote:
    return Remote(name, there["definition"], there["identity"], digest(there["definition"]), there.get("kind", kind))


def delivered(entry: dict[str, Any], kind: str) -> Remote:
    """Raises Invalid."""
    if not isinstance(entry.get("name"), str):
        raise Invalid("name: is required", kind=kind)
    return remote_of(entry["name"], entry, kind)


def page_of(objects: dict[str, Any], kind: str, after: str | None) -> Page:
    names = sorted(name for name in objects if after is None or name > after)
    called = (lambda name: name) if kind == Kind.SCHEMA else (lambda name: name.rpartition(LEVELS)[2])
    items = [remote_of(called(name), objects[name], kind) for name in names[:PAGE]]
    return Page(items, names[PAGE - 1] if len(names) > PAGE else None)


def found(objects: dict[str, Any], levels: Sequence[str], kind: str) -> dict[str, Any]:
    """Raises NotFound."""
    try:
        return objects[LEVELS.join(levels)]
    except KeyError:
        raise NotFound(f"{kind.capitalize()} {'.'.join(levels)} does not exist.", kind=kind) from None


def unchanged(objects: dict[str, Any], levels: Sequence[str], version: str, kind: str) -> dict[str, Any]:
    """Raises NotFound, Conflict."""
    there = found(objects, levels, kind)
    if digest(there["definition"]) != version:
        raise Conflict(f"{kind.capitalize()} {'.'.join(levels)} was changed meanwhile.", kind=kind)
    return there


def identical(objects: dict[str, Any], levels: Sequence[str], identity: str, kind: str) -> dict[str, Any]:
    """Raises NotFound, of another that has taken the name, too."""
    there = found(objects, levels, kind)
    if there["identity"] != identity:
        raise NotFound(f"{kind.capitalize()} {'.'.join(levels)} does not exist.", kind=kind)
    return there


def put(objects: dict[str, Any], levels: Sequence[str], made: dict[str, Any], kind: str) -> Remote:
    """Raises AlreadyExists."""
    name = LEVELS.join(levels)
    if name in objects:
        raise AlreadyExists(f"{kind.capitalize()} {'.'.join(levels)} already exists.", kind=kind)
    objects[name] = made
    return remote_of(name if kind == Kind.SCHEMA else levels[-1], made, kind)


def marked(definition: dict[str, Any], marker: str) -> dict[str, Any]:
    """The definition as that of a write of ours; without a marker as it is."""
    return definition | {"properties": definition["properties"] | {MARKER: marker}} if marker else definition


def unmarked(properties: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if key != MARKER}
