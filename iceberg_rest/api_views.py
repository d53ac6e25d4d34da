"""Views: one endpoint per path of the Iceberg REST specification."""

from __future__ import annotations

from authz import operations
from iceberg_rest.leaves import list_leaves, rename_leaf
from iceberg_rest.replies import Reply, done
from iceberg_rest.routes import Call, route
from iceberg_rest.wire import Commit, CreateView, RegisterView, RenameLeaf, commit_result
from metalake.kinds import Kind
from views_mgmt.services import views
from views_mgmt.stores import ViewDraft, ViewRecord


@route("GET /v1/{prefix}/namespaces/{namespace}/views", operations.LIST_VIEWS, needs=Kind.VIEW, looks_up=Call.ident)
def list_views(call: Call) -> Reply:
    return list_leaves(call, Kind.VIEW, views.list_views)


@route("POST /v1/{prefix}/namespaces/{namespace}/views", operations.CREATE_VIEW, body=CreateView, needs=Kind.VIEW)
def create_view(call: Call, body: CreateView) -> Reply:
    draft = ViewDraft(
        schema=body.columns, version=body.view_version, properties=body.properties or {}, location=body.location
    )
    return _view(views.create_iceberg_view(call.actor, call.ident(call.levels, body.name), draft))


@route(
    "GET /v1/{prefix}/namespaces/{namespace}/views/{view}", operations.LOAD_VIEW, needs=Kind.VIEW, looks_up=Call.ident
)
def load_view(call: Call) -> Reply:
    record = views.load_iceberg_view(call.actor, call.ident(), refresh=call.refresh)
    call.taken_at = record.taken_at
    return _view(record)


def _view(record: ViewRecord) -> Reply:
    return Reply(body=commit_result(record))


@route(
    "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}", operations.LOAD_VIEW, needs=Kind.VIEW, looks_up=Call.ident
)
def view_exists(call: Call) -> Reply:
    views.view_exists(call.actor, call.ident(), iceberg=True)
    return done()


@route(
    "POST /v1/{prefix}/namespaces/{namespace}/views/{view}",
    operations.ALTER_VIEW,
    body=Commit,
    needs=Kind.VIEW,
    commits=True,
)
def replace_view(call: Call, body: Commit) -> Reply:
    if body.identifier:
        call.require_own(body.identifier.namespace, body.identifier.name)
    return _view(views.replace_view(call.actor, call.ident(), body.requirements or [], body.updates or []))


@route("DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}", operations.DROP_VIEW, needs=Kind.VIEW)
def drop_view(call: Call) -> Reply:
    views.drop_view(call.actor, call.ident(), iceberg=True)
    return done()


@route(
    "POST /v1/{prefix}/namespaces/{namespace}/register-view",
    operations.REGISTER_VIEW,
    body=RegisterView,
    needs=Kind.VIEW,
)
def register_view(call: Call, body: RegisterView) -> Reply:
    return _view(views.register_view(call.actor, call.ident(call.levels, body.name), body.metadata_location))


@route("POST /v1/{prefix}/views/rename", operations.ALTER_VIEW, body=RenameLeaf, needs=Kind.VIEW)
def rename_view(call: Call, body: RenameLeaf) -> Reply:
    """Rename a view; only its owner may move it to another namespace, given the right to create there."""
    return rename_leaf(call, body, Kind.VIEW, views.view_exists, views.rename_view)
