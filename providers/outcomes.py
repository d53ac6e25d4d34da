"""What a call has made of the outside system, as it is found there; and how it is taken back."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from formats.iceberg import files
from metalake.errors import AlreadyExists, Conflict, Invalid, MetalakeError, NotEmpty, NotFound
from providers import remote
from providers.external import ExternalProvider, Remote

READ_BACK = 10.0  # seconds for one look
CREATIONS = frozenset({"create_schema", "create_table"})
PARTITIONS = frozenset({"add_partition", "drop_partition"})
DROPS = frozenset({"drop_schema", "drop_table"})
ALTERATIONS = frozenset({"alter_schema", "alter_table"})  # which leave nothing to take back
# What a system or provider that itself tried twice may say of the second try, though the first was made. Only of calls
# whose work is told by marker, identity or pointer: a partition is told by its name alone.
SECOND_TRY: dict[str, tuple[type[MetalakeError], ...]] = {
    **dict.fromkeys(CREATIONS | DROPS | {"rename_table"}, (AlreadyExists, NotFound)),
    **dict.fromkeys(ALTERATIONS, (Conflict,)),
    "commit_table": (AlreadyExists, Conflict, Invalid, NotFound),
}


class Outcome(Enum):
    """Whether a call was made, by whom what it makes is there."""

    DONE = auto()
    NOT_DONE = auto()
    OTHERS = auto()  # something of that name is there, and it is not ours


def look(
    provider: ExternalProvider, verb: str, arguments: dict[str, Any], marker: str
) -> tuple[Outcome, dict[str, Any] | None]:
    """How a call ended, and the object it was about as it is now. Raises ProviderUnavailable where that is not told."""
    if verb == "rename_table":
        return _renamed(provider, arguments)
    if verb in PARTITIONS:
        there = _load_partition(provider, arguments)
        is_done = (there is None) is (verb == "drop_partition")
        return (Outcome.DONE if is_done else Outcome.NOT_DONE), there.as_json() if there else None
    found = _load(provider, arguments)
    shown = found.as_json() if found else None
    if verb in DROPS:
        is_gone = found is None or found.identity != arguments["identity"]
        return (Outcome.DONE if is_gone else Outcome.NOT_DONE), shown
    if found is None:
        return Outcome.NOT_DONE, None
    if verb == "commit_table":
        return _committed(provider, arguments, found), shown
    if provider.marker_of(found.definition) == marker:
        return Outcome.DONE, shown
    return (Outcome.OTHERS if verb in CREATIONS else Outcome.NOT_DONE), shown


def _renamed(provider: ExternalProvider, arguments: dict[str, Any]) -> tuple[Outcome, dict[str, Any] | None]:
    """Told by the identity, where the system has any: the old name may have another table by now."""
    target = _load(provider, {"schema": arguments["to_schema"], "table": arguments["to_table"]})
    if target is None:
        return Outcome.NOT_DONE, None
    if identity := arguments["identity"]:
        is_done = target.identity == identity
    else:
        is_done = _load(provider, arguments) is None
    return (Outcome.DONE, target.as_json()) if is_done else (Outcome.NOT_DONE, None)


def _committed(provider: ExternalProvider, arguments: dict[str, Any], table: Remote) -> Outcome:
    """Told by the pointer, or by the log of the metadata that somebody else has committed since."""
    pointer = provider.metadata_location(table.definition)
    if pointer == arguments["location"]:
        return Outcome.DONE
    if pointer is None or pointer == arguments["previous"]:
        return Outcome.NOT_DONE
    metadata = files.parse_metadata(provider.metadata_files(pointer.rpartition("/")[0]).read(pointer))
    log = {entry.get("metadata-file") for entry in metadata.get("metadata-log") or ()}
    return Outcome.DONE if arguments["location"] in log else Outcome.NOT_DONE


def _load(provider: ExternalProvider, arguments: dict[str, Any]) -> Remote | None:
    table = arguments.get("table")
    where = {"schema": arguments["schema"]} | ({"table": table} if table is not None else {})
    try:
        return Remote(**remote.run(provider, "load_schema" if table is None else "load_table", where, total=READ_BACK))
    except NotFound:
        return None


def _load_partition(provider: ExternalProvider, arguments: dict[str, Any]) -> Remote | None:
    """Told by the name alone: whoever added it, it is what was asked for."""
    name = arguments["partition"] if "partition" in arguments else arguments["definition"]["name"]
    where = {"schema": arguments["schema"], "table": arguments["table"], "partition": name}
    try:
        return Remote(**remote.run(provider, "load_partition", where, total=READ_BACK))
    except NotFound:
        return None


def undo(provider: ExternalProvider, step: dict[str, Any], marker: str) -> bool:
    """Take back a creation that is certainly ours and that nobody uses; whether nothing of it is left.

    Nothing else is taken back: an alteration or a drop that was made is published, one that was not left no trace.
    """
    verb, arguments = step["verb"], step["arguments"]
    if verb not in CREATIONS:
        return True
    outcome, found = look(provider, verb, arguments, marker)
    if outcome is Outcome.OTHERS:
        return True
    if found is not None and not _dropped(provider, step, found):
        return False
    if verb == "create_table":
        remote.run(provider, "discard", {"definition": arguments["definition"]}, total=READ_BACK)
    return True


def _dropped(provider: ExternalProvider, step: dict[str, Any], found: dict[str, Any]) -> bool:
    where = {"schema": step["arguments"]["schema"], "identity": found["identity"]}
    try:
        if step["verb"] == "create_schema":
            remote.run(provider, "drop_schema", where)
        elif step["result"] and step["result"]["version"] != found["version"]:
            return False  # somebody has written to it
        else:
            remote.run(provider, "drop_table", where | {"table": step["arguments"]["table"]})
    except NotFound:
        return True
    except NotEmpty:
        return False
    return True
