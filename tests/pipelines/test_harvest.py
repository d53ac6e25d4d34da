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

WAVES = "import pipelines.harvest\npipelines.harvest.WAVE = 1"  # one schema in each
STOPS = f"""{WAVES}
from pipelines.harvest import Harvest
rounds, whole = [], Harvest._require_right
Harvest._require_right_of_old = whole
def stopped(self, listed):
    rounds.append(listed)
    if len(rounds) == {{}}:
        raise KeyboardInterrupt
    return whole(self, listed)
Harvest._require_right = stopped"""
RESTORE = "\npipelines.harvest.Harvest._require_right = pipelines.harvest.Harvest._require_right_of_old"


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
        assert eventually(lambda: self.run(begun)["state"] != "running", 300)
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


pytestmark = pytest.mark.timeout(400)


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


@pytest.mark.parametrize(
    "round", [3, pytest.param(5, marks=pytest.mark.long)]
)  # while the first schema was said to be whole, and the second was not
def test_a_harvest_that_was_killed_goes_on(metastore: Metastore, stand_in: StandIn, round: int) -> None:
    code, _ = metastore.harvest(before=STOPS.format(round))
    assert code == 130
    left = metastore.runs()[0]
    assert left["state"] == "running" and left["dropped"] == 0
    read = stand_in.answers["get_table_objects_by_name"]
    code, output = metastore.harvest(before=f"{WAVES}{RESTORE}")
    assert code == 0, output
    ended = metastore.runs()[0]
    assert (ended["id"], counts(ended)) == (left["id"], ("done", 18, 18, 0, 0, 0, 0))
    assert stand_in.answers["get_table_objects_by_name"] - read == (3 if round == 3 else 2)
    assert counts(metastore.refreshed()) == ("done", 18, 0, 0, 0, 0, 0)


@pytest.mark.long
def test_an_empty_answer_buries_nothing(metastore: Metastore, stand_in: StandIn) -> None:
    metastore.harvested()
    there, stand_in.databases = stand_in.databases, {}
    code, output = metastore.harvest()
    assert code == 0 and "too many to believe it" in output
    stand_in.databases = there
    assert counts(metastore.refreshed()) == ("done", 18, 0, 0, 0, 0, 0)


@pytest.mark.long
def test_a_metastore_that_dies_half_way(metastore: Metastore, stand_in: StandIn) -> None:
    metastore.harvested()
    stand_in.when[stand_in.answers.total() + 8] = stand_in.die
    code, output = metastore.harvest()
    assert code == 6 and "metastore" in output and "goes on where it is" in output
    left = metastore.runs()[0]
    assert (left["state"], left["dropped"]) == ("running", 0)
    stand_in.down = False
    again = metastore.harvested()
    assert (again["id"], counts(again)) == (left["id"], ("done", 18, 0, 0, 0, 0, 0))


@pytest.mark.long
def test_a_token_that_is_revoked_half_way(metastore: Metastore, stand_in: StandIn) -> None:
    metastore.harvested()
    token = metastore.lab.token
    metastore.lab.token = metastore.lab.token_of("admin")
    stand_in.put("database_0001", "new")

    def revoke() -> None:
        tokens = metastore.lab.admin.get("tokens")["tokens"]
        newest = max(tokens, key=lambda each: int(each["id"]))
        metastore.lab.admin.call("DELETE", "tokens", str(newest["id"]))

    stand_in.when[stand_in.answers.total() + 6] = revoke
    code, output = metastore.harvest()
    assert code == 3 and metastore.lab.token not in output, output
    assert metastore.runs()[0]["dropped"] == 0
    metastore.lab.token = token
    assert counts(metastore.harvested())[:3] == ("done", 19, 1)


@pytest.mark.long
def test_one_harvest_at_a_time(metastore: Metastore, stand_in: StandIn) -> None:
    """The later one goes on, and the earlier one says so."""

    def begin_another() -> None:
        metastore.lab.call("POST", "catalogs", metastore.name, "harvests")

    stand_in.when[6] = begin_another
    code, output = metastore.harvest()
    assert code == 5 and "another harvest goes on with it" in output
    assert counts(metastore.harvested()) == ("done", 18, 18, 0, 0, 0, 0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--catalog=none"], "none"),
        (["--catalog=system"], "lakehouse-iceberg are not harvested"),
        (["--tasks=0"], "--tasks is a whole number from 1 to 1000"),
        (["--accept-drops=perhaps"], "--accept-drops is true or false"),
        (["--secrets=x"], "--secrets is property:VARIABLE"),
        (["--speed=9"], "no argument of this job"),
    ],
)
def test_what_cannot_be_harvested(lab: Lab, metastore: Metastore, arguments: list[str], said: str) -> None:
    named = arguments if arguments[0].startswith("--catalog") else [f"--catalog={metastore.name}", *arguments]
    code, output = lab.run("pipelines.harvest", *named)
    assert code in (2, 4) and said in output, output
    assert len(output.strip().splitlines()) == 1 and metastore.runs() == []
