"""Tables: one endpoint per path of the Iceberg REST specification."""

from __future__ import annotations

from typing import Any

from authz import operations
from catalogs.services import commits, tables, transactions
from catalogs.services.transactions import TableCommit
from catalogs.table_stores import TableDraft, TableRecord
from iceberg_rest.leaves import list_leaves, rename_leaf
from iceberg_rest.names import checked_levels, checked_name
from iceberg_rest.replies import Reply, done
from iceberg_rest.routes import Call, route
from iceberg_rest.wire import (
    LEAST,
    Commit,
    CommitTransaction,
    CreateTable,
    RegisterTable,
    RenameLeaf,
    accepts_gzip,
    commit_result,
    etag_of,
    matches,
    packed_etag,
    packed_result,
    referenced_result,
    table_result,
)
from metalake.blocking import may_block
from metalake.bodies import read_json
from metalake.errors import Invalid
from metalake.headers import BY_CALLER
from metalake.kinds import Kind

LARGE = 8 * 1024 * 1024  # bytes of a response; copying more takes longer than a short read may
_VARY = f"Accept-Encoding, {BY_CALLER}"


@route("GET /v1/{prefix}/namespaces/{namespace}/tables", operations.LIST_TABLES, needs=Kind.TABLE, looks_up=Call.ident)
def list_tables(call: Call) -> Reply:
    return list_leaves(call, Kind.TABLE, tables.list_tables)


@route("POST /v1/{prefix}/namespaces/{namespace}/tables", operations.CREATE_TABLE, body=CreateTable, needs=Kind.TABLE)
def create_table(call: Call, body: CreateTable) -> Reply:
    """Create a table; a staged one (`stage-create`) is only described, its commit with assert-create creates it."""
    draft = TableDraft(
        schema=body.columns,
        partition_spec=body.partition_spec,
        sort_order=body.write_order,
        properties=body.properties or {},
        location=body.location,
    )
    made = tables.create_table(call.actor, call.ident(call.levels, body.name), draft, stage=bool(body.stage_create))
    return _table(made)


@route(
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    operations.LOAD_TABLE,
    needs=Kind.TABLE,
    looks_up=Call.ident,
)
def load_table(call: Call) -> Reply:
    mode = call.choice("snapshots", "all", "refs")
    record = tables.load_iceberg_table(call.actor, call.ident(), refresh=call.refresh)
    call.taken_at = record.taken_at
    etag = etag_of(record.metadata_location or "", mode)
    if matches(call.request.META.get("HTTP_IF_NONE_MATCH", ""), etag):
        return Reply(304, headers={"ETag": etag, "Vary": _VARY})
    if len(record.content) > LARGE:
        may_block()
    headers = {"ETag": etag, "Vary": _VARY}
    if mode == "refs":
        return Reply(body=referenced_result(record), headers=headers)
    if len(record.content) >= LEAST and accepts_gzip(call.request.META.get("HTTP_ACCEPT_ENCODING", "")):
        headers |= {"ETag": packed_etag(etag), "Content-Encoding": "gzip"}
        return Reply(body=packed_result(record), headers=headers)
    return Reply(body=table_result(record), headers=headers)


def _table(record: TableRecord) -> Reply:
    return _tagged(record, table_result(record))


def _tagged(record: TableRecord, content: bytes) -> Reply:
    headers = {} if record.metadata_location is None else {"ETag": etag_of(record.metadata_location)}
    return Reply(body=content, headers=headers)


@route(
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    operations.LOAD_TABLE,
    needs=Kind.TABLE,
    looks_up=Call.ident,
)
def table_exists(call: Call) -> Reply:
    tables.table_exists(call.actor, call.ident(), iceberg=True)
    return done()


@route(
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    operations.COMMIT_TABLE,
    body=Commit,
    needs=Kind.TABLE,
    commits=True,
)
def commit_table(call: Call, body: Commit) -> Reply:
    if body.identifier:
        call.require_own(body.identifier.namespace, body.identifier.name)
    requirements, updates = body.requirements or [], body.updates or []
    if any(requirement.get("type") == "assert-create" for requirement in requirements):
        call.subject = call.about_namespace(call.levels)
    record = commits.commit_table(call.actor, call.ident(), requirements, updates)
    return _tagged(record, commit_result(record))


@route(
    "POST /v1/{prefix}/transactions/commit",
    operations.COMMIT_TABLE,
    body=CommitTransaction,
    needs=Kind.TABLE,
    commits=True,
    of_several=True,
)
def commit_transaction(call: Call, body: CommitTransaction) -> Reply:
    """Commit to several tables atomically."""
    table_commits = []
    for change in body.table_changes:
        levels, name = checked_levels(change.identifier.namespace), checked_name(change.identifier.name, Kind.TABLE)
        call.subject = call.about_leaf(levels, name)
        tables.table_exists(call.actor, call.ident(levels, name), iceberg=True)
        table_commits.append(TableCommit(call.ident(levels, name), change.requirements, change.updates))
    transactions.commit_tables(call.actor, table_commits)
    return done()


@route("DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}", operations.DROP_TABLE, needs=Kind.TABLE)
def drop_table(call: Call) -> Reply:
    purge = call.choice("purgeRequested", "false", "true") == "true"
    tables.drop_table(call.actor, call.ident(), purge=purge, iceberg=True)
    return done()


@route(
    "POST /v1/{prefix}/namespaces/{namespace}/register", operations.REGISTER_TABLE, body=RegisterTable, needs=Kind.TABLE
)
def register_table(call: Call, body: RegisterTable) -> Reply:
    ident = call.ident(call.levels, body.name)
    return _table(tables.register_table(call.actor, ident, body.metadata_location, overwrite=bool(body.overwrite)))


@route("POST /v1/{prefix}/tables/rename", operations.ALTER_TABLE, body=RenameLeaf, needs=Kind.TABLE)
def rename_table(call: Call, body: RenameLeaf) -> Reply:
    """Rename a table; only its owner may move it to another namespace, given the right to create there."""
    return rename_leaf(call, body, Kind.TABLE, tables.table_exists, tables.rename_table)


@route("POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics", operations.LOAD_TABLE, needs=Kind.TABLE)
def report_metrics(call: Call) -> Reply:
    """Accept any metrics report and discard it: a query must not fail because of it."""
    report: Any = read_json(call.request.body)
    if not isinstance(report, dict):
        raise Invalid("A report must be a JSON object.")
    tables.table_exists(call.actor, call.ident(), iceberg=True)
    return done()
