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

import pytest

from formats.native.changes import as_json, of_schema
from formats.native.tables import CreateTableRequest, SetProperty, UpdateComment
from metalake.errors import AlreadyExists, Conflict, Invalid, NotEmpty, NotFound, Unsupported
from metalake.kinds import Kind
from providers.base import Provider
from providers.remote_objects import Levels, NewTable, Page, Remote
from providers.stores import Outcome, OutcomeUnknowable
from tests.names import own_name
from tests.parts import not_offered

COLUMNS = [{"name": "carrier", "type": "string"}, {"name": "delay", "type": "integer"}]


CARRIER = {"type": "field", "fieldName": ["carrier"]}
LAYOUT: dict[str, Any] = {  # the parts of a table that few systems have, as a request names them
    "partitioning": [{"strategy": "identity", "fieldName": ["carrier"]}],
    "sortOrders": [{"sortTerm": CARRIER, "direction": "asc", "nullOrdering": "nulls_first"}],
    "distribution": {"strategy": "hash", "number": 4, "funcArgs": [CARRIER]},
    "indexes": [{"indexType": "PRIMARY_KEY", "name": "pk", "fieldNames": [["delay"]]}],
}


def asked(name: str, **properties: str) -> CreateTableRequest:
    return CreateTableRequest.model_validate(
        {"name": name, "comment": "how late", "columns": COLUMNS, "properties": properties}
    )


def everything(provider: Provider, verb: str, **arguments: Any) -> list[Remote]:
    """A listing's pages put together."""
    found: list[Remote] = []
    page: Page = provider.call(verb, arguments)
    found += page.items
    while page.next is not None:
        page = provider.call(verb, arguments | {"page": page.next})
        found += page.items
    return found


def rename(provider: Provider, schema: Levels, table: Remote, name: str) -> None:
    """Make the calls that rename a table in its schema."""
    try:
        calls = provider.tables.renaming(schema, schema, name, table, "41")
    except Unsupported as refusal:
        not_offered(refusal.message)
    for verb, arguments in calls:
        provider.call(verb, arguments)


def create(provider: Provider, schema: Levels, name: str, new: NewTable, **more: Any) -> Remote:
    return provider.tables.create(schema, name, new.definition, new.plan, **more)


def alter(provider: Provider, schema: Levels, table: Remote, *updates: Any, marker: str = "") -> Remote:
    """A table after updates, where its definition can be changed at all."""
    try:
        expected = provider.tables.altered(table.definition, updates)
    except Unsupported as refusal:
        not_offered(refusal.message)
    after = provider.tables.alter(schema, table.name, as_json(updates), table.version, expected, marker)
    shown, wanted = (provider.tables.show(each) for each in (after.definition, expected))
    assert (shown["comment"], shown["columns"]) == (wanted["comment"], wanted["columns"]), "as it was expected"
    return after


def alter_schema(provider: Provider, schema: Remote, properties: dict[str, str], marker: str = "") -> Remote:
    """A schema with these properties."""
    changes = changes_to(provider, schema, properties)
    return provider.schemas.alter([schema.name], changes, schema.version, marker=marker)


def changes_to(provider: Provider, schema: Remote, properties: dict[str, str]) -> list[dict[str, Any]]:
    shown = provider.schemas.show(schema.definition)
    return of_schema(shown["properties"], properties, (shown["comment"], shown["comment"]))


def set_property(name: str, value: str) -> SetProperty:
    return SetProperty.model_validate({"@type": "setProperty", "property": name, "value": value})


def set_comment(text: str) -> UpdateComment:
    return UpdateComment.model_validate({"@type": "updateComment", "newComment": text})


