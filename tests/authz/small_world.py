"""A small world: olga owns the metalake acme, mia and nils are members, sam is a stranger with an account.

acme > lake (catalog) > A > A:B (schemas) > A:B.t (table); files is a catalog of filesets.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from django.test import Client

from authz import snapshot
from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import AuditEntry, Member, User
from authz.services import grants, people, roles
from authz.services.grant_entries import Ask, spelled
from catalogs.models import Catalog, Schema, Table
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import Kind
from metalake.lineage import Located, Node
from metalake.models import Metalake, Securable
from tests.replaying import replayed

PASSWORD = "a long enough password"


class World:
    """What the tests of authz stand on; every actor is on the policy as of now."""

    def __init__(self) -> None:
        self.users = {name: User.objects.create_user(name, PASSWORD) for name in ("olga", "mia", "nils", "sam")}
        self.acme = self._save(Metalake(kind=Kind.METALAKE, name="acme"), None)
        self.lake = self._save(self._catalog("lake", "relational"), self.acme)
        self.files = self._save(self._catalog("files", "fileset"), self.acme)
        self.a = self.schema("A")
        self.ab = self.schema("B", self.a)
        self.t = self.table("t")
        for name in ("olga", "mia", "nils"):
            Member.objects.create(metalake=self.acme, user=self.users[name], creator="olga")
        self.roles_given = 0

    def __eq__(self, other: object) -> bool:
        """Two small worlds stand on the same rows, so what is built on them may be replayed (tests/replaying.py)."""
        return isinstance(other, World)

    def __hash__(self) -> int:
        return hash(World)

    def _save(self, row: Any, parent: Securable | None) -> Any:
        row.creator = "olga"
        row.owner_user = self.users["olga"]
        row.place_under(parent)
        row.save(force_insert=True)
        return row

    def _catalog(self, name: str, type_: str) -> Catalog:
        return Catalog(kind=Kind.CATALOG, name=name, type=type_, provider="p", nested=True)

    def schema(self, name: str, parent: Securable | None = None) -> Schema:
        above = parent.path.segments if isinstance(parent, Schema) else ()
        row = Schema(
            kind=Kind.SCHEMA, name=name, in_catalog=self.lake, physical_name=HierarchicalSchema((*above, name)).physical
        )
        return self._save(row, parent or self.lake)

    def table(self, name: str, schema: Schema | None = None) -> Table:
        row = Table(kind=Kind.TABLE, name=name, metadata_location="m", uuid=uuid4())
        return self._save(row, schema or self.ab)

    def metalake(self, name: str, owner: str) -> Metalake:
        """Another metalake, of another owner."""
        row = self._save(Metalake(kind=Kind.METALAKE, name=name), None)
        self.own(owner, row)
        Member.objects.create(metalake=row, user=self.users[owner], creator=owner)
        snapshot.forget()
        return row

    def actor(self, name: str) -> Actor:
        return actor_of(self.users.get(name) or User.objects.get(username=name))

    @property
    def olga(self) -> Actor:
        return self.actor("olga")

    @property
    def mia(self) -> Actor:
        return self.actor("mia")

    def give(self, user: str, *grants_: str) -> str:
        """A new role for a user, made by olga: "use_catalog@lake", "deny select_table@lake.A"; returns its name."""
        self.roles_given += 1
        name = f"r{self.roles_given}"
        roles.create_role(self.olga, "acme", name)
        for text in grants_:
            privilege, _, where = text.removeprefix("deny ").partition("@")
            effect = "deny" if text.startswith("deny ") else "allow"
            grants.grant_privileges(self.olga, "acme", name, kind_at(where), where, [(privilege, effect)])
        roles.assign_roles(self.olga, "acme", "user", user, [name])
        return name

    def own(self, name: str, row: Securable) -> None:
        Securable.objects.filter(pk=row.pk).update(owner_user=self.users[name])

    def role(self, name: str) -> dict[str, list[str]]:
        """What a role holds, as olga reads it: {"lake.A": ["allow use_schema"]}."""
        shown = roles.load_role(self.olga, "acme", name)
        return {on.full_name: spelled(on.entries) for on in shown.grants}

    def group(self, name: str, *users: str) -> None:
        people.add_group(self.olga, "acme", name)
        people.set_group_users(self.olga, "acme", name, add=users)

    def events(self, name: str) -> list[AuditEntry]:
        return list(AuditEntry.objects.filter(event=name).order_by("id"))


small_world = replayed(World)


def node_of(row: Any) -> Node:
    return Node(row.id, row.kind, row.name, row.owner_user_id, row.owner_group_id)


def at(world: World) -> Located:
    return Located(nodes=(node_of(world.acme),))


def kind_at(full_name: str) -> Kind:
    if full_name == "acme":
        return Kind.METALAKE
    return (Kind.CATALOG, Kind.SCHEMA, Kind.TABLE)[full_name.count(".")]


def ask(full_name: str, *grants_: str) -> Ask:
    """ask("lake.A", "allow use_schema")"""
    pairs = [(text.partition(" ")[2], text.partition(" ")[0]) for text in grants_]
    return Ask(kind_at(full_name), full_name, pairs)


def held(policy: snapshot.Snapshot) -> dict[str, Any]:
    tables = ("members", "user_roles", "user_groups", "group_roles")
    found: dict[str, Any] = {name: {key: v for key, v in getattr(policy, name).items() if v} for name in tables}
    found["grants"] = {role: dict(grants_) for role, grants_ in policy.grants.items() if grants_}
    return found


class Wire:
    """Django's test client, as one of the world's users; answers the status and the decoded body."""

    def __init__(self) -> None:
        self.client = Client()

    def basic(self, user: str) -> str:
        return "Basic " + base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        user: str = "olga",
        authorization: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        answer = self.client.generic(
            method,
            f"/api/{path}",
            json.dumps(body) if body is not None else "",
            content_type="application/json",
            headers={"Authorization": authorization or self.basic(user), **(headers or {})},
            RAW_URI=f"/api/{path}",
        )
        return answer.status_code, json.loads(answer.content)

    def pages(self, path: str, size: int, *, user: str = "olga") -> Iterator[dict[str, Any]]:
        """The answers of all pages of this size, each of which has to be a success."""
        query = f"{path}?limit={size}"
        while True:
            status, page = self("GET", query, user=user)
            assert status == 200, page
            yield page
            if "nextPageToken" not in page:
                return
            query = f"{path}?limit={size}&pageToken={page['nextPageToken']}"
