"""What every provider of an outside system must do; skipped only by what its stores do not offer.

A provider's test file makes a class of these with a fixture `provider` of its own:

    class TestHive(Behaviours):
        @pytest.fixture
        def provider(self, any_hms: HiveMetastore) -> HiveProvider: ...
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from formats.native.tables import CreateTableRequest, SetProperty, UpdateComment
from metalake.errors import AlreadyExists, Conflict, NotEmpty, NotFound, Unsupported
from metalake.kinds import Kind
from providers.external import ExternalProvider, Levels, Page, Remote
from tests.parts import not_offered

COLUMNS = [{"name": "carrier", "type": "string"}, {"name": "delay", "type": "integer"}]


def asked(name: str, **properties: str) -> CreateTableRequest:
    return CreateTableRequest.model_validate(
        {"name": name, "comment": "how late", "columns": COLUMNS, "properties": properties}
    )


def everything(provider: ExternalProvider, verb: str, **arguments: Any) -> list[Remote]:
    """A listing's pages put together."""
    found: list[Remote] = []
    page: Page = getattr(provider, verb)(**arguments)
    found += page.items
    while page.next is not None:
        page = getattr(provider, verb)(**arguments, page=page.next)
        found += page.items
    return found


def rename(provider: ExternalProvider, schema: Levels, table: Remote, name: str) -> None:
    """Make the calls that rename a table in its schema."""
    try:
        calls = provider.renaming(schema, schema, name, table, "41")
    except Unsupported as refusal:
        not_offered(refusal.message)
    for verb, arguments in calls:
        getattr(provider, verb)(**arguments)


def altered(provider: ExternalProvider, table: Remote, *changes: Any) -> dict[str, Any]:
    """The definition of a table after changes, where those are made to definitions."""
    try:
        return provider.altered_table(table.definition, changes)
    except Unsupported as refusal:
        not_offered(refusal.message)


def set_property(name: str, value: str) -> SetProperty:
    return SetProperty.model_validate({"@type": "setProperty", "property": name, "value": value})


