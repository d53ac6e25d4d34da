"""What is done with a throw-away kind, in a copy of the tree that has it: a program, which prints what it did."""

from __future__ import annotations

import os
import sys
from base64 import b64encode
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import django
from django.core.management import call_command
from django.test import Client

os.environ["DJANGO_SETTINGS_MODULE"] = "metalake.settings"
django.setup()

from drf_spectacular.generators import SchemaGenerator  # noqa: E402

from access.explain import explanations  # noqa: E402
from access.explain.permissions import Place  # noqa: E402
from authz.callers.identity import actor_of  # noqa: E402
from authz.models import Grant, User  # noqa: E402
from authz.objects import find_object  # noqa: E402
from authz.policy import sees  # noqa: E402
from authz.services import grants, people, roles  # noqa: E402
from catalogs.lookup import find  # noqa: E402
from catalogs.models import LocationClaim, ReservedPlace  # noqa: E402
from catalogs.services import browsing, catalogs, metalakes, schemas, tables  # noqa: E402
from catalogs.services.leaves import describe_leaf, list_leaves  # noqa: E402
from catalogs.stores import leaf_kinds, store_for  # noqa: E402
from formats.native.tables import CreateTableRequest  # noqa: E402
from metalake.errors import MetalakeError  # noqa: E402
from metalake.kinds import Kind  # noqa: E402
from metalake.lineage import Address  # noqa: E402
from metalake.models import Securable  # noqa: E402
from metalake.rest.exceptions import shape_of  # noqa: E402
from server import static_files  # noqa: E402

READS = [("use_catalog", "allow"), ("use_schema", "allow")]


def main() -> None:
    call_command("makemigrations", verbosity=0)
    call_command("migrate", verbosity=0)
    from gadgets import services  # type: ignore[import-not-found]
    from gadgets.stores import ManagedGadgets, OutsideGadgets  # type: ignore[import-not-found]

    shelf = Path(os.environ["METALAKE_HOME"]) / "shelf"
    (shelf / "A").mkdir(parents=True)
    olga, mia = users(str(shelf))
    home = Address(metalake="acme", catalog="lake", schema="A")
    gadget = Address(metalake="acme", catalog="lake", schema="A", leaf="g", leaf_kind=Kind("gadget"))
    assert refusal(services.create_gadget, mia(), gadget, "file:///g") == (404, "NoSuchCatalogException")
    made = services.create_gadget(olga(), gadget, "file:///lake/g")
    assert made.full_name == ["lake", "A", "g"] and made.metadata_location == "file:///lake/g"
    assert find(olga(), gadget).id == made.id, "it is found in its own slot"
    assert refusal(describe_leaf, olga(), Address(metalake="acme", catalog="lake", schema="A", leaf="g"))
    sys.stdout.write("made\n")

    assert isinstance(store_of(olga(), "lake"), ManagedGadgets) and isinstance(
        store_of(olga(), "shelf"), OutsideGadgets
    )
    assert names(olga(), "lake") == ["g"]
    grants.grant_privileges(olga(), "acme", "r", Kind.CATALOG, "lake", READS)
    assert names(mia(), "lake") == [] and not sees(mia(), made)
    assert refusal(describe_leaf, mia(), gadget) == (404, "NoSuchGadgetException")
    grants.grant_privileges(olga(), "acme", "r", Kind("gadget"), "lake.A.g", [("read_gadget", "allow")])
    assert names(mia(), "lake") == ["g"] and describe_leaf(mia(), gadget)[0].id == made.id
    assert find_object("acme", Kind("gadget"), "lake.A.g").id == made.id
    wanted = explanations.read_wanted(Kind("gadget"), None, "load_gadget")
    assert explanations.explain(olga(), "acme", Place(Kind("gadget"), "lake.A.g"), wanted, "mia", None).allowed
    assert refusal(services.drop_gadget, mia(), gadget) == (403, "ForbiddenException")
    sys.stdout.write("granted\n")

    on_the_shelf(olga(), mia, shelf)
    beside_tables_outside(olga())
    on_the_wire(olga())
    on_the_pages(olga())
    beside_catalogs(olga(), mia)
    in_catalogs_of_another_type(olga())

    assert [place.kind for place in services.drop_gadget(olga(), gadget)] == ["gadget"]
    assert ReservedPlace.objects.get().full_name == "lake.A.g"
    assert_nothing_is_left(made.id)
    sys.stdout.write("dropped\n")

    again = services.create_gadget(olga(), gadget, "file:///lake/again")
    assert refusal(schemas.drop_schema, olga(), home) == (409, "NonEmptySchemaException")
    catalogs.drop_catalog(olga(), "acme", "lake", force=True)
    assert_nothing_is_left(again.id)
    sys.stdout.write("dropped with its catalog\n")


def at(catalog: str, name: str | None = None) -> Address:
    return Address(metalake="acme", catalog=catalog, schema="A", leaf=name, leaf_kind=Kind("gadget"))


def store_of(actor: Any, catalog: str) -> Any:
    return store_for(find(actor, at(catalog)), Kind("gadget"))


