"""What engines ask of the Iceberg REST wire, each in its own way, and what they are answered: as it was recorded.

An answer that is not the recorded one fails; where the change is meant, the conversations are recorded again:
tests/engines/test_recording.py says how.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.engines import conversations
from tests.engines.conversations import Changed, questions, read, replay
from tests.servers import MetalakeServer

NAMES = sorted(file.stem for file in conversations.FOLDER.glob("*.json"))


def asked(name: str, ending: str) -> list[int]:
    """The places of the questions that end so."""
    return [number for number, each in enumerate(questions(read(name)["exchanges"])) if each.endswith(ending)]


@pytest.mark.parametrize("name", NAMES)
def test_an_engine_is_answered_as_it_was(metalake_server: MetalakeServer, name: str) -> None:
    replay(read(name)["exchanges"], metalake_server)


def test_trino_asks_for_a_view_before_a_table_and_lists_level_by_level() -> None:
    assert asked("trino-476", "/views/orders")[0] < asked("trino-476", "/tables/orders")[0]
    levels = ("/namespaces", "?parent=sales", "?parent=sales%1Femea")
    assert [len(asked("trino-476", level)) > 0 for level in levels] == [True] * 3


def test_duckdb_stages_what_it_creates() -> None:
    made = [each for each in read("duckdb")["exchanges"] if (each["body"] or {}).get("stage-create")]
    assert made and all(each["answer"]["metadata-location"] is None for each in made)


@pytest.mark.parametrize("change", ["status", "a field", "a value", "an entry"])
def test_a_changed_answer_is_told(metalake_server: MetalakeServer, change: str) -> None:
    """Whatever differs: the recording is bent here in the place of the server."""
    exchanges = read("duckdb")["exchanges"]
    last: dict[str, Any] = next(each for each in reversed(exchanges) if (each["answer"] or {}).get("metadata"))
    metadata = last["answer"]["metadata"]
    match change:
        case "status":
            last["status"] = 201
        case "a field":
            metadata["of-its-own"] = None
        case "a value":
            metadata["last-column-id"] += 1
        case "an entry":
            metadata["schemas"].append(metadata["schemas"][0])
    with pytest.raises(Changed, match=last["request"].partition(" ")[0]):
        replay(exchanges, metalake_server)
