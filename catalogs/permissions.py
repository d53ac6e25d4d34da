"""Who may do what an endpoint of the native wire declares, as Django REST framework's permission class."""

from __future__ import annotations

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from catalogs.services.admission import admit
from metalake.bodies import before_reading


class OperationPermission(BasePermission):
    """Asks the row of the operation table that the endpoint names, by the path and the caller, before a body is read.

    What has no body to read is asked by its service alone, which asks again in any case (catalogs.services.admission).
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        """False for a caller who did not say who they are; raises what the service would raise."""
        if view.actor is None:
            return False
        declaration = view.declaration
        if declaration is not None and declaration.body is not None:
            with before_reading(request):
                admit(view.actor, declaration.operation, view.names)
                if declaration.refuse is not None:
                    declaration.refuse(view.actor)
        return True
