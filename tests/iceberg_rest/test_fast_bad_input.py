"""What memory holds of one object never answers for another, and odd requests get the same answer both ways."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from authz import snapshot
from catalogs.models import Catalog, Table
from iceberg_rest.wire import etag_of
from metalake.models import Securable
from providers.metadata_files import METADATA
from tests.authz.model import ALLOW, Grant, Party, User, World
from tests.authz.model import Securable as Made
from tests.iceberg_rest.test_fast_path import READER, NeverByChance
from tests.iceberg_rest.twins import LOCATION, Asked, Twins, Wired, metadata_of

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

SHARED = "file:///nowhere/shared.metadata.json"
READS = ("use_catalog", "use_schema", "select_table")


class TwoCatalogs:
    """The catalogs `c` and `d`, each with a table `s.t`, and a reader of both; asked on both wires, both ways."""

    def __init__(self) -> None:
        owner = Party("user", 1)
        names = ("metalake", "m", None), ("catalog", "c", 10), ("catalog", "d", 10), ("schema", "s", 11)
        more = ("schema", "s", 12), ("table", "t", 13), ("table", "t", 14), ("table", "u", 13)
        objects = {id: Made(id, kind, name, above, owner) for id, (kind, name, above) in enumerate((*names, *more), 10)}
        objects[100] = Made(100, "role", "readers", 10, owner)
        grants = tuple(Grant(100, right, ALLOW, 10) for right in READS)
        users = {id: User(id, f"user{id}") for id in (1, 2)}
        members, holders = frozenset({(10, 1), (10, 2)}), frozenset({(100, READER)})
        Wired([World(users, {}, objects, members, holders, grants)], NeverByChance())
        snapshot.latest()
        self.twins = Twins()

    def table(self, catalog: str, name: str = "t") -> Table:
        return Table.objects.get(name=name, parent__parent__name=catalog)

    def ask(self, path: str, user: str = "0-2", **headers: str) -> tuple[int, Any]:
        """Status and JSON; raises AssertionError unless the fast path answered, and as the other way does."""
        before = self.twins.straight.total()
        status, body = self.twins.compare(
            Asked("GET", path, {"Authorization": f"Bearer {Wired.token(user)}"} | headers)
        )
        assert self.twins.straight.total() == before + 1, (path, status, body)
        return status, orjson.loads(body) if body else None

    def compare(self, path: str, user: str = "0-2", **headers: str) -> tuple[int, bytes]:
        return self.twins.compare(Asked("GET", path, {"Authorization": f"Bearer {Wired.token(user)}"} | headers))

    def load(self, catalog: str, name: str = "t") -> str | None:
        """The location that both wires say a table's metadata lies at, if it is there."""
        status, body = self.ask(f"/iceberg/0m/v1/{catalog}/namespaces/s/tables/{name}")
        native, other = self.ask(f"/api/metalakes/0m/catalogs/{catalog}/schemas/s/tables/{name}")
        assert status == native
        if status != 200:
            assert status == 404
            return None
        column = body["metadata"]["schemas"][0]["fields"][0]["name"]
        assert other["table"]["columns"][0]["name"] == column
        return str(column).removeprefix("of ")


@pytest.fixture
def two() -> TwoCatalogs:
    return TwoCatalogs()


def test_a_location_that_two_catalogs_share_is_what_each_of_them_reads_there(two: TwoCatalogs) -> None:
    for catalog in "cd":
        row = two.table(catalog)
        METADATA.put(row.lineage_ids[1], SHARED, metadata_of(row, NeverByChance()))
        Table.objects.filter(pk=row.pk).update(metadata_location=SHARED)
    assert [two.load(catalog) for catalog in "cdc"] == [str(two.table(catalog).pk) for catalog in "cdc"]


def test_what_another_catalog_has_in_memory_is_not_read_from_it(two: TwoCatalogs) -> None:
    Table.objects.filter(pk=two.table("d").pk).update(metadata_location=LOCATION.format(two.table("c").pk))
    # The file is nowhere, so only the way of all requests answers, with a failure.
    assert two.compare("/iceberg/0m/v1/d/namespaces/s/tables/t")[0] >= 400
    assert two.twins.straight.total() == 0
    assert two.load("c") == str(two.table("c").pk)


def test_names_that_change_hands_are_answered_for_who_has_them_now(two: TwoCatalogs) -> None:
    """As another process commits it: no memory of this one learns of it but by the statement of the next read."""
    c, d = str(two.table("c").pk), str(two.table("d").pk)
    assert (two.load("c"), two.load("d")) == (c, d)
    for before, after in (("c", "x"), ("d", "c"), ("x", "d")):
        Catalog.objects.filter(name=before).update(name=after)
    assert (two.load("c"), two.load("d")) == (d, c)
    Securable.objects.filter(kind="table", name="u").update(name="v")
    Securable.objects.filter(kind="table", name="t", pk=c).update(name="u")
    assert (two.load("d"), two.load("d", "u")) == (None, c)


def test_a_table_that_another_process_drops_and_brings_back_is_there_while_it_is(two: TwoCatalogs) -> None:
    row = two.table("c")
    columns = {field.attname: getattr(row, field.attname) for field in Table._meta.concrete_fields}
    for _ in range(2):
        assert two.load("c") == str(row.pk)
        Table.objects.filter(pk=row.pk).delete()
        assert two.load("c") is None
        Table(**columns).save(force_insert=True)
    assert two.load("c") == str(row.pk)


def test_a_page_token_is_of_its_caller_alone(two: TwoCatalogs) -> None:
    tables = "/iceberg/0m/v1/c/namespaces/s/tables"
    _, page = two.ask(f"{tables}?pageToken=&pageSize=1")
    rest = f"{tables}?pageToken={page['next-page-token']}"
    assert [each["name"] for each in two.ask(rest)[1]["identifiers"]] == ["u"]
    status, body = two.compare(rest, "0-1")  # of the owner, who sees all that the reader sees
    assert status == 400 and b"pageToken" in body
    assert two.compare(rest.replace("/c/", "/d/"))[0] == 400


def test_an_if_none_match_of_ten_kilobytes_is_read_whole(two: TwoCatalogs) -> None:
    path = "/iceberg/0m/v1/c/namespaces/s/tables/t"
    many = ", ".join(f'"{n:032}"' for n in range(280))
    etag = etag_of(LOCATION.format(two.table("c").pk))
    assert len(many) > 10_000
    assert two.ask(path, **{"If-None-Match": many})[0] == 200
    assert two.ask(path, **{"If-None-Match": f"{many}, {etag}"}) == (304, None)


def test_a_thousand_roles_in_one_header_decide_as_they_do_on_every_way(two: TwoCatalogs) -> None:
    def status(*roles: str) -> int:
        active = {"X-Gravitino-Active-Roles": ",".join(roles)}
        return two.compare("/iceberg/0m/v1/c/namespaces/s/tables/t", **active)[0]

    others = [f"role{n}" for n in range(999)]
    assert status("readers") == 200
    assert status(*others, "readers") == status(*others) == 403
    assert status("NONE") == 404
