"""What is done with a throw-away kind, in a copy of the tree that has it: a program, which prints what it did."""

from __future__ import annotations

import os
import sys
from typing import Any

import django
from django.core.management import call_command

os.environ["DJANGO_SETTINGS_MODULE"] = "metalake.settings"
django.setup()

from authz.access import explanations  # noqa: E402
from authz.callers.identity import actor_of  # noqa: E402
from authz.models import Grant, User  # noqa: E402
from authz.objects import find_object  # noqa: E402
from authz.policy import sees  # noqa: E402
from authz.services import grants, people, roles  # noqa: E402
from catalogs.lookup import find  # noqa: E402
from catalogs.models import LocationClaim, ReservedPlace  # noqa: E402
from catalogs.services import catalogs, metalakes, schemas  # noqa: E402
from metalake.errors import MetalakeError  # noqa: E402
from metalake.kinds import Kind  # noqa: E402
from metalake.lineage import Address  # noqa: E402
from metalake.models import Securable  # noqa: E402
from metalake.rest.exceptions import shape_of  # noqa: E402

READS = [("use_catalog", "allow"), ("use_schema", "allow")]


def main() -> None:
    call_command("makemigrations", verbosity=0)
    call_command("migrate", verbosity=0)
    from gadgets import services  # type: ignore[import-not-found]

    olga, mia = users()
    home = Address(metalake="acme", catalog="lake", schema="A")
    gadget = Address(metalake="acme", catalog="lake", schema="A", leaf="g", leaf_kind=Kind("gadget"))
    assert refusal(services.create_gadget, mia(), gadget, "file:///g") == (404, "NoSuchCatalogException")
    made = services.create_gadget(olga(), gadget, "file:///lake/g")
    assert made.full_name == ["lake", "A", "g"] and made.metadata_location == "file:///lake/g"
    assert find(olga(), gadget).id == made.id, "it is found in its own slot"
    assert refusal(services.load_gadget, olga(), Address(metalake="acme", catalog="lake", schema="A", leaf="g"))
    sys.stdout.write("made\n")

    assert services.list_gadgets(olga(), gadget) == ["g"]
    grants.grant_privileges(olga(), "acme", "r", Kind.CATALOG, "lake", READS)
    assert services.list_gadgets(mia(), gadget) == [] and not sees(mia(), made)
    assert refusal(services.load_gadget, mia(), gadget) == (404, "NoSuchGadgetException")
    grants.grant_privileges(olga(), "acme", "r", Kind("gadget"), "lake.A.g", [("read_gadget", "allow")])
    assert services.list_gadgets(mia(), gadget) == ["g"] and services.load_gadget(mia(), gadget).id == made.id
    assert find_object("acme", Kind("gadget"), "lake.A.g").id == made.id
    wanted = explanations.read_wanted(Kind("gadget"), None, "load_gadget")
    assert explanations.explain(olga(), "acme", Kind("gadget"), "lake.A.g", wanted, "mia", None).allowed
    assert refusal(services.drop_gadget, mia(), gadget) == (403, "ForbiddenException")
    sys.stdout.write("granted\n")

    assert [place.kind for place in services.drop_gadget(olga(), gadget)] == ["gadget"]
    assert ReservedPlace.objects.get().full_name == "lake.A.g"
    assert_nothing_is_left(made.id)
    sys.stdout.write("dropped\n")

    again = services.create_gadget(olga(), gadget, "file:///lake/again")
    assert refusal(schemas.drop_schema, olga(), home) == (409, "NonEmptySchemaException")
    catalogs.drop_catalog(olga(), "acme", "lake", force=True)
    assert_nothing_is_left(again.id)
    sys.stdout.write("dropped with its catalog\n")


def users() -> tuple[Any, Any]:
    accounts = [User.objects.create_user(name, "correct horse battery") for name in ("olga", "mia")]
    olga, mia = (lambda user=user: actor_of(user) for user in accounts)
    metalakes.create_metalake(olga(), "acme", None, {})
    catalogs.create_catalog(olga(), "acme", "lake", "relational", "lakehouse-iceberg", None, {})
    schemas.create_schema(olga(), Address(metalake="acme", catalog="lake", schema="A"), None, {})
    people.add_user(olga(), "acme", "mia")
    roles.create_role(olga(), "acme", "r", {}, [])
    roles.assign_roles(olga(), "acme", "user", "mia", ["r"])
    return olga, mia


def refusal(call: Any, *arguments: Any) -> tuple[int, str]:
    """HTTP status and exception name of what must be refused."""
    try:
        call(*arguments)
    except MetalakeError as error:
        status, _, name = shape_of(error)
        return status, name
    raise AssertionError(f"{call.__name__} was not refused")


def assert_nothing_is_left(id: int) -> None:
    from gadgets.models import Gadget, Sticker, Wheel  # type: ignore[import-not-found]

    assert not Securable.objects.filter(pk=id).exists() and not Gadget.objects.exists()
    assert not Wheel.objects.exists() and not Sticker.objects.exists() and not LocationClaim.objects.exists()
    assert not Grant.objects.filter(content_object_id=id).exists()


if __name__ == "__main__":
    main()
