"""The job builtin-harvest in the Spark of the suite, over a metastore that answers as it is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.metastore_stand_in import StandIn, running
from tests.names import own_name
from tests.pipelines.conftest import Lab
from tests.waiting import eventually


@dataclass
class Metastore:
    """A catalog of the lab whose system is a stand-in."""

    lab: Lab
    there: StandIn
    name: str

    def harvest(self, *more: str, before: str = "") -> tuple[int, str]:
        return self.lab.run("pipelines.harvest", f"--catalog={self.name}", "--patience=2", *more, before=before)

    def harvested(self, *more: str) -> dict[str, Any]:
        """The run of a harvest that ends well."""
        code, output = self.harvest(*more)
        assert code == 0, output
        return self.runs()[0]

    def refreshed(self) -> dict[str, Any]:
        """The run of the server's own walk."""
        begun = self.lab.call("POST", "catalogs", self.name, "refreshes")["refresh"]["id"]
        assert eventually(lambda: self.run(begun)["state"] != "running", 60)
        return self.run(begun)

    def runs(self) -> list[dict[str, Any]]:
        runs: list[dict[str, Any]] = self.lab.call("GET", "catalogs", self.name, "refreshes")["refreshes"]
        return runs

    def run(self, run_id: str) -> dict[str, Any]:
        run: dict[str, Any] = self.lab.call("GET", "catalogs", self.name, "refreshes", run_id)["refresh"]
        return run


COUNTS = ("state", "seen", "created", "changed", "dropped", "heldBack", "skipped")


def counts(run: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(run[name] for name in COUNTS)


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    made = StandIn()
    made.fill(3, 5)
    with running(made):
        yield made


@pytest.fixture
def metastore(lab: Lab, stand_in: StandIn) -> Metastore:
    return register(lab, stand_in)


def register(lab: Lab, stand_in: StandIn) -> Metastore:
    name, properties = own_name("hive"), {"metastore.uris": stand_in.uri, "cache-ttl": "0"}
    body = {"name": name, "type": "RELATIONAL", "provider": "hive", "comment": None, "properties": properties}
    lab.call("POST", "catalogs", body=body)
    return Metastore(lab, stand_in, name)


def test_a_harvest_leaves_nothing_to_refresh(metastore: Metastore, stand_in: StandIn) -> None:
    assert counts(metastore.harvested()) == ("done", 18, 18, 0, 0, 0, 0)
    assert counts(metastore.refreshed()) == ("done", 18, 0, 0, 0, 0, 0)
    stand_in.put("database_0001", "new", "one more")
    stand_in.put("database_0001", "table_000003_of_0001", "changed")
    stand_in.put("database_0002", "table_000001_of_0002", made=1_800_000_000)
    stand_in.databases["another"] = {}
    second = metastore.harvested("--tasks=3")
    assert counts(second) == ("done", 20, 3, 1, 1, 0, 0)
    assert counts(metastore.refreshed()) == ("done", 20, 0, 0, 0, 0, 0)
