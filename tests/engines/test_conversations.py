"""What engines ask of the Iceberg REST wire, each in its own way, and what they are answered: as it was recorded.

An answer that is not the recorded one fails; where the change is meant, the conversations are recorded again:
tests/engines/test_recording.py says how.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.engines import replaying
from tests.engines.replaying import Changed, questions, read, replay
from tests.servers import MetalakeServer

NAMES = sorted(file.stem for file in replaying.FOLDER.glob("*.json"))


def asked(name: str) -> list[str]:
    """The questions of an engine, without what begins all of them."""
    return [each.replace("/iceberg/demo/v1/<catalog>", "") for each in questions(read(name)["exchanges"])]


@pytest.mark.parametrize("name", NAMES)
def test_an_engine_is_answered_as_it_was(metalake_server: MetalakeServer, name: str) -> None:
    replay(read(name)["exchanges"], metalake_server)


@pytest.mark.parametrize("name", ["trino-476", "trino-483"])
def test_trino_asks_for_a_view_before_a_table_and_lists_level_by_level(name: str) -> None:
    said = asked(name)
    view = said.index("GET /namespaces/sales%1Femea/views/late")
    assert said[view + 1] == "GET /namespaces/sales%1Femea/tables/late?snapshots=all"
    levels = [each.partition("?")[2] for each in said if each.startswith("GET /namespaces?")]
    assert levels == ["pageToken=", "parent=sales&pageToken=", "parent=sales%1Femea&pageToken="]


def test_duckdb_stages_what_it_creates() -> None:
    staged = [each for each in read("duckdb")["exchanges"] if (each["body"] or {}).get("stage-create")]
    assert [each["answer"]["metadata-location"] for each in staged] == [None]


@pytest.mark.parametrize("name", ["flink", "spark"])
def test_flink_and_spark_list_the_top_with_an_empty_page_token(name: str) -> None:
    assert {each for each in asked(name) if each.startswith("GET /namespaces?")} == {"GET /namespaces?pageToken="}


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
