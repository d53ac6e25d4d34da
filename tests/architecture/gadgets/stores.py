from __future__ import annotations

from abc import abstractmethod
from uuid import uuid4

from django.utils import timezone

from authz.actor import Actor
from catalogs.leaf_stores import LeafDescription, LeafListing, LeafStore
from catalogs.models import LocationClaim
from catalogs.services.provider_of import provider_at
from gadgets.models import Gadget, Stamp, Sticker, Wheel
from metalake.errors import NotFound, Unsupported
from metalake.events import event_of, record, stands
from metalake.kinds import Kind
from metalake.lineage import Located
from outside import mirror
from outside.calls import ask, levels_of, pages
from providers.remote_objects import Remote


class GadgetStore(LeafStore):
    @abstractmethod
    def create(self, actor: Actor, home: Located, name: str, place: str) -> None:
        """Make a gadget, in the caller's transaction."""


class ManagedGadgets(GadgetStore):
    """The row is the gadget."""

    def discover(self, actor: Actor, schema: Located, name: str) -> bool:
        return False

    def listing(self, actor: Actor, schema: Located, *, refresh: bool) -> LeafListing:
        return LeafListing()

    def describe(self, actor: Actor, leaf: Located) -> LeafDescription:
        wheels = Wheel.objects.filter(gadget_id=leaf.id).values_list("size", flat=True)
        return LeafDescription("kept here", {}, details=(("Wheels", ", ".join(map(str, wheels))),))

    def create(self, actor: Actor, home: Located, name: str, place: str) -> None:
        owned = {"creator": actor.name, "owner_user_id": actor.id}
        row = Gadget.made(Kind.GADGET, name, home, metadata_location=place, uuid=uuid4(), **owned)
        row.save(force_insert=True)
        Wheel.objects.create(gadget=row, size=3)
        Sticker.objects.create(on=row)
        LocationClaim.objects.create(securable=row, location=place)
        full_name = [*home.full_name, name]
        record(event_of(actor, "gadget.created", Kind.GADGET, row.id, full_name, home.metalake.id, [stands(row)]))


class Stamps(ManagedGadgets):
    def describe(self, actor: Actor, leaf: Located) -> LeafDescription:
        return LeafDescription("kept beside catalogs", Stamp.objects.get(pk=leaf.id).properties)

    def create(self, actor: Actor, home: Located, name: str, place: str) -> None:
        owned = {"creator": actor.name, "owner_user_id": actor.id}
        row = Stamp.made(Kind.STAMP, name, home, properties={"place": place}, **owned)
        row.save(force_insert=True)
        record(event_of(actor, "stamp.created", Kind.STAMP, row.id, [name], home.metalake.id, [stands(row)]))


class OutsideGadgets(GadgetStore):
    """The file on the shelf is the gadget; its row has what is granted on it."""

    def discover(self, actor: Actor, schema: Located, name: str) -> bool:
        asked_at = timezone.now()
        try:
            there = self._load(actor, schema, name)
        except NotFound:
            return False
        mirror.import_leaves(Kind.GADGET, schema, [there], asked_at)
        return True

    def listing(self, actor: Actor, schema: Located, *, refresh: bool) -> LeafListing:
        names, asked_at = set[str](), timezone.now()
        for page in pages(actor, schema, provider_at(schema), "list_gadgets", schema=levels_of(schema)):
            mirror.import_leaves(Kind.GADGET, schema, page, asked_at)
            names |= mirror.names_of([Kind.GADGET], page)
        return LeafListing(names, asked_at)

    def describe(self, actor: Actor, leaf: Located) -> LeafDescription:
        there = self._load(actor, leaf.above(), mirror.wire_name_at(leaf.id))
        return LeafDescription("kept on the shelf", {}, details=(("Wheels", there.definition["wheels"]),))

    def create(self, actor: Actor, home: Located, name: str, place: str) -> None:
        raise Unsupported("Gadgets on a shelf are made by hand.", kind=Kind.GADGET)

    def _load(self, actor: Actor, schema: Located, name: str) -> Remote:
        provider = provider_at(schema)
        return Remote(**ask(actor, schema, provider, "load_gadget", schema=levels_of(schema), gadget=name))
