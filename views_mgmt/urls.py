"""Native API paths for views."""

from metalake.rest.views import route
from views_mgmt.api.findings import BrokenViews, BulkFindings, BulkViews, ViewFinding
from views_mgmt.api.lineage import TableLineage, ViewLineage
from views_mgmt.api.versions import ViewComparison, ViewRollback, ViewVersion, ViewVersions
from views_mgmt.api.views import View, Views
from views_mgmt.api.workbench import ViewCheck, ViewSuggestion

SCHEMA = "metalakes/<metalake>/catalogs/<catalog>/schemas/<schema>"
TABLES, VIEWS = f"{SCHEMA}/tables", f"{SCHEMA}/views"
VERSIONS = f"{VIEWS}/<view>/versions"

BULK = "bulk/metalakes/<metalake>/views"

urlpatterns = [
    route(BULK, BulkViews),
    route(f"{BULK}/findings", BulkFindings),
    route("metalakes/<metalake>/views/broken", BrokenViews),
    route(f"{VIEWS}/<view>/finding", ViewFinding),
    route(f"{VIEWS}/<view>", View),
    route(VIEWS, Views),
    route(f"{TABLES}/<table>/lineage", TableLineage),
    route(f"{VIEWS}/<view>/lineage", ViewLineage),
    route(f"{VIEWS}/<view>/check", ViewCheck),
    route(f"{VIEWS}/<view>/suggest", ViewSuggestion),
    route(VERSIONS, ViewVersions),
    route(f"{VERSIONS}/<number>", ViewVersion),
    route(f"{VERSIONS}/<number>/compare/<other>", ViewComparison),
    route(f"{VERSIONS}/<number>/rollback", ViewRollback),
]