class Behaviours:
    """Schemas and tables, one call each."""

    tick = 0.0  # seconds after which what is made again under an old name is told from the old one
    has_properties = (
        True  # whether schemas and tables have properties; where they have none, asking for them is refused
    )
    has_identities = True  # whether the system tells a table from a later one of its name

    @pytest.fixture
    def schema(self, provider: Provider) -> Iterator[Levels]:
        """An empty schema of the test's own."""
        where = [own_name("flights")]
        provider.schemas.create(where, provider.schemas.draft("of 2013", self.owned()))
        yield where
        provider.schemas.drop(where, provider.schemas.load(where).identity, cascade=True)

    @staticmethod
    def make(provider: Provider, schema: Levels, name: str, **properties: str) -> Remote:
        return create(
            provider, schema, name, provider.tables.draft(provider.schemas.load(schema), asked(name, **properties))
        )

    def owned(self) -> dict[str, str]:
        """The properties that the tests give to schemas and tables."""
        return {"owner_team": "ops"} if self.has_properties else {}

    def change_schema(self, provider: Provider, schema: Remote, word: str) -> Remote:
        """A schema after one change, of a property where there are any, else of the comment."""
        if self.has_properties:
            shown = provider.schemas.show(schema.definition)["properties"]
            return alter_schema(provider, schema, shown | {"region": word})
        changes = of_schema({}, {}, (schema.definition["comment"], word))
        return provider.schemas.alter([schema.name], changes, schema.version)

    def change(self, word: str) -> SetProperty | UpdateComment:
        """The same of a table."""
        return set_property("region", word) if self.has_properties else set_comment(word)

    # Schemas

    def test_a_schema_is_made_loaded_altered_and_dropped(self, provider: Provider) -> None:
        where = [own_name("sales")]
        made = provider.schemas.create(where, provider.schemas.draft("of 2013", self.owned()))
        assert (made.name, made.kind) == (where[0], Kind.SCHEMA)
        assert provider.schemas.load(where) == made
        shown = provider.schemas.show(made.definition)
        assert shown["comment"] == "of 2013" and shown["properties"].items() >= self.owned().items()
        altered = self.change_schema(provider, made, "emea")
        assert altered.version != made.version and altered.identity == made.identity
        assert provider.schemas.load(where) == altered
        provider.schemas.drop(where, made.identity)
        with pytest.raises(NotFound) as missing:
            provider.schemas.load(where)
        assert missing.value.kind == Kind.SCHEMA

    def test_properties_are_stored_or_refused(self, provider: Provider, schema: Levels) -> None:
        before = provider.schemas.load(schema)
        if not self.has_properties:
            changes = of_schema({}, {"region": "emea"}, (None, None))
            with pytest.raises(Unsupported):
                provider.schemas.draft(None, {"region": "emea"})
            with pytest.raises(Unsupported):
                provider.schemas.altered(before.definition, changes)
            with pytest.raises(Unsupported):
                self.make(provider, schema, "delays", region="emea")
            return
        shown = provider.schemas.show(before.definition)["properties"]
        after = alter_schema(provider, before, {**shown, "owner_team": "bi", "region": "emea"})
        shown = provider.schemas.show(after.definition)["properties"]
        assert (shown["owner_team"], shown["region"]) == ("bi", "emea")
        del shown["owner_team"]
        last = alter_schema(provider, after, shown)
        assert "owner_team" not in provider.schemas.show(last.definition)["properties"]
        assert provider.schemas.load(schema) == last

    def test_what_is_missing_or_there_already_is_said(self, provider: Provider, schema: Levels) -> None:
        nowhere = [own_name("none")]
        plain = provider.schemas.draft(None, {})
        with pytest.raises(NotFound) as missing:
            provider.tables.load(schema, "delays")
        assert missing.value.kind == Kind.TABLE
        calls: list[tuple[str, dict[str, Any]]] = [
            ("load_schema", {}),
            ("alter_schema", {"changes": [], "version": "1"}),
            ("drop_schema", {"identity": ""}),
            ("list_tables", {}),
            ("list_tables", {"whole": True}),
        ]
        for verb, arguments in calls:
            with pytest.raises(NotFound) as missing:
                provider.call(verb, {"schema": nowhere, **arguments})
            assert missing.value.kind == Kind.SCHEMA, verb
        with pytest.raises(AlreadyExists) as taken:
            provider.schemas.create(schema, plain)
        assert taken.value.kind == Kind.SCHEMA

    def test_every_schema_is_listed_once(self, provider: Provider, schema: Levels) -> None:
        others = [[f"{schema[0]}_{number}"] for number in range(4)]
        for each in others:
            provider.schemas.create(each, provider.schemas.draft(None, {}))
        listed = [one.name for one in everything(provider, "list_schemas")]
        assert len(listed) == len(set(listed)) and {schema[0], *(each[0] for each in others)} <= set(listed)
        one = next(one for one in everything(provider, "list_schemas") if one.name == schema[0])
        assert one == provider.schemas.load(schema), "a listing says what a load says"
        for each in others:
            provider.schemas.drop(each, provider.schemas.load(each).identity)

    def test_a_schema_that_changed_meanwhile_is_not_altered(self, provider: Provider, schema: Levels) -> None:
        before = provider.schemas.load(schema)
        now = self.change_schema(provider, before, "theirs")
        with pytest.raises(Conflict):
            self.change_schema(provider, before, "mine")
        assert provider.schemas.load(schema) == now

    def test_a_schema_with_tables_is_dropped_only_with_them(self, provider: Provider, schema: Levels) -> None:
        where = [f"{schema[0]}_full"]
        provider.schemas.create(where, provider.schemas.draft(None, {}))
        self.make(provider, where, "delays")
        self.make(provider, where, "airlines")
        identity = provider.schemas.load(where).identity
        with pytest.raises(NotEmpty):
            provider.schemas.drop(where, identity)
        assert provider.tables.load(where, "delays").name == "delays"
        provider.schemas.drop(where, identity, cascade=True)
        with pytest.raises(NotFound):
            provider.schemas.load(where)

    # Tables

    def test_a_table_is_made_loaded_and_dropped(self, provider: Provider, schema: Levels) -> None:
        made = self.make(provider, schema, "delays", **self.owned())
        assert (made.name, made.kind) == ("delays", Kind.TABLE) and made.version
        assert provider.tables.load(schema, "delays") == made
        shown = provider.tables.show(made.definition)
        assert [(column["name"], column["type"]) for column in shown["columns"]] == [
            ("carrier", "string"),
            ("delay", "integer"),
        ]
        assert shown["comment"] == "how late" and shown["properties"].items() >= self.owned().items()
        assert shown.keys() == {"comment", "columns", "properties", *LAYOUT}
        provider.tables.drop(schema, "delays", made.identity)
        with pytest.raises(NotFound):
            provider.tables.load(schema, "delays")

    @pytest.mark.parametrize("part", LAYOUT)
    def test_a_part_of_a_table_is_stored_or_refused(self, provider: Provider, schema: Levels, part: str) -> None:
        request = CreateTableRequest.model_validate({"name": "delays", "columns": COLUMNS, part: LAYOUT[part]})
        try:
            new = provider.tables.draft(provider.schemas.load(schema), request)
        except (Invalid, Unsupported):
            return
        if new.plan is not None:
            return  # its metadata file has the parts, and the definition does not
        shown = provider.tables.show(create(provider, schema, "delays", new).definition)
        plain = provider.tables.show(self.make(provider, schema, "plain").definition)[part]
        assert shown[part] and shown[part] != plain, "it is not left out in silence"

    def test_a_table_is_altered(self, provider: Provider, schema: Levels) -> None:
        made = self.make(provider, schema, "delays", **self.owned())
        last = alter(provider, schema, made, self.change("emea"), set_comment("in minutes"))
        shown = provider.tables.show(last.definition)
        assert shown["comment"] == "in minutes"
        wanted = self.owned() | ({"region": "emea"} if self.has_properties else {})
        assert shown["properties"].items() >= wanted.items()
        assert last.identity == made.identity and last.version != made.version
        assert provider.tables.load(schema, "delays") == last

    def test_a_table_that_changed_meanwhile_is_not_altered(self, provider: Provider, schema: Levels) -> None:
        before = self.make(provider, schema, "delays")
        now = alter(provider, schema, before, self.change("emea"))
        with pytest.raises(Conflict):
            alter(provider, schema, before, self.change("apac"))
        assert provider.tables.load(schema, "delays") == now

    def test_writes_to_what_is_missing_or_taken_are_refused(self, provider: Provider, schema: Levels) -> None:
        made = self.make(provider, schema, "delays")
        with pytest.raises(AlreadyExists) as taken:
            self.make(provider, schema, "delays")
        assert taken.value.kind == Kind.TABLE
        with pytest.raises(NotFound):
            provider.tables.create([f"{schema[0]}_none"], "delays", made.definition)
        with pytest.raises(NotFound):
            provider.tables.alter(schema, "airlines", [], made.version)
        with pytest.raises(NotFound):
            provider.tables.drop(schema, "airlines", made.identity)
        assert provider.tables.load(schema, "delays") == made

    def test_what_is_made_again_is_another_table(self, provider: Provider, schema: Levels) -> None:
        if not self.has_identities:
            not_offered(f"{provider.label} does not tell a table from a later one of its name")
        first = self.make(provider, schema, "delays")
        provider.tables.drop(schema, "delays", first.identity)
        time.sleep(self.tick)
        second = self.make(provider, schema, "delays")
        assert first.identity != second.identity
        with pytest.raises(NotFound):
            provider.tables.drop(schema, "delays", first.identity)
        assert provider.tables.load(schema, "delays") == second

    def test_every_table_is_listed_once(self, provider: Provider, schema: Levels) -> None:
        made = {f"t{number}": self.make(provider, schema, f"t{number}") for number in range(7)}
        for whole in (False, True):
            listed = everything(provider, "list_tables", schema=schema, whole=whole)
            assert sorted(one.name for one in listed) == sorted(made)
            assert {one.kind for one in listed} == {Kind.TABLE}
        for one in everything(provider, "list_tables", schema=schema, whole=True):
            assert one == made[one.name], "a whole listing says what a load says"

    def test_a_table_is_renamed(self, provider: Provider, schema: Levels) -> None:
        made = self.make(provider, schema, "delays", **self.owned())
        self.make(provider, schema, "airlines")
        with pytest.raises(AlreadyExists):
            rename(provider, schema, made, "airlines")
        rename(provider, schema, made, "late")
        renamed = provider.tables.load(schema, "late")
        assert renamed.name == "late"
        assert provider.tables.show(renamed.definition)["properties"].items() >= self.owned().items()
        with pytest.raises(NotFound):
            provider.tables.load(schema, "delays")
        with pytest.raises(NotFound):
            rename(provider, schema, made, "later")
        assert provider.tables.load(schema, "late") == renamed

    # Markers

    def test_a_marker_is_kept_and_not_shown(self, provider: Provider, schema: Levels) -> None:
        plain = provider.schemas.load(schema)
        unmarked = self.make(provider, schema, "airlines")
        try:
            assert not provider.schemas.is_marked(plain, "41") and not provider.tables.is_marked(unmarked, "41")
        except OutcomeUnknowable as reason:
            not_offered(str(reason))
        shown = provider.schemas.show(plain.definition)
        ours = alter_schema(provider, plain, shown["properties"], marker="41")
        assert provider.schemas.is_marked(provider.schemas.load(schema), "41")
        assert provider.schemas.show(ours.definition) == shown
        made = create(provider, schema, "delays", provider.tables.draft(ours, asked("delays")), marker="42")
        assert provider.tables.is_marked(provider.tables.load(schema, "delays"), "42")
        assert not any("intent" in name for name in provider.tables.show(made.definition)["properties"])
        again = alter(provider, schema, made, set_property("region", "emea"), marker="43")
        assert provider.tables.is_marked(again, "43") and not provider.tables.is_marked(again, "42")

    def test_a_lost_answer_is_told_by_what_is_there(self, provider: Provider, schema: Levels) -> None:
        """A creation and an alteration by the marker, a drop by the identity; a namesake of others is not ours.

        Where no object carries a marker, both are told by what they were to come to.
        """

        def read(verb: str, **arguments: Any) -> Remote | None:
            try:
                answer: Remote = provider.call(verb, arguments)
            except NotFound:
                return None
            return answer

        def told(verb: str, marker: str, **arguments: Any) -> Outcome:
            where = {"schema": schema, "table": "delays", **arguments}
            return provider.tables.outcome(verb, where, marker, read)[0]

        new = provider.tables.draft(provider.schemas.load(schema), asked("delays"))
        assert told("create_table", "42", definition=new.definition) is Outcome.NOT_DONE
        made = create(provider, schema, "delays", new, marker="42")
        try:
            assert told("create_table", "42", definition=new.definition) is Outcome.DONE
        except OutcomeUnknowable as reason:
            not_offered(str(reason))
        if provider.tables.carries_markers:
            assert told("create_table", "43") is Outcome.OTHERS
        assert told("alter_table", "43", version=made.version) is Outcome.NOT_DONE
        assert told("drop_table", "44", identity=made.identity) is Outcome.NOT_DONE
        provider.tables.drop(schema, "delays", made.identity)
        assert told("drop_table", "44", identity=made.identity) is Outcome.DONE
