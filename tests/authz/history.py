"""A metalake whose every change is recorded, and the moments between them."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from access.history.current import State
from access.history.past import state_at
from authz import policy
from authz.actor import Actor
from authz.models import Fact
from authz.operations import load_of
from authz.services import grants, owners, people, roles
from catalogs.services import catalogs, metalakes, schemas
from metalake.lineage import Address
from tests.authz.small_world import kind_at

FLIGHTS = "lake.flights"


class History:
    """A metalake made through the services alone, and the moments between its changes."""

    def __init__(self, olga: Actor) -> None:
        self._olga = olga
        metalakes.create_metalake(self.olga, "acme", None, {})
        catalogs.create_catalog(self.olga, "acme", "lake", "relational", "lakehouse-iceberg", None, {})
        schemas.create_schema(self.olga, Address(metalake="acme", catalog="lake", schema="flights:raw"), None, {})
        for name in ("mia", "nils"):
            people.add_user(self.olga, "acme", name)
        roles.create_role(self.olga, "acme", "readers")
        self.grant("lake", "use_catalog")
        self.grant(FLIGHTS, "use_schema")

    @property
    def olga(self) -> Actor:
        return self._olga.refreshed()

    def grant(self, where: str, privilege: str, effect: str = "allow") -> None:
        pair = (privilege, effect)
        grants.grant_privileges(self.olga, "acme", "readers", kind_at(where), where, [pair])

    def revoke(self, where: str, privilege: str, effect: str = "allow") -> None:
        pair = (privilege, effect)
        grants.revoke_privileges(self.olga, "acme", "readers", kind_at(where), where, [pair])

    def at(self, moment: datetime | None) -> State:
        return state_at(owners.enter(self.olga, "acme"), moment)

    def loads(self, user: str, moment: datetime | None, where: str = FLIGHTS) -> bool:
        """As explain and check ask it."""
        state = self.at(moment)
        found = state.locate(kind_at(where), where)
        held = state.policy_on([node.id for node in found.nodes])
        return policy.permits(state.actor(user, held), load_of(found.kind), found)


def now() -> datetime:
    """A moment behind the newest fact."""
    newest = Fact.objects.order_by("-at").values_list("at", flat=True).first()
    assert newest is not None
    while (moment := timezone.now()) <= newest:
        pass
    return moment