class Behaviours:
    """Schemas and tables, one call each."""

    tick = 0.0  # seconds after which what is made again under an old name is told from the old one

    @pytest.fixture
    def schema(self, provider: ExternalProvider) -> Iterator[Levels]:
        """An empty schema of the test's own."""
        where = [f"flights_{uuid4().hex[:8]}"]
        provider.create_schema(where, provider.new_schema("of 2013", {"owner_team": "ops"}))
        yield where
        provider.drop_schema(where, provider.load_schema(where).identity, cascade=True)

    @staticmethod
    def make(provider: ExternalProvider, schema: Levels, name: str, **properties: str) -> Remote:
        definition = provider.new_table(provider.load_schema(schema), asked(name, **properties))
        return provider.create_table(schema, name, definition)

    # Schemas

    def test_a_schema_is_made_loaded_altered_and_dropped(self, provider: ExternalProvider) -> None:
        where = [f"sales_{uuid4().hex[:8]}"]
        made = provider.create_schema(where, provider.new_schema("of 2013", {"owner_team": "ops"}))
        assert (made.name, made.kind) == (where[0], Kind.SCHEMA)
        assert provider.load_schema(where) == made
        shown = provider.shown_schema(made.definition)
        assert shown["comment"] == "of 2013" and shown["properties"]["owner_team"] == "ops"
        wanted = provider.altered_schema(
            made.definition, shown["comment"], {**shown["properties"], "owner_team": "bi", "region": "emea"}
        )
        altered = provider.alter_schema(where, wanted, made.version)
        shown = provider.shown_schema(altered.definition)["properties"]
        assert (shown["owner_team"], shown["region"]) == ("bi", "emea")
        assert altered.version != made.version and altered.identity == made.identity
        del shown["owner_team"]
        fewer = provider.altered_schema(altered.definition, "of 2013", shown)
        last = provider.alter_schema(where, fewer, altered.version)
        assert "owner_team" not in provider.shown_schema(last.definition)["properties"]
        assert provider.load_schema(where) == last
        provider.drop_schema(where, made.identity)
        with pytest.raises(NotFound) as missing:
            provider.load_schema(where)
        assert missing.value.kind == Kind.SCHEMA

    def test_what_is_missing_or_there_already_is_said(self, provider: ExternalProvider, schema: Levels) -> None:
        nowhere = [f"none_{uuid4().hex[:8]}"]
        plain = provider.new_schema(None, {})
        with pytest.raises(NotFound) as missing:
            provider.load_table(schema, "delays")
        assert missing.value.kind == Kind.TABLE
        calls: list[tuple[str, dict[str, Any]]] = [
            ("load_schema", {}),
            ("alter_schema", {"definition": plain, "version": "1"}),
            ("drop_schema", {"identity": ""}),
            ("list_tables", {}),
            ("list_tables", {"whole": True}),
        ]
        for verb, arguments in calls:
            with pytest.raises(NotFound) as missing:
                getattr(provider, verb)(schema=nowhere, **arguments)
            assert missing.value.kind == Kind.SCHEMA, verb
        with pytest.raises(AlreadyExists) as taken:
            provider.create_schema(schema, plain)
        assert taken.value.kind == Kind.SCHEMA

    def test_every_schema_is_listed_once(self, provider: ExternalProvider, schema: Levels) -> None:
        others = [[f"{schema[0]}_{number}"] for number in range(4)]
        for each in others:
            provider.create_schema(each, provider.new_schema(None, {}))
        listed = [one.name for one in everything(provider, "list_schemas")]
        assert len(listed) == len(set(listed)) and {schema[0], *(each[0] for each in others)} <= set(listed)
        one = next(one for one in everything(provider, "list_schemas") if one.name == schema[0])
        assert one == provider.load_schema(schema), "a listing says what a load says"
        for each in others:
            provider.drop_schema(each, provider.load_schema(each).identity)

    def test_a_schema_that_changed_meanwhile_is_not_altered(self, provider: ExternalProvider, schema: Levels) -> None:
        before = provider.load_schema(schema)
        mine = provider.altered_schema(before.definition, "of 2013", {"owner_team": "mine"})
        theirs = provider.altered_schema(before.definition, "of 2013", {"owner_team": "theirs"})
        now = provider.alter_schema(schema, theirs, before.version)
        with pytest.raises(Conflict):
            provider.alter_schema(schema, mine, before.version)
        assert provider.load_schema(schema) == now

    def test_a_schema_with_tables_is_dropped_only_with_them(self, provider: ExternalProvider, schema: Levels) -> None:
        where = [f"{schema[0]}_full"]
        provider.create_schema(where, provider.new_schema(None, {}))
        self.make(provider, where, "delays")
        self.make(provider, where, "airlines")
        identity = provider.load_schema(where).identity
        with pytest.raises(NotEmpty):
            provider.drop_schema(where, identity)
        assert provider.load_table(where, "delays").name == "delays"
        provider.drop_schema(where, identity, cascade=True)
        with pytest.raises(NotFound):
            provider.load_schema(where)

    # Tables

    def test_a_table_is_made_loaded_and_dropped(self, provider: ExternalProvider, schema: Levels) -> None:
        made = self.make(provider, schema, "delays", owner_team="ops")
        assert (made.name, made.kind) == ("delays", Kind.TABLE) and made.version
        assert provider.load_table(schema, "delays") == made
        shown = provider.shown_table(made.definition)
        assert [(column["name"], column["type"]) for column in shown["columns"]] == [
            ("carrier", "string"),
            ("delay", "integer"),
        ]
        assert shown["comment"] == "how late" and shown["properties"]["owner_team"] == "ops"
        provider.drop_table(schema, "delays", made.identity)
        with pytest.raises(NotFound):
            provider.load_table(schema, "delays")

    def test_a_table_is_altered(self, provider: ExternalProvider, schema: Levels) -> None:
        made = self.make(provider, schema, "delays", owner_team="ops")
        say = UpdateComment.model_validate({"@type": "updateComment", "newComment": "in minutes"})
        wanted = altered(provider, made, set_property("region", "emea"), say)
        last = provider.alter_table(schema, "delays", wanted, made.version)
        shown = provider.shown_table(last.definition)
        assert shown["comment"] == "in minutes"
        assert (shown["properties"]["owner_team"], shown["properties"]["region"]) == ("ops", "emea")
        assert last.identity == made.identity and last.version != made.version
        assert provider.load_table(schema, "delays") == last

    def test_a_table_that_changed_meanwhile_is_not_altered(self, provider: ExternalProvider, schema: Levels) -> None:
        before = self.make(provider, schema, "delays")
        now = provider.alter_table(schema, "delays", provider.marked(before.definition, "41"), before.version)
        with pytest.raises(Conflict):
            provider.alter_table(schema, "delays", provider.marked(before.definition, "42"), before.version)
        assert provider.load_table(schema, "delays") == now

    def test_writes_to_what_is_missing_or_taken_are_refused(self, provider: ExternalProvider, schema: Levels) -> None:
        made = self.make(provider, schema, "delays")
        with pytest.raises(AlreadyExists) as taken:
            self.make(provider, schema, "delays")
        assert taken.value.kind == Kind.TABLE
        with pytest.raises(NotFound):
            provider.create_table([f"{schema[0]}_none"], "delays", made.definition)
        with pytest.raises(NotFound):
            provider.alter_table(schema, "airlines", made.definition, made.version)
        with pytest.raises(NotFound):
            provider.drop_table(schema, "airlines", made.identity)
        assert provider.load_table(schema, "delays") == made

    def test_what_is_made_again_is_another_table(self, provider: ExternalProvider, schema: Levels) -> None:
        first = self.make(provider, schema, "delays")
        provider.drop_table(schema, "delays", first.identity)
        time.sleep(self.tick)
        second = self.make(provider, schema, "delays")
        assert first.identity != second.identity
        with pytest.raises(NotFound):
            provider.drop_table(schema, "delays", first.identity)
        assert provider.load_table(schema, "delays") == second

    def test_every_table_is_listed_once(self, provider: ExternalProvider, schema: Levels) -> None:
        made = {f"t{number}": self.make(provider, schema, f"t{number}") for number in range(7)}
        for whole in (False, True):
            listed = everything(provider, "list_tables", schema=schema, whole=whole)
            assert sorted(one.name for one in listed) == sorted(made)
            assert {one.kind for one in listed} == {Kind.TABLE}
        for one in everything(provider, "list_tables", schema=schema, whole=True):
            assert one == made[one.name], "a whole listing says what a load says"

    def test_a_table_is_renamed(self, provider: ExternalProvider, schema: Levels) -> None:
        made = self.make(provider, schema, "delays", owner_team="ops")
        self.make(provider, schema, "airlines")
        with pytest.raises(AlreadyExists):
            rename(provider, schema, made, "airlines")
        rename(provider, schema, made, "late")
        renamed = provider.load_table(schema, "late")
        assert renamed.name == "late"
        assert provider.shown_table(renamed.definition)["properties"]["owner_team"] == "ops"
        with pytest.raises(NotFound):
            provider.load_table(schema, "delays")
        with pytest.raises(NotFound):
            rename(provider, schema, made, "later")
        assert provider.load_table(schema, "late") == renamed

    # Markers

    def test_a_marker_is_kept_and_not_shown(self, provider: ExternalProvider, schema: Levels) -> None:
        plain = provider.load_schema(schema)
        assert provider.marker_of(plain.definition) == ""
        ours = provider.alter_schema(schema, provider.marked(plain.definition, "41"), plain.version)
        assert provider.marker_of(provider.load_schema(schema).definition) == "41"
        assert provider.shown_schema(ours.definition) == provider.shown_schema(plain.definition)
        definition = provider.new_table(ours, asked("delays"))
        made = provider.create_table(schema, "delays", provider.marked(definition, "42"))
        assert provider.marker_of(provider.load_table(schema, "delays").definition) == "42"
        assert not any("intent" in name for name in provider.shown_table(made.definition)["properties"])
        again = provider.alter_table(schema, "delays", provider.marked(made.definition, "43"), made.version)
        assert provider.marker_of(again.definition) == "43"
