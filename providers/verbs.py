"""What an outside system is asked to do, each declared once, by the names that messages, metrics and intents have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metalake.errors import AlreadyExists, Conflict, Invalid, MetalakeError, NotFound

Refusals = tuple[type[MetalakeError], ...]


@dataclass(frozen=True, kw_only=True)
class Verb:
    """One call of a remote store.

    `refusals` are what a system or client that itself tried twice may say of the second try though the first was made;
    only of calls whose work is told by marker, identity or pointer.
    """

    name: str
    store: str  # the provider's attribute
    method: str
    reads: bool = False
    undone_by: str = ""  # the verb that takes it back; what is made is found by its marker, however late it arrives
    may_repeat: bool = False  # it names the identity of what it drops, so it may be made twice
    refusals: Refusals = ()
    leaves_nothing: bool = False  # where nobody can say more, its refusal is believed: there is nothing to take back


def _read(name: str, store: str, method: str) -> Verb:
    return Verb(name=name, store=store, method=method, reads=True)


def _creation(name: str, store: str, undone_by: str) -> Verb:
    return Verb(name=name, store=store, method="create", undone_by=undone_by, refusals=(AlreadyExists, NotFound))


def _alteration(name: str, store: str) -> Verb:
    return Verb(name=name, store=store, method="alter", refusals=(Conflict,), leaves_nothing=True)


def _drop(name: str, store: str) -> Verb:
    return Verb(name=name, store=store, method="drop", may_repeat=True, refusals=(AlreadyExists, NotFound))


_DECLARED = (
    _read("list_schemas", "schemas", "list"),
    _read("load_schema", "schemas", "load"),
    _creation("create_schema", "schemas", undone_by="drop_schema"),
    _alteration("alter_schema", "schemas"),
    _drop("drop_schema", "schemas"),
    _read("list_tables", "tables", "list"),
    _read("load_table", "tables", "load"),
    _creation("create_table", "tables", undone_by="drop_table"),
    _alteration("alter_table", "tables"),
    Verb(name="rename_table", store="tables", method="rename", refusals=(AlreadyExists, NotFound)),
    _drop("drop_table", "tables"),
    Verb(name="discard", store="tables", method="discard"),
    Verb(
        name="commit_table",
        store="pointers",
        method="commit",
        refusals=(AlreadyExists, Conflict, Invalid, NotFound),
    ),
    _read("list_partitions", "partitions", "list"),
    _read("load_partition", "partitions", "load"),
    Verb(name="add_partition", store="partitions", method="add"),
    Verb(name="drop_partition", store="partitions", method="drop"),
)
VERBS = {verb.name: verb for verb in _DECLARED}
READS = frozenset(verb.name for verb in _DECLARED if verb.reads)


def present(verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """A call's arguments in today's form: older intents have a wanted definition in place of changes."""
    if VERBS[verb].method == "alter" and "definition" in arguments:
        others = {name: value for name, value in arguments.items() if name != "definition"}
        return others | {"changes": None, "expected": arguments["definition"]}
    return arguments
