"""Django's permission backend (`user.has_perm` etc.), on the current policy.

metalake.<privilege>    on a securable: whether the privilege is in effect for the user
authz.<operation>       on an object: whether grants or ownership permit the operation (authz.operations)
metalake.see_pages      without an object: read access to the operators' pages, for staff
metalake.operate        without an object: operator actions; Django itself permits superusers
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import BaseBackend

from authz import policy
from authz.callers.identity import actor_of
from authz.guardian_adapter.permissions import privileges_of
from authz.models import User
from authz.objects import by_ids
from authz.operations import FAMILIES, OPERATIONS, Operation
from metalake.kinds import Kind
from metalake.lineage import Lineage
from metalake.models import Securable

SEE_PAGES, OPERATE = "metalake.see_pages", "metalake.operate"


class PolicyBackend(BaseBackend):
    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        if not isinstance(user_obj, User) or not user_obj.is_active:
            return False
        if obj is None:
            return perm == SEE_PAGES and user_obj.is_staff
        app, _, name = perm.rpartition(".")
        if app == "authz":
            return _may(user_obj, name, obj)
        return isinstance(obj, Securable) and app in ("", "metalake") and name in privileges_of(user_obj, obj)

    def get_group_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        """The privileges in effect on a securable, all of which come from roles."""
        return {f"metalake.{name}" for name in privileges_of(user_obj, obj)} if isinstance(obj, Securable) else set()

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        return self.get_group_permissions(user_obj, obj)


def _may(user: User, name: str, obj: Securable | Lineage) -> bool:
    """Whether the user may do an operation on a securable, or on an object that a page has resolved."""
    lineage: Lineage | None = by_ids([obj.pk]).get(obj.pk) if isinstance(obj, Securable) else obj
    if lineage is None:
        return False
    operation = _operation(name, Kind(lineage.nodes[-1].kind))
    return operation is not None and policy.permits(actor_of(user), operation, lineage)


def _operation(name: str, kind: Kind) -> Operation | None:
    if name in FAMILIES:
        return FAMILIES[name].get(kind)
    row = OPERATIONS.get(name)
    return row if row and kind in row.on else None