def names(actor: Any, catalog: str) -> list[str]:
    return list_leaves(actor, at(catalog), Kind("gadget")).names


def on_the_shelf(olga: Any, mia: Any, shelf: Path) -> None:
    """Gadgets of another system: found by whoever may see them, granted on, gone with their file."""
    (shelf / "A" / "anvil").write_text("none")
    assert names(olga, "shelf") == ["anvil"]
    (shelf / "A" / "bell").write_text("two")
    found, described = describe_leaf(olga, at("shelf", "bell"))
    assert described.details == (("Wheels", "two"),) and found.full_name == ["shelf", "A", "bell"], "not listed yet"
    assert refusal(describe_leaf, mia(), at("shelf", "bell")) == (404, "NoSuchCatalogException")
    grants.grant_privileges(olga, "acme", "r", Kind.CATALOG, "shelf", READS)
    grants.grant_privileges(olga, "acme", "r", Kind("gadget"), "shelf.A.bell", [("read_gadget", "allow")])
    assert names(mia(), "shelf") == ["bell"] and names(olga, "shelf") == ["anvil", "bell"]
    (shelf / "A" / "anvil").unlink()
    assert names(olga, "shelf") == ["bell"]
    sys.stdout.write("found on the shelf\n")


def beside_tables_outside(olga: Any) -> None:
    """One catalog whose tables are another system's, and whose gadgets are ours."""
    from gadgets import services

    home = find(olga, at("half"))
    assert [type(store_for(home, kind)).__name__ for kind in leaf_kinds(home)] == [
        "ManagedGadgets",
        "OutsideTables",
        "ManagedViews",
    ]
    services.create_gadget(olga, at("half", "h"), "file:///half/h")
    column = {"name": "id", "type": "long"}
    table = CreateTableRequest.model_validate({"name": "t", "columns": [column]})
    tables.create_native_table(olga, Address(metalake="acme", catalog="half", schema="A", leaf="t"), table)
    level = browsing.level_below(olga, find(olga, at("half")))
    assert [(child.kind, child.name) for child in level.children] == [("gadget", "h"), ("table", "t")]
    sys.stdout.write("kept here beside tables outside\n")


def client() -> Client:
    made = Client(raise_request_exception=False)
    made.force_login(User.objects.get(username="olga"))
    return made


def on_the_wire(olga: Any) -> None:
    """Its routes ask their rows of the operation table, and are described."""
    basic = as_user("olga")
    path = "/api/metalakes/acme/catalogs/{}/schemas/A/gadgets"
    listed = Client().get(path.format("shelf"), **basic).json()
    assert listed == {"code": 0, "identifiers": [{"namespace": ["acme", "shelf", "A"], "name": "bell"}]}, listed
    loaded = Client().get(path.format("lake") + "/g", **basic).json()
    assert loaded == {"code": 0, "gadget": {"name": "g", "comment": "kept here", "details": {"Wheels": "3"}}}, loaded
    missing = Client().get(path.format("lake") + "/nothing", **basic)
    assert (missing.status_code, missing.json()["type"]) == (404, "NoSuchGadgetException")
    assert Client().get(path.format("lake")).status_code == 401
    refused = Client().post(path.format("lake"), {"not": "read"}, content_type="application/json", **as_user("mia"))
    assert refused.status_code == 403, "by its row, before the body is read"
    body = {"name": "h", "place": "file:///lake/h"}
    made = Client().post(path.format("lake"), body, content_type="application/json", **basic)
    assert made.json()["gadget"]["name"] == "h", made.content
    elsewhere = Client().post(path.format("shelf"), body, content_type="application/json", **basic)
    assert elsewhere.status_code == 405, elsewhere.content
    described = SchemaGenerator().get_schema(request=None, public=True)
    known = described["paths"]["/api/metalakes/{metalake}/catalogs/{catalog}/schemas/{schema}/gadgets/{gadget}"]
    assert known["get"]["operationId"] == "loadGadget"
    sys.stdout.write("on the wire\n")


def on_the_pages(olga: Any) -> None:
    """It is in the tree with its icon, and its page has the tabs that it declares, with an overview of its own."""
    static_files.prepare()
    pages = client()
    home = find(olga, at("lake"))
    tree = pages.get(f"/objects/{home.id}/children").content.decode()
    assert "#icon-gadget" in tree and ">g</span>" in tree, tree
    assert 'id="icon-gadget"' in pages.get("/").content.decode()
    page = pages.get(f"/objects/{find(olga, at('lake', 'g')).id}").content.decode()
    assert "Wheels of g" in page and "<dd>3</dd>" in page, page
    access = f"/objects/{find(olga, at('lake', 'g')).id}/access"
    assert access not in page and pages.get(access).status_code == 404
    sys.stdout.write("on the pages\n")


