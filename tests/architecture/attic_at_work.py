"""What is done with a throw-away provider, in a copy of the tree that has it: a program, which prints what it did."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django
from django.core.management import call_command

os.environ["DJANGO_SETTINGS_MODULE"] = "metalake.settings"
django.setup()

from authz.callers.identity import actor_of  # noqa: E402
from authz.models import User  # noqa: E402
from catalogs.services import catalogs, leaves, metalakes, schemas, tables  # noqa: E402
from metalake.lineage import Address  # noqa: E402


def main() -> None:
    from providers.attic.world import World  # type: ignore[import-not-found]

    call_command("migrate", verbosity=0)
    account = User.objects.create_user("olga", "correct horse battery")
    metalakes.create_metalake(actor_of(account), "acme", None, {})
    olga = actor_of(account)
    world = World(Path("world.json").absolute())
    catalogs.create_catalog(olga, "acme", "attic", "relational", "attic", None, {"world": str(world.path)})
    home = Address(metalake="acme", catalog="attic", schema="A:B")
    schemas.create_schema(olga, home, None, {})
    assert world.schemas() == {"A", "A.B"}
    sys.stdout.write("made\n")

    world.put_table("A", "B", "trunk", columns=("id", "weight"))
    assert tables.list_tables(olga, home, refresh=True).names == ["trunk"]
    sys.stdout.write("found\n")

    _, trunk = leaves.describe_leaf(olga, Address(metalake="acme", catalog="attic", schema="A:B", leaf="trunk"))
    assert [column.name for column in trunk.columns] == ["id", "weight"]
    sys.stdout.write("read\n")


if __name__ == "__main__":
    main()
