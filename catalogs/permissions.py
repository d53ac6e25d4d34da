"""Django REST framework's permission class for endpoints of the native API, which declare their operation."""

from __future__ import annotations

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from catalogs.services.admission import admit
from metalake.bodies import before_reading


class OperationPermission(BasePermission):
    """Checks the endpoint's operation for the path and the caller before a body is read.

    Requests without a body are checked by the service alone, which always checks again (catalogs.services.admission).
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        """False for an unauthenticated caller; raises what the service would raise."""
        if view.actor is None:
            return False
        declaration = view.declaration
        if declaration is not None and declaration.body is not None:
            with before_reading(request):
                admit(view.actor, declaration.operation, view.names)
                if declaration.refuse is not None:
                    declaration.refuse(view.actor)
        return True
