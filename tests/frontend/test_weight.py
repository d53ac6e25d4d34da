"""What a browser loads: the elements of our own stay few and plain, and pages small."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from django.contrib.staticfiles import finders
from django.test import Client

import frontend
from catalogs.models import Catalog
from catalogs.services import browsing
from metalake.kinds import Kind
from metalake.models import Metalake, Securable
from tests.demo import give

STATIC = Path(frontend.__file__).parent / "static" / "frontend"
MORE_THAN_A_PAGE = 51  # ways: Access shows 50 at once


def test_the_elements_of_our_own_are_under_20_kb_as_they_are_written() -> None:
    """A script that defines elements counts whole; what pages do without an element is in frame.js."""
    scripts = {script.name: script.read_bytes() for script in STATIC.glob("*.js")}
    weights = {name: len(script) for name, script in scripts.items() if b"customElements.define" in script}
    assert weights, "the scripts lie elsewhere"
    assert sum(weights.values()) < 20_000, weights


def test_the_first_load_is_under_100_kb_and_a_page_under_40(admin: Client, ids: dict[str, int]) -> None:
    """Of a table under many roles and of the metalake, with a full level of catalogs in the tree and on the page."""
    demo = Metalake.objects.get(name="demo")

    def securable(name: str) -> Securable:
        about = "What the team shares with all"
        return Securable.made(
            Kind.CATALOG, name, demo, creator="admin", owner_user_id=demo.owner_user_id, comment=about
        )

    names = [f"team_{number:03}" for number in range(browsing.LEVEL_LIMIT)]
    rows = Securable.objects.bulk_create(map(securable, names))
    for row in rows:
        catalog = Catalog(pk=row.pk, type="relational", provider="lakehouse-iceberg")
        catalog.save_base(raw=True, force_insert=True)
    for number in range(MORE_THAN_A_PAGE):
        give(None, Kind.TABLE, "lake.orders:eu.sales", "select_table", role=f"reader_{number:03}")
    tree = sum(sent(admin, f"/objects/{ids[name]}/children") for name in ("demo", "lake", "orders", "eu"))
    for page in ("", "/access", "/access?by=role", "/columns", "/history"):
        assert sent(admin, f"/objects/{ids['sales']}{page}") + tree < 40_000, page
    metalake = sent(admin, f"/objects/{ids['demo']}")
    assert metalake < 40_000
    files = files_of(admin, f"/objects/{ids['demo']}")
    assert sum(files.values()) > 50_000, "the files are not read any more"
    assert metalake + tree + sum(files.values()) < 100_000, (metalake, tree, files)


def sent(client: Client, path: str) -> int:
    """The bytes of an answer as a browser gets it."""
    answer = client.get(path, headers={"HX-Request": "true"} if "/children" in path else {})
    assert answer.status_code == 200, path
    return len(gzip.compress(answer.content, 6))


def files_of(client: Client, path: str) -> dict[str, int]:
    """The files that a page loads, with their bytes as they are sent; a font is compressed by itself."""
    page = client.get(path).content.decode()
    names = [*re.findall(r'(?:src|href)="/static/([^"]+)"', page), "frontend/inter/inter-latin-400-700.woff2"]
    weights = {}
    for name in names:
        place = finders.find(name)
        assert isinstance(place, str), name
        content = Path(place).read_bytes()
        weights[name] = len(content) if name.endswith("woff2") else len(gzip.compress(content, 6))
    return weights
