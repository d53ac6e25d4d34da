"""The native wire's paths for walks over outside catalogs."""

from metalake.rest.views import route
from outside.api import Refresh, Refreshes

REFRESHES = "metalakes/<metalake>/catalogs/<catalog>/refreshes"

urlpatterns = [
    route(REFRESHES, Refreshes),
    route(f"{REFRESHES}/<refresh_id>", Refresh),
]
