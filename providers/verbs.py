"""The verbs of outside systems, each declared once, under the name in messages, metrics and intents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metalake.errors import AlreadyExists, Conflict, Invalid, MetalakeError, NotFound
from metalake.kinds import KINDS, Kind

Refusals = tuple[type[MetalakeError], ...]


@dataclass(frozen=True, kw_only=True)
class Verb:
    """One call of a remote store.

    `refusals` are the errors that a retry by the system's own client may raise although its first attempt succeeded.
    Only for calls whose outcome can be read back by marker, identity or pointer.
    """

    name: str
    store: str  # the provider's attribute, or the kind if the store has no attribute
    method: str
    reads: bool = False
    undone_by: str = ""  # the verb that undoes it; the marker identifies its object, however late it appears
    discarded_by: str = ""  # the verb that removes the files written before its object was created
    may_repeat: bool = False  # idempotent: it passes the identity of the object to drop
    refusals: Refusals = ()
    leaves_nothing: bool = False  # if the outcome cannot be read back, trust the error: there is nothing to undo


def _read(name: str, store: str, method: str) -> Verb:
    return Verb(name=name, store=store, method=method, reads=True)


def _creation(name: str, store: str, undone_by: str, discarded_by: str = "") -> Verb:
    return Verb(
        name=name,
        store=store,
        method="create",
        undone_by=undone_by,
        discarded_by=discarded_by,
        refusals=(AlreadyExists, NotFound),
    )


def _alteration(name: str, store: str) -> Verb:
    return Verb(name=name, store=store, method="alter", refusals=(Conflict,), leaves_nothing=True)


def _commit(name: str, store: str) -> Verb:
    return Verb(name=name, store=store, method="commit", refusals=(AlreadyExists, Conflict, Invalid, NotFound))


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
    _creation("create_table", "tables", undone_by="drop_table", discarded_by="discard"),
    _alteration("alter_table", "tables"),
    Verb(name="rename_table", store="tables", method="rename", refusals=(AlreadyExists, NotFound)),
    _drop("drop_table", "tables"),
    Verb(name="discard", store="tables", method="discard"),
    _commit("commit_table", "pointers"),
    _read("list_views", "views", "list"),
    _read("check_view", "views", "check"),
    _creation("create_view", "views", undone_by="drop_view", discarded_by="discard_view"),
    _alteration("alter_view", "views"),
    Verb(name="rename_view", store="views", method="rename", refusals=(AlreadyExists, NotFound)),
    _drop("drop_view", "views"),
    Verb(name="discard_view", store="views", method="discard"),
    _commit("commit_view", "view_pointers"),
    _read("list_partitions", "partitions", "list"),
    _read("load_partition", "partitions", "load"),
    Verb(name="add_partition", store="partitions", method="add"),
    Verb(name="drop_partition", store="partitions", method="drop"),
)
VERBS = {verb.name: verb for verb in _DECLARED}
READS = {verb.name for verb in _DECLARED if verb.reads}


def declare_reads(kind: Kind) -> None:
    """Register `list_gadgets` and `load_gadget` for a kind; its remote store has `list` and `load`.

    Apps that add a kind call this at startup.
    """
    for name, method in ((f"list_{KINDS[kind].plural}", "list"), (f"load_{kind}", "load")):
        VERBS[name] = _read(name, kind, method)
        READS.add(name)


def present(verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """A call's arguments in the current form: older intents have a `definition` instead of `changes`."""
    if VERBS[verb].method == "alter" and "definition" in arguments:
        others = {name: value for name, value in arguments.items() if name != "definition"}
        return others | {"changes": None, "expected": arguments["definition"]}
    return arguments
