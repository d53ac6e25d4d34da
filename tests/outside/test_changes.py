"""What an alteration of a table tells its system: the changes, not what the table is to look like afterwards."""

from __future__ import annotations

import pytest

from catalogs.models import Intent
from catalogs.services import tables
from formats.native.tables import AddColumn, DeleteColumn, RenameColumn
from metalake.errors import Invalid
from tests.outside.crashes import killed_at, settle_all
from tests.outside.writes import Bench
from tests.providers.columns import numbered

pytestmark = pytest.mark.django_db(transaction=True)

RENAME = {"@type": "renameColumn", "oldFieldName": ["delay"], "newFieldName": "minutes"}
ADD = {"@type": "addColumn", "fieldName": ["minutes"], "type": "integer"}
DROP = {"@type": "deleteColumn", "fieldName": ["delay"]}


@pytest.fixture
def delays(bench: Bench) -> Bench:
    bench.make_schema("flights")
    bench.make_table("flights", "delays")
    return bench


def alter(bench: Bench, *updates: object) -> None:
    tables.alter_native_table(bench.actor, bench.ident("flights", "delays"), list(updates))


def numbers(bench: Bench) -> dict[str, int]:
    """By which the system tells the columns of the table, and finds their data."""
    with bench.world.open() as state:
        return numbered(state["tables"]["flights\x1fdelays"])


def test_a_renamed_column_keeps_its_number(delays: Bench) -> None:
    assert numbers(delays) == {"delay": 1, "carrier": 2}
    alter(delays, RenameColumn.model_validate(RENAME))
    assert numbers(delays) == {"minutes": 1, "carrier": 2}


def test_a_column_that_is_dropped_and_added_is_another(delays: Bench) -> None:
    alter(delays, AddColumn.model_validate(ADD), DeleteColumn.model_validate(DROP))
    assert numbers(delays) == {"carrier": 2, "minutes": 3}


def test_an_intent_keeps_the_changes_their_version_and_what_they_come_to(delays: Bench) -> None:
    with delays.world.open() as state:
        before = state["tables"]["flights\x1fdelays"]["definition"]
    killed_at("promised", lambda: alter(delays, RenameColumn.model_validate(RENAME)))
    arguments = Intent.objects.latest("created_at").steps[0]["arguments"]
    assert arguments["changes"] == [RENAME]
    names = [column["name"] for column in arguments["expected"]["columns"]]
    assert names == ["minutes", "carrier"] and "definition" not in arguments
    settle_all()
    with delays.world.open() as state:
        assert state["tables"]["flights\x1fdelays"]["definition"] == before, "it was never sent"


def test_several_changes_are_one_call_made_whole_or_refused(delays: Bench) -> None:
    alter(delays, RenameColumn.model_validate(RENAME), AddColumn.model_validate(ADD | {"fieldName": ["gate"]}))
    assert delays.world.calls("alter_table") == 1
    assert numbers(delays) == {"minutes": 1, "carrier": 2, "gate": 3}
    before = numbers(delays)
    with pytest.raises(Invalid):
        alter(delays, DeleteColumn.model_validate(DROP | {"fieldName": ["gate"]}), AddColumn.model_validate(ADD))
    assert numbers(delays) == before
