"""Random worlds behind the Iceberg wire, and requests that are answered by both ways of the server, byte for byte."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast
from urllib.parse import quote, quote_plus
from uuid import uuid4

import orjson
from django.contrib.auth.hashers import make_password
from django.utils import timezone

from authz import snapshot
from authz.callers.identity import TOKEN_PREFIX, digest_of
from authz.models import Grant, Role, Token, User
from catalogs.models import Catalog, Schema, Table
from formats.iceberg.views.builder import new_view_metadata
from iceberg_rest.wire import etag_of
from metalake import wsgi
from metalake.hierarchy import HierarchicalSchema
from metalake.models import Metalake, Securable
from providers.metadata_files import METADATA
from server.http.hot_reads import FastReads
from server.http.http_server import HttpServer
from server.http.request_parser import Memory, Reader
from server.http.responses import head
from tests.authz.stored import STRIDE, Stored
from tests.demo import PASSWORD
from tests.iceberg_rest.world import basic
from views_mgmt.models import View, ViewMeta

ODD = ("a b", "x%y", "é", "A", "zz", "a.b", "B", "~", "a+b")
LOCATION = "file:///nowhere/{}.metadata.json"
_CHANGING = re.compile(rb"\r\n(Date|X-Request-Id): [^\r]*")


class Wired(Stored):
    """Random worlds whose catalogs can be served: with their own rows, metadata in memory, tokens and a password."""

    def __init__(self, worlds: list[Any], rng: random.Random) -> None:
        super().__init__(worlds)
        self.rng = rng
        rows = {row.pk: row for row in Securable.objects.order_by("pk")}
        for row in sorted(rows.values(), key=lambda row: row.lineage.count("/")):
            above = [rows[int(id)] for id in row.lineage[1:].split("/")]
            self._serve(row, above)
        snapshot.forget()  # the worlds were written without publishing anything
        hashed = make_password(PASSWORD)
        for user in User.objects.order_by("pk"):
            user.is_active, user.password = rng.random() < 0.9, hashed
            user.save()
            ends = rng.choice([None, None, None, timezone.now() + timedelta(days=rng.choice([-1, 1]))])
            revoked = timezone.now() if rng.random() < 0.1 else None
            Token.objects.create(
                user=user, name="t", digest=digest_of(self.token(user.username)), expires_at=ends, revoked_at=revoked
            )

    @staticmethod
    def token(name: str) -> str:
        return f"{TOKEN_PREFIX}{name}"

    def _serve(self, row: Securable, above: list[Securable]) -> None:
        rng, given = self.rng, {"securable_ptr_id": row.pk, **{f: getattr(row, f) for f in ("kind", "name", "slot")}}
        made: Any = None
        if row.kind == "metalake" and rng.random() < 0.05:
            Metalake.objects.filter(pk=row.pk).update(enabled=False)
        elif row.kind == "catalog":
            kept = {"provider": rng.choice(["lakehouse-iceberg"] * 9 + ["gone"]), "type": "relational"}
            flags = {"enabled": rng.random() < 0.9, "nested": rng.random() < 0.95, "folds_case": rng.random() < 0.1}
            made = Catalog(**given, **kept, **flags)
        elif row.kind == "schema":
            levels = tuple(each.name for each in above if each.kind == "schema")
            made = Schema(**given, in_catalog_id=above[1].pk, physical_name=HierarchicalSchema(levels).physical)
        elif row.kind in ("table", "view"):
            location = LOCATION.format(row.pk)
            model = Table if row.kind == "table" else View
            made = model(**given, metadata_location=location, uuid=uuid4())
            if rng.random() < 0.95:
                describe = metadata_of if row.kind == "table" else view_metadata_of
                METADATA.put(above[1].pk, location, describe(row, rng))
            if row.kind == "view":
                ids = {"metalake_id": above[0].pk, "catalog_id": above[1].pk, "schema_id": above[-2].pk}
                ViewMeta.objects.create(view_id=row.pk, view_name=row.name, engine="iceberg", format="iceberg", **ids)
        if made is not None:
            made.save_base(raw=True, force_insert=True)


def metadata_of(row: Securable, rng: random.Random) -> bytes:
    """The metadata of a table without snapshots, some of it too long for the native wire to remember what it reads."""
    column = {"id": 1, "name": f"of {row.pk}", "required": False, "type": "long"}
    return orjson.dumps(
        {
            "format-version": 2,
            "table-uuid": str(uuid4()),
            "location": f"file:///nowhere/{row.pk}",
            "last-sequence-number": 0,
            "last-updated-ms": 0,
            "last-column-id": 1,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": [column]}],
            "current-schema-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "default-spec-id": 0,
            "last-partition-id": 999,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": {"pad": "x" * rng.choice([10, 3000, 40_000])},
        }
    )


def view_metadata_of(row: Securable, rng: random.Random) -> bytes:
    """The metadata of a view, some of it too long for the native wire to remember what it reads."""
    sql = {"type": "sql", "dialect": "spark", "sql": f"SELECT {row.pk}" + " " * rng.choice([10, 3000, 3000, 80_000])}
    version = {"version-id": 1, "schema-id": 0, "timestamp-ms": 1, "representations": [sql], "default-namespace": []}
    metadata = new_view_metadata(
        view_uuid=str(uuid4()),
        location=f"file:///nowhere/{row.pk}",
        schema={"type": "struct", "fields": [{"id": 1, "name": f"of {row.pk}", "required": False, "type": "long"}]},
        version=version | {"summary": {}},
        properties={"team": "ops"},
        now_ms=1,
    )
    return orjson.dumps(metadata)


@dataclass
class Asked:
    """One request as its bytes."""

    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        lines = [f"{self.method} {self.target} HTTP/1.1", "Host: 127.0.0.1:8090"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class Requests:
    """Requests about the objects of worlds, and about what was never there."""

    def __init__(self, wired: Wired, rng: random.Random) -> None:
        self.rng = rng
        self.users: dict[str, list[str]] = {}  # by their world
        self.names = dict(User.objects.order_by("pk").values_list("pk", "username"))
        for name in self.names.values():
            self.users.setdefault(name.partition("-")[0], []).append(name)
        self.rows = {row.pk: row for row in Securable.objects.exclude(kind="role").order_by("pk")}
        objects = [row for row in self.rows.values() if row.kind != "metalake"]
        self.objects = objects + [row for row in objects if row.kind in ("schema", "view")]  # about which most differs

    def one(self) -> Asked:
        rng = self.rng
        row = rng.choice(self.objects)
        line = [self.rows[int(id)].name for id in row.lineage[1:].split("/")]
        if rng.random() < 0.3:
            return Asked("GET", self._native(row, line), self._headers(row))
        metalake, catalog, *rest = line
        base = f"/iceberg/{self._written(metalake)}/v1"
        method = "HEAD" if rng.random() < 0.3 else "GET"
        if row.kind == "catalog" and rng.random() < 0.5:
            name = rng.choice([self._written(catalog)] * 9 + ["", "%00", "%FF", "a%1Fb"])
            return Asked("GET", f"{base}/config?warehouse={name}", self._headers(row))
        namespaces = f"{base}/{self._written(catalog)}/namespaces"
        if row.kind == "catalog":
            return Asked("GET", namespaces + rng.choice(["", "", "?pageToken=", "?pageSize=2"]), self._headers(row))
        levels = rest[:-1] if row.kind in ("table", "view") else rest
        inside = f"{namespaces}/{'%1F'.join(map(self._written, levels))}"
        if row.kind == "schema":
            path = rng.choice(["", "/tables", "/tables", "/views"])
            if not path and rng.random() < 0.5:
                return Asked("GET", f"{namespaces}?parent={'%1F'.join(map(self._written, levels))}", self._headers(row))
            query = rng.choice(["", "", "", "?pageToken=", "?pageSize=1&pageToken=", "?refresh=true"])
            return Asked("GET" if path else method, inside + path + query, self._headers(row))
        plural = f"{rng.choice([row.kind] * 9 + ['table', 'view'])}s"
        query = rng.choice(["", "", "", "?snapshots=all", "?snapshots=refs", "?snapshots=other", "?CASCADE=1"])
        return Asked(method, f"{inside}/{plural}/{self._written(rest[-1])}{query}", self._headers(row))

    def _native(self, row: Securable, line: list[str]) -> str:
        """A path of the native wire: a list, a table or a view."""
        rng, (metalake, catalog, *rest) = self.rng, map(self._written, line)
        schemas = f"/api/metalakes/{metalake}/catalogs/{catalog}/schemas"
        end = rng.choice(["", "", "", "", "/", "?refresh=true", "?refresh=no", "?refresh=FALSE"])
        if row.kind == "catalog":
            return schemas + end
        schema = "%3A".join(rest[:-1] if row.kind in ("table", "view") else rest)
        if row.kind == "schema":
            return schemas + rng.choice([f"?parentSchema={schema}", f"/{schema}/tables{end}", f"/{schema}/views{end}"])
        asked = rng.choice(["", "", "?privileges=MODIFY_TABLE", "?privileges=FLY"])
        return f"{schemas}/{schema}/{row.kind}s/{rest[-1]}{asked or end}"

    def _written(self, name: str) -> str:
        """A name as clients write it; now and then another one."""
        rng = self.rng
        if rng.random() < 0.03:
            name = rng.choice(ODD)
        if rng.random() < 0.02:
            name = name.swapcase()
        return rng.choice([quote, quote, quote_plus])(name, safe="")

    def _headers(self, row: Securable) -> dict[str, str]:
        rng = self.rng
        own_world = str(row.pk // STRIDE - 1)
        name = rng.choice(self.users[own_world if rng.random() < 0.95 else rng.choice(list(self.users))])
        if rng.random() < 0.4:  # an owner, who often may what nobody else may
            above = [self.rows[int(id)] for id in row.lineage[1:].split("/")]
            name = self.names.get(rng.choice(above).owner_user_id or 0, name)
        token = rng.random() < 0.7
        headers = {"Authorization": f"Bearer {Wired.token(name)}" if token else basic(name)}
        if rng.random() < 0.02:
            headers["Authorization"] = rng.choice(["Bearer mlk_nobody", "Basic x", basic("nobody"), basic(name, "no")])
        if rng.random() < 0.02:
            del headers["Authorization"]
        if rng.random() < 0.05:
            headers["X-Gravitino-Active-Roles"] = rng.choice(["NONE", "ALL", "role1", "a,b", ""])
        if rng.random() < 0.2:
            etag = etag_of(LOCATION.format(row.pk))
            headers["If-None-Match"] = rng.choice([etag, f'"x", W/{etag}', '"x"', "*", etag[:-2] + '"'])
        if rng.random() < 0.3:
            headers["Accept-Encoding"] = rng.choice(
                ["gzip", "gzip, deflate", "br;q=1.0, GZIP;q=0.5", "gzip;q=0", "identity"]
            )
        if rng.random() < 0.1:
            headers["X-Request-Id"] = rng.choice(["mine", "no good", "x" * 65])
        if rng.random() < 0.05:
            headers["X-Forwarded-For"] = "10.0.0.1"
        if rng.random() < 0.2:
            headers["Accept"] = rng.choice([f"application/vnd.gravitino.v{n}+json" for n in (1, 1, 2)] + ["*/*"])
        return headers


def read(asked: Asked) -> Reader:
    """The request as a connection reads it."""
    reader = Reader(("127.0.0.1", 4711), ("127.0.0.1", 8090), Memory())
    reader.feed(asked.content)
    assert reader.is_whole, asked
    return reader


class Twins:
    """Both ways of the server."""

    def __init__(self) -> None:
        self.fast = FastReads()
        self.plain = HttpServer(cast(Any, wsgi.application), cast(Any, None))
        self.compared = 0
        self.straight: Counter[tuple[str, str, str, int]] = Counter()  # by wire, operation, method and status

    def compare(self, asked: Asked) -> tuple[int, bytes]:
        """Status and body. Raises AssertionError where the fast path answers, and differently."""
        reader = read(asked)
        self.compared += 1
        question = self.fast.find(reader)
        answered = self.fast.answer(question, closes=False) if question else None
        status, headers, body = self.plain._call(reader.environment())  # which every request of a server may go
        if question is None or answered is None:
            return int(status[:3]), body
        self.straight[question.wire.name, question.asked.operation, asked.method, answered.status] += 1
        expected = head(status, headers) + body
        assert _CHANGING.sub(b"", answered.content) == _CHANGING.sub(b"", expected), asked
        identifier = asked.headers.get("X-Request-Id", "")
        assert (answered.request_id == identifier) == (identifier == "mine"), asked
        return answered.status, body


def change_something(rng: random.Random) -> None:
    """Rename, drop, disable, take over or revoke one thing, as another process may at any moment."""
    what = rng.randrange(6)
    rows = Securable.objects.order_by("pk")  # the same draw is the same row on every database
    if what == 0:
        row = rng.choice(list(rows.filter(kind__in=["table", "view"])))
        rows.filter(pk=row.pk).update(name=f"{row.name}~{rng.random()}")
    elif what == 1:
        row = rng.choice(list(rows.filter(kind__in=["table", "view"])))
        rows.filter(pk=row.pk).update(owner_user=rng.choice(list(User.objects.order_by("pk"))), owner_group=None)
    elif what == 2:
        catalog = rng.choice(list(Catalog.objects.order_by("pk")))
        Catalog.objects.filter(pk=catalog.pk).update(enabled=rng.random() < 0.8)
    elif what == 3:
        table = rng.choice(list(Table.objects.order_by("pk")))
        elsewhere = LOCATION.format(rng.choice([table.pk, "else"]))
        Table.objects.filter(pk=table.pk).update(metadata_location=elsewhere)
    elif what == 4:
        user = rng.choice(list(User.objects.order_by("pk")))
        User.objects.filter(pk=user.pk).update(is_active=rng.random() < 0.9)
    else:
        grant = rng.choice(list(Grant.rows.select_related("permission").order_by("pk")))
        role = Role.objects.get(group_id=grant.group_id)
        Grant.rows.filter(pk=grant.pk).delete()
        left = Grant.rows.filter(group_id=grant.group_id, content_object_id=grant.content_object_id)
        entries = [
            {"privilege": codename, "effect": effect}
            for codename, effect, starts, ends in left.values_list(
                "permission__codename", "effect", "starts_at", "ends_at"
            )
            if starts is None and ends is None
        ]
        snapshot.publish([snapshot.grants_change(role.pk, grant.content_object_id, entries)])
