"""The dialect workbench of a view: checks and suggestions. Not part of upstream's wire."""

from __future__ import annotations

from typing import Any, Literal

from authz.actor import Actor
from formats.native.views import SqlRepresentation
from metalake.full_names import dotted
from metalake.rest.views import Endpoint, answers
from metalake.wire import Body, Reply
from views_mgmt.api.views import address_of
from views_mgmt.replies import RepresentationReply, representation_reply
from views_mgmt.services import workbench
from views_mgmt.services.workbench import DialectCheck, Read, Suggestion


class CheckViewRequest(Body):
    """A representation to be checked as if the view had it already."""

    representation: SqlRepresentation


class SuggestDialectRequest(Body):
    """The wanted dialect, and the one to translate from: the view's first other one if none is named."""

    dialect: str
    source: str | None = None


class ProblemReply(Reply):
    """What is wrong with SQL; line and column count from 1, and are null where the place is not known."""

    text: str
    line: int | None
    column: int | None


class SourceColumnReply(Reply):
    """A column of one of `reads`, by its place in that list, from 0."""

    source: int
    name: str


class OutputColumnReply(Reply):
    """A column that the SQL yields; each part is null where it cannot be told. `type` has no lengths or precisions."""

    name: str | None
    type: str | None
    made_of: list[SourceColumnReply] | None


class ReadReply(Reply):
    """A table or view that the SQL reads, as the engine looks it up, and what it is here: null with the `reason`."""

    catalog: str | None
    schema_name: str | None
    name: str
    type: Literal["table", "view"] | None
    full_name: str | None
    reason: str | None


class ColumnDifferenceReply(Reply):
    """How the SQL's columns differ from the declared ones; `position` counts from 1, null for all of them."""

    text: str
    position: int | None


class OwnCheckReply(Reply):
    """What the view's own system says of it without running it; it can run if there are no `problems`."""

    engine: str
    problems: list[str]


class DialectCheckReply(Reply):
    """What one dialect reads and yields; `generic` says that it was read as generic SQL, as its own is not known.

    `own` is what the system that has the view says of it, null where it does not say.
    """

    dialect: str
    generic: bool
    problems: list[ProblemReply]
    reads: list[ReadReply]
    columns: list[OutputColumnReply] | None
    differences: list[ColumnDifferenceReply]
    own: OwnCheckReply | None


class SuggestionReply(Reply):
    """A representation that is not stored; null with `problems` where the source's SQL cannot be read."""

    representation: RepresentationReply | None
    source: str
    generic: bool
    not_carried_over: list[str]
    problems: list[ProblemReply]


class ViewCheck(Endpoint):
    @answers(
        "load_view",
        body=CheckViewRequest,
        body_is_optional=True,
        reply={"dialects": list[DialectCheckReply]},
        id="check_view",
    )
    def post(
        self, actor: Actor, metalake: str, catalog: str, schema: str, view: str, body: CheckViewRequest | None
    ) -> dict[str, Any]:
        """Read the SQL of each dialect: what it reads, what it yields, and what is wrong with it. Stores nothing.

        With a body, the view is checked as it would be with that representation, new or in the place of its dialect's.
        """
        draft = None if body is None else body.representation.representation()
        checks = workbench.check(actor, address_of(metalake, catalog, schema, view), draft)
        return {"dialects": [_check(each) for each in checks]}


class ViewSuggestion(Endpoint):
    @answers("load_view", body=SuggestDialectRequest, reply={"suggestion": SuggestionReply}, id="suggest_dialect")
    def post(
        self, actor: Actor, metalake: str, catalog: str, schema: str, view: str, body: SuggestDialectRequest
    ) -> dict[str, Any]:
        """Translate a view's SQL to another dialect, marking what could not be carried over. Stores nothing."""
        address = address_of(metalake, catalog, schema, view)
        return {"suggestion": _suggestion(workbench.suggest(actor, address, body.dialect, body.source))}


def _check(each: DialectCheck) -> dict[str, Any]:
    columns = each.reading.columns
    return {
        "dialect": each.representation.dialect,
        "generic": each.reading.is_generic,
        "problems": [vars(problem) for problem in each.reading.problems],
        "reads": [_read(read) for read in each.reads],
        "columns": None if columns is None else [_column(column) for column in columns],
        "differences": [{"text": one.text, "position": one.position} for one in each.differences],
        "own": each.own,
    }


def _column(column: Any) -> dict[str, Any]:
    made_of = None if column.made_of is None else [vars(each) for each in column.made_of]
    return {"name": column.name, "type": column.type, "madeOf": made_of}


def _read(read: Read) -> dict[str, Any]:
    target = read.target
    return {
        "catalog": read.source.catalog,
        "schemaName": read.source.schema,
        "name": read.source.name,
        "type": None if target is None else target.kind,
        "fullName": None if target is None else dotted(target.full_name),
        "reason": read.reason,
    }


def _suggestion(suggestion: Suggestion) -> dict[str, Any]:
    translation = suggestion.translation
    return {
        "representation": None if translation.sql is None else representation_reply(suggestion.representation),
        "source": suggestion.source_dialect,
        "generic": translation.is_generic,
        "notCarriedOver": list(translation.not_carried_over),
        "problems": [vars(problem) for problem in translation.problems],
    }
