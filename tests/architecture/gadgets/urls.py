"""The native wire's paths for gadgets."""

from gadgets.api import Gadget, Gadgets, Stamps
from metalake.rest.views import route

GADGETS = "metalakes/<metalake>/catalogs/<catalog>/schemas/<schema>/gadgets"

urlpatterns = [
    route(GADGETS, Gadgets),
    route(f"{GADGETS}/<gadget>", Gadget),
    route("metalakes/<metalake>/stamps", Stamps),
]
