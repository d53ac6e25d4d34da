"""Deep links to prefilled pages that grant or revoke."""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import reverse

from access.explain.queries import Whom
from metalake.full_names import dotted
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege


def grant_page(object_id: int, whom: Whom, *privileges: Privilege, **more: str) -> str:
    """The page that grants these privileges on an object to a user or group; `more` are other fields of its form."""
    query = urlencode({"privilege": [each.value for each in privileges], **more}, doseq=True)
    return f"{_filled('grant', object_id, principal=f'{whom.sort}:{whom.name}')}&{query}"


def request_page(object_id: int, privilege: Privilege) -> str:
    """The page on which somebody asks for this privilege on an object for themselves."""
    return _filled("request", object_id, privilege=privilege.value)


def revoke_page(object_id: int, role: str, privilege: Privilege, effect: Effect) -> str:
    """The page that revokes this grant on an object from a role."""
    return _filled("revoke-grant", object_id, role=role, privilege=privilege.value, effect=effect.value)


def removal_page(metalake_id: int, whom: Whom, on: Located, **more: str) -> str:
    """The page that removes a user's access to an object; with `effect=deny`, the one that lifts a role's DENY."""
    back = reverse("frontend:access", args=[on.id])
    query = {"what": "take-away", whom.sort: whom.name, "on": f"{on.kind} {dotted(on.full_name)}", "back": back, **more}
    return f"{reverse('frontend:change-people', args=[metalake_id])}?{urlencode(query)}"


def _filled(route: str, object_id: int, **query: str) -> str:
    return f"{reverse(f'frontend:{route}', args=[object_id])}?{urlencode(query)}"
