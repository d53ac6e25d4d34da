"""Native API routes for refreshes of outside catalogs."""

from metalake.rest.views import route
from outside.api import Refresh, Refreshes
from outside.harvest_api import HarvestKnown, HarvestMissing, HarvestParts, Harvests

REFRESHES = "metalakes/<metalake>/catalogs/<catalog>/refreshes"

urlpatterns = [
    route(REFRESHES, Refreshes),
    route(f"{REFRESHES}/<refresh_id>", Refresh),
    route("metalakes/<metalake>/catalogs/<catalog>/harvests", Harvests),
    route(f"{REFRESHES}/<refresh_id>/known", HarvestKnown),
    route(f"{REFRESHES}/<refresh_id>/parts", HarvestParts),
    route(f"{REFRESHES}/<refresh_id>/missing", HarvestMissing),
]
