from __future__ import annotations

from django.db import models

from catalogs.models import Tabular
from metalake.kinds import Kind
from metalake.models import Securable


class Gadget(Tabular):
    """Pointed to as tables are, in a slot of its own."""

    row_kind = Kind.GADGET


class Stamp(Securable):
    """What lies in a metalake beside its catalogs."""

    row_kind = Kind.STAMP


class Wheel(models.Model):
    """What hangs on a gadget by a table of the app's own."""

    gadget = models.ForeignKey(Gadget, models.CASCADE)
    size = models.IntegerField()


class Sticker(models.Model):
    """What hangs on any object."""

    on = models.ForeignKey(Securable, models.CASCADE)
