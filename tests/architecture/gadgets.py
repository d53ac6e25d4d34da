"""A throw-away kind: the folder of an app that keeps it, and what is declared of it elsewhere.

`ELSEWHERE` is lines by file and the text that they are put behind; `FOLDER` is the app by file.
"""

from __future__ import annotations

ELSEWHERE = {
    "metalake/kinds.py": {
        '    JOB_TEMPLATE = "job_template"\n': ['    GADGET = "gadget"'],
        "_DECLARED = (\n": [
            '    KindDeclaration(kind=Kind.GADGET, label="Gadget", plural="gadgets", slot="gadget",',
            "        creating=(P.CREATE_GADGET,), privileges=(P.READ_GADGET, P.MANAGE_GRANTS),",
            "        rights=LeafRights(create=(P.CREATE_GADGET,), load=(P.READ_GADGET,), alter=())),",
        ],
    },
    "metalake/privileges.py": {
        '    RUN_JOB = "run_job"\n': ['    CREATE_GADGET = "create_gadget"', '    READ_GADGET = "read_gadget"'],
    },
    "metalake/settings.py": {'    "views_mgmt",\n': ['    "gadgets",']},
}

MODELS = '''
from django.db import models

from catalogs.models import Tabular
from metalake.kinds import Kind
from metalake.models import Securable


class Gadget(Tabular):
    """Pointed to as tables are, in a slot of its own."""

    row_kind = Kind.GADGET


class Wheel(models.Model):
    """What hangs on a gadget by a table of the app's own."""

    gadget = models.ForeignKey(Gadget, models.CASCADE)
    size = models.IntegerField()


class Sticker(models.Model):
    """What hangs on any object."""

    on = models.ForeignKey(Securable, models.CASCADE)
'''

SERVICES = """
from uuid import uuid4

from authz import operations, policy
from authz.locks import Lock
from catalogs.lookup import find
from catalogs.models import LocationClaim
from catalogs.services.holding import write_to
from catalogs.services.removal import remove
from gadgets.models import Gadget, Sticker, Wheel
from metalake.events import event_of, gone, record, stands
from metalake.kinds import Kind
from metalake.models import Securable


def create_gadget(actor, address, place):
    def look(actor):
        home = find(actor, address.of_schema())
        policy.require(actor, operations.OPERATIONS["create_gadget"], home)
        return [(home, Lock.HANGS)]

    def act(actor, home):
        row = Gadget.made(
            Kind.GADGET, address.leaf, home, creator=actor.name, owner_user_id=actor.id, metadata_location=place,
            uuid=uuid4(),
        )
        row.save(force_insert=True)
        Wheel.objects.create(gadget=row, size=3)
        Sticker.objects.create(on=row)
        LocationClaim.objects.create(securable=row, location=place)
        name = [*home.full_name, row.name]
        record(event_of(actor, "gadget.created", Kind.GADGET, row.id, name, home.metalake.id, [stands(row)]))
        return find(actor, address)

    return write_to(actor, look, act, kind=Kind.GADGET)


def list_gadgets(actor, address):
    home = find(actor, address.of_schema())
    policy.require(actor, operations.listing(Kind.GADGET), home)
    rows = Securable.objects.filter(parent_id=home.id, kind=Kind.GADGET)
    return sorted(policy.visible_leaves(actor, home, rows, Kind.GADGET).values_list("name", flat=True))


def load_gadget(actor, address):
    gadget = find(actor, address)
    policy.require(actor, operations.load_of(Kind.GADGET), gadget)
    return gadget


def drop_gadget(actor, address):
    def look(actor):
        gadget = find(actor, address)
        policy.require(actor, operations.OPERATIONS["drop_gadget"], gadget)
        return [(gadget, Lock.MOVES)]

    def act(actor, gadget):
        places = remove(gadget)
        name = gadget.full_name
        record(event_of(actor, "gadget.dropped", Kind.GADGET, gadget.id, name, gadget.metalake.id, [gone(gadget.id)]))
        return places

    return write_to(actor, look, act, kind=Kind.GADGET)
"""

FOLDER = {"__init__.py": "", "migrations/__init__.py": "", "models.py": MODELS, "services.py": SERVICES}
