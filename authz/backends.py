"""Django's and guardian's `has_perm`, answered by our evaluator, so that a DENY row never reads as a permission."""

from typing import Any

from authz import snapshot
from authz.models import User
from authz.policy import Actor
from metalake.models import Securable
from metalake.privileges import Privilege


class PolicyBackend:
    def authenticate(self, request: Any, **credentials: Any) -> None:
        """This backend knows rights, not passwords."""

    def has_perm(self, user: Any, perm: str, obj: Any = None) -> bool:
        """Whether the privilege `metalake.<name>` is effective on a securable for this user."""
        name = perm.removeprefix("metalake.")
        if not isinstance(obj, Securable) or not isinstance(user, User) or not user.is_active:
            return False
        if name not in set(Privilege):
            return False
        actor = Actor(user.pk, user.username, snapshot.latest())
        if not actor.is_member(obj.lineage_ids[0]):
            return False
        mask = actor.mask(obj.lineage_ids)
        bit = Privilege(name).bit
        return bool(mask & bit) and not mask >> snapshot.DENY_SHIFT & bit
