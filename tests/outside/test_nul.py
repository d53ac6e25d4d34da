"""NUL characters in what others wrote outside: kept by no database, and not lost there when we alter or move it."""

from __future__ import annotations

from typing import Any

import pytest

from catalogs.models import Intent, Mirror, RefreshRun, Reservation
from metalake.errors import Invalid
from outside import refresh
from providers import nul_characters
from tests.catalogs.callers import Caller, update
from tests.outside.crashes import settle_all
from tests.outside.writes import Bench
from tests.providers.memory import MemorySchemas

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

NULL_FORMAT = "serialization.null.format"


@pytest.fixture(params=["deep", "flat"])
def odd(request: pytest.FixtureRequest, benches: dict[str, Bench]) -> Bench:
    """A schema and a table of others with NUL in a key and in values; in `flat` a table is renamed by copying it."""
    bench = benches[request.param]
    bench.world.put_schema("flights", team="a\0b")
    bench.world.put_table("flights", "delays", **{NULL_FORMAT: "\0", "k\0": "v"})
    return bench


def at(bench: Bench, table: str | None = None) -> str:
    schema = f"metalakes/demo/catalogs/{bench.catalog}/schemas/flights"
    return schema if table is None else f"{schema}/tables/{table}"


def there(bench: Bench, table: str | None = None) -> dict[str, str]:
    with bench.world.open() as state:
        kept = state["schemas"]["flights"] if table is None else state["tables"][f"flights\x1f{table}"]
    return dict(kept["definition"]["properties"])


def test_a_table_is_shown_altered_renamed_and_dropped(odd: Bench, admin: Caller) -> None:
    shown = admin.get(at(odd, "delays"))["table"]["properties"]
    assert {key for key in shown if "\0" in key + shown[key]} == set()
    assert admin.put(at(odd, "delays"), update("setProperty", property="team", value="ops")).status == 200
    assert there(odd, "delays").items() >= {NULL_FORMAT: "\0", "k\0": "v", "team": "ops"}.items()
    assert admin.put(at(odd, "delays"), update("rename", newName="late")).status == 200
    assert there(odd, "late").items() >= {NULL_FORMAT: "\0", "k\0": "v", "team": "ops"}.items()
    assert admin.get(at(odd, "late")).status == 200
    assert admin.delete(at(odd, "late")).body["dropped"] is True
    assert not Reservation.objects.exists()


def test_a_schema_is_shown_altered_and_dropped(odd: Bench, admin: Caller) -> None:
    odd.world.drop("flights", "delays")
    assert admin.get(at(odd)).status == 200
    assert admin.put(at(odd), update("setProperty", property="region", value="emea")).status == 200
    assert there(odd).items() >= {"team": "a\0b", "region": "emea"}.items()
    assert admin.delete(at(odd)).body["dropped"] is True


def test_what_was_shown_may_be_given_back(odd: Bench, admin: Caller) -> None:
    shown = admin.get(at(odd, "delays"))["table"]["properties"][NULL_FORMAT]
    answer = admin.put(at(odd, "delays"), update("setProperty", property="another", value=shown))
    assert answer["table"]["properties"]["another"] == shown
    assert there(odd, "delays")["another"] == "\0"


def test_a_walk_comes_by_it(odd: Bench) -> None:
    catalog = refresh.Catalog.objects.get(name=odd.catalog)
    ended = refresh.carry_on(refresh.begin(catalog.pk, here=True).pk)
    assert ended is not None
    assert ended.state == RefreshRun.State.DONE, ended.error
    kept = Mirror.objects.get(wire_name="delays").definition["properties"]
    assert kept == {NULL_FORMAT: nul_characters.STAND_IN, f"k{nul_characters.STAND_IN}": "v"}


def test_a_schema_of_others_on_the_way_to_ours(bench: Bench) -> None:
    """Taken for what it is: its definition is kept with the write that met it."""
    bench.world.put_schema("sales", team="\0")
    bench.make_schema("sales:emea")
    assert there_is(bench, "sales")["team"] == "\0"


def there_is(bench: Bench, schema: str) -> dict[str, str]:
    with bench.world.open() as state:
        return dict(state["schemas"][schema]["definition"]["properties"])


def test_a_refusal_that_quotes_it_ends_the_write(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: MemorySchemas, schema: list[str], definition: dict[str, Any], marker: str) -> None:
        raise Invalid("The value '\0' is not taken.", kind="schema")

    monkeypatch.setattr(MemorySchemas, "create", refuse)
    with pytest.raises(Invalid, match="The value '' is not taken"):
        bench.make_schema("sales")
    assert Intent.objects.get().state == Intent.State.ABORTED
    settle_all()
    assert not Reservation.objects.exists()