def beside_catalogs(olga: Any, mia: Any) -> None:
    """A kind that lies in a metalake: made, listed and granted on, in the tree below the catalogs, with a page."""
    from gadgets import services

    basic, path = as_user("olga"), "/api/metalakes/acme/stamps"
    stamp = Address(metalake="acme", leaf="seal", leaf_kind=Kind("stamp"))
    refused = Client().post(path, {"not": "read"}, content_type="application/json", **as_user("mia"))
    assert refused.status_code == 403, "by its row, before the body is read"
    made = Client().post(path, {"name": "seal", "place": "desk"}, content_type="application/json", **basic)
    assert made.json()["stamp"]["comment"] == "kept beside catalogs", made.content
    assert refusal(describe_leaf, mia(), stamp) == (404, "NoSuchStampException")
    assert list_leaves(mia(), Address(metalake="acme"), Kind("stamp")).names == []
    grants.grant_privileges(olga, "acme", "r", Kind("stamp"), "seal", [("read_stamp", "allow")])
    found, described = describe_leaf(mia(), stamp)
    assert described.properties == {"place": "desk"} and found.id == find_object("acme", Kind("stamp"), "seal").id
    listed = Client().get(path, **as_user("mia")).json()
    assert listed == {"code": 0, "identifiers": [{"namespace": ["acme"], "name": "seal"}]}, listed
    level = browsing.level_below(olga, found.above())
    assert [child.name for child in level.children][-2:] == ["shelf", "seal"] and not level.next, "below the catalogs"
    assert [c.name for c in browsing.level_below(olga, found.above(), "stamp", "a").children] == ["seal"], "goes on"
    tree = client().get(f"/objects/{found.metalake.id}/children").content.decode()
    assert "#icon-stamp" in tree and ">seal</span>" in tree, tree
    page = client().get(f"/objects/{found.id}").content.decode()
    assert "kept beside catalogs" in page and ">desk</td>" in page, page
    assert "read_stamp" in client().get(f"/objects/{found.id}/access").content.decode()
    assert refusal(services.drop_gadget, mia(), stamp) == (403, "ForbiddenException")
    assert services.drop_gadget(olga, stamp) == [] and refusal(services.drop_gadget, olga, stamp)[0] == 404
    sys.stdout.write("beside catalogs\n")


def in_catalogs_of_another_type(olga: Any) -> None:
    """Catalogs that are not relational: their provider goes without saying, and they hold what it offers."""
    from gadgets import services

    create = partial(catalogs.create_catalog, olga, "acme")
    assert refusal(create, "tools", "toolbox", "workshop", None, {}) == (400, "IllegalArgumentException")
    assert refusal(create, "tools", "fileset", None, None, {}) == (405, "UnsupportedOperationException")
    row = create("tools", "toolbox", None, None, {})
    assert (row.type, row.provider) == ("toolbox", "toolbox")
    schemas.create_schema(olga, at("tools").of_schema(), None, {})
    services.create_gadget(olga, at("tools", "hammer"), "file:///tools/hammer")
    level = browsing.level_below(olga, find(olga, at("tools").of_schema()))
    assert names(olga, "tools") == [child.name for child in level.children] == ["hammer"]
    column = {"name": "id", "type": "long"}
    table = CreateTableRequest.model_validate({"name": "t", "columns": [column]})
    refused = refusal(tables.create_native_table, olga, replace(at("tools", "t"), leaf_kind=Kind.TABLE), table)
    assert refused == (405, "UnsupportedOperationException"), refused
    of_tables = [("select_table", "allow")]
    assert refusal(grants.grant_privileges, olga, "acme", "r", Kind.CATALOG, "tools", of_tables)[0] == 400
    grants.grant_privileges(olga, "acme", "r", Kind.CATALOG, "tools", [("read_gadget", "allow")])
    assert "<dd>toolbox</dd>" in client().get(f"/objects/{row.pk}").content.decode()
    offered = client().get(f"/metalakes/{row.parent_id}/catalogs/new").content.decode()
    assert "Its gadgets are kept here" in offered and "provider=toolbox" in offered
    sys.stdout.write("in catalogs of another type\n")


def as_user(name: str) -> dict[str, Any]:
    return {"HTTP_AUTHORIZATION": "Basic " + b64encode(f"{name}:correct horse battery".encode()).decode()}


def users(shelf: str) -> tuple[Any, Any]:
    accounts = [User.objects.create_user(name, "correct horse battery") for name in ("olga", "mia")]
    olga, mia = (lambda user=user: actor_of(user) for user in accounts)
    metalakes.create_metalake(olga(), "acme", None, {})
    for name, provider, properties in (
        ("lake", "workshop", {}),
        ("shelf", "workshop", {"shelf": shelf}),
        ("half", "half-workshop", {"world": f"{shelf}.json"}),
    ):
        catalogs.create_catalog(olga(), "acme", name, "relational", provider, None, properties)
        schemas.create_schema(olga(), Address(metalake="acme", catalog=name, schema="A"), None, {})
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

    assert not Securable.objects.filter(pk=id).exists() and not Gadget.objects.filter(pk=id).exists()
    assert not Wheel.objects.filter(gadget_id=id).exists() and not Sticker.objects.filter(on_id=id).exists()
    assert not LocationClaim.objects.filter(securable_id=id).exists()
    assert not Grant.objects.filter(content_object_id=id).exists()


if __name__ == "__main__":
    main()
