"""What engines say of views, as jobs deliver it, and what jobs read for that. Not part of upstream's wire."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import StreamingHttpResponse
from pydantic import Field

from authz.actor import Actor
from authz.wire.rights import present
from metalake.full_names import dotted
from metalake.paging import Page, read_size
from metalake.rest.ndjson import lines_of, number_or_none
from metalake.rest.replies import moment_text
from metalake.rest.views import Endpoint, answers
from metalake.wire import Body, Reply
from views_mgmt.api.views import address_of
from views_mgmt.api.workbench import ColumnDifferenceReply, ProblemReply, SourceColumnReply
from views_mgmt.models import ViewFinding as Row
from views_mgmt.models import ViewVersion
from views_mgmt.replies import representation_reply
from views_mgmt.services import findings
from views_mgmt.services.findings import Broken, Finding

MOST_AT_ONCE = 200  # findings of one request
DEFAULT_SIZE, MAX_SIZE = 100, 500  # of a page

Name = Annotated[str, Field(max_length=255)]
Text = Annotated[str, Field(min_length=1, max_length=1000)]
Place = Annotated[int, Field(ge=1)]


class ProblemBody(Body):
    """What is wrong with SQL; line and column count from 1."""

    text: Text
    line: Place | None = None
    column: Place | None = None


class DifferenceBody(Body):
    """How the SQL's columns differ from the declared ones; `position` counts from 1, and is left out for all."""

    text: Text
    position: Place | None = None


class ReadBody(Body):
    """A table or view that the SQL reads, by the names that the engine looked up."""

    catalog: Name
    schema_name: Annotated[str, Field(max_length=1024)]
    name: Name


class MadeOfBody(Body):
    """A column of one of `reads`, by its place in that list, from 0."""

    source: Annotated[int, Field(ge=0)]
    name: Name


class ColumnBody(Body):
    """A column that the SQL yields."""

    name: Name
    type: Text
    made_of: Annotated[list[MadeOfBody], Field(max_length=1000)]


class DialectBody(Body):
    """What the engine says of one dialect of a view."""

    dialect: Name
    problems: Annotated[list[ProblemBody], Field(max_length=50)]
    differences: Annotated[list[DifferenceBody], Field(max_length=1000)]
    reads: Annotated[list[ReadBody], Field(max_length=1000)]
    columns: Annotated[list[ColumnBody], Field(max_length=10_000)]


class FindingBody(Body):
    """What the engine says of one version of a view, which is named by its id."""

    view: Annotated[int, Field(ge=1, lt=2**63)]
    version: Annotated[int, Field(ge=1, lt=2**31)]
    dialects: Annotated[list[DialectBody], Field(max_length=32)]


class FindingsRequest(Body):
    """What one engine says of some views, each once."""

    engine: Annotated[str, Field(min_length=1, max_length=64)]
    findings: Annotated[list[FindingBody], Field(max_length=MOST_AT_ONCE)]


class NamesReply(Reply):
    """A table or view that the SQL reads, by the names that the engine looked up."""

    catalog: str
    schema_name: str
    name: str


class EngineColumnReply(Reply):
    """A column that the SQL yields, with the engine's type."""

    name: str
    type: str
    made_of: list[SourceColumnReply]


class DialectFindingReply(Reply):
    """What the engine says of one dialect: as it was delivered."""

    dialect: str
    problems: list[ProblemReply]
    differences: list[ColumnDifferenceReply]
    reads: list[NamesReply]
    columns: list[EngineColumnReply]


class FindingReply(Reply):
    """What an engine says of the present version of a view, when it was delivered and by whom.

    `unseen` are dialects that are left out: they read something that does not exist, or that the caller may not load.
    """

    version: int
    engine: str
    at: str
    by: str
    broken: bool
    dialects: list[DialectFindingReply]
    unseen: list[str]


class BrokenViewReply(Reply):
    """A broken view: `reason` says why it cannot be read, null if it can; `finding` is what an engine says, or null."""

    full_name: str
    reason: str | None
    finding: FindingReply | None


DELIVERED = {"stored": list[int], "outdated": list[int], "refused": list[int], "missing": list[int]}


class BulkViews(Endpoint):
    @answers("load_metalake", query=("after",), id="streamViews", streams=True)
    def get(self, actor: Actor, metalake: str) -> StreamingHttpResponse:
        """Stream the views that the caller may load, each as it is now, by id.

        A stream that broke goes on with the `place` of the last line that came as `after`.
        """
        after = number_or_none("after", self.text("after")) or 0
        batches = findings.readable_views(actor, metalake, after)
        return lines_of({"metalake": metalake}, ((_line(view, version) for view, version in some) for some in batches))


class BulkFindings(Endpoint):
    @answers("alter_view", body=FindingsRequest, reply=DELIVERED, id="deliverFindings")
    def post(self, actor: Actor, metalake: str, body: FindingsRequest) -> dict[str, Any]:
        """Deliver what an engine says of views, for the versions that it read; delivered twice it counts once.

        It takes the right to load each view and to alter it. The reply has the ids of views: of which it is stored,
        that have another version by now, that the caller may not alter, and that they may not load.
        """
        asked = [Finding(each.view, each.version, [_stored(one) for one in each.dialects]) for each in body.findings]
        return findings.deliver(actor, metalake, body.engine, _once(asked))._asdict()


class ViewFinding(Endpoint):
    @answers("load_view", reply={"finding": FindingReply | None}, id="load_view_finding")
    def get(self, actor: Actor, metalake: str, catalog: str, schema: str, view: str) -> dict[str, Any]:
        """What an engine says of the view as it is now; nothing if no job asked one since it was changed."""
        row = findings.finding_of(actor, address_of(metalake, catalog, schema, view))
        return present(finding=row and _finding(row))


class BrokenViews(Endpoint):
    @answers(
        "load_metalake",
        reply={"views": list[BrokenViewReply], "nextPageToken": str | None},
        query=("limit", "pageToken"),
        id="list_broken_views",
    )
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """List the views that cannot be read or that are wrong to an engine, as far as the caller may load them."""
        size = read_size("limit", self.text("limit"), DEFAULT_SIZE, MAX_SIZE)
        page = Page(size, self.text("pageToken"), "broken views", actor.name, metalake)
        rows = findings.broken_views(actor, metalake, int(page.after) if page.after else 0)
        some, token = page.cut(rows, lambda row: str(row.view.id))
        return present(views=list(map(_broken, some)), nextPageToken=token)


def _once(asked: list[Finding]) -> list[Finding]:
    """The last one of each view."""
    return list({each.view: each for each in asked}.values())


def _stored(dialect: DialectBody) -> dict[str, Any]:
    return dialect.model_dump(by_alias=True)


def _line(view: Any, version: ViewVersion) -> dict[str, Any]:
    catalog, schema, name = view.full_name[-3:]
    return {
        "place": view.id,
        "view": view.id,
        "version": version.version,
        "catalog": catalog,
        "schema": schema,
        "name": name,
        "format": version.view.format,
        "columns": version.columns,
        "representations": [representation_reply(each) for each in version.definition.representations],
    }


def _finding(row: Row) -> dict[str, Any]:
    shown = {"version": row.version, "engine": row.engine, "at": moment_text(row.at), "by": row.by}
    return shown | {"broken": row.is_broken, "dialects": row.dialects, "unseen": list(row.unseen)}


def _broken(row: Broken) -> dict[str, Any]:
    finding = None if row.finding is None else _finding(row.finding)
    return {"fullName": dotted(row.view.full_name), "reason": row.why or None, "finding": finding}
