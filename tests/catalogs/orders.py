"""Races of two that must end as if one had come after the other, whatever the two are.

The orders are made first, one request after the other, each in a metalake of its own: what was answered and all that
was left behind is written down. Then the two are raced, and what they lead to must be one of these. Where the database
has locks of rows, some rounds hold the rows until both are waiting, so that the two meet where they can.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import orjson
import psycopg

from tests.catalogs.meeting import WAITING
from tests.catalogs.pairs import Disturbance, Request, Write, made
from tests.catalogs.races import LATE
from tests.catalogs.racing import Answer, Client, Nodes, connect, together
from tests.waiting import eventually

FREE, WRITE_FIRST, DISTURBANCE_FIRST = "free", "write first", "disturbance first"
MEETINGS = (DISTURBANCE_FIRST, WRITE_FIRST, FREE)
POINTERS = ("catalogs_table", "views_mgmt_view")  # tables whose rows point to metadata files
MEET = 0.5  # seconds that rows are held for the two to come to them
SETTLED = 60.0  # seconds, long enough for what follows a commit on a machine that is busy
_numbers = count(1)


class Outcome(NamedTuple):
    """What the write and each request of the disturbance were answered, and what was left behind."""

    write: str
    disturbance: tuple[str, ...]
    left: frozenset[tuple[Any, ...]]


@dataclass
class World:
    """A metalake as `tests.catalogs.pairs.made` leaves it; its names begin with the tag, which is part of no other."""

    nodes: Nodes
    write: Write
    tag: str = field(default_factory=lambda: f"w{next(_numbers):05}w")
    labels: dict[int, str] = field(default_factory=dict)
    uuid: str = field(default_factory=lambda: str(uuid4()))

    def __post_init__(self) -> None:
        self.token = f"mlk_{self.tag}"
        for request in made(self.write):
            answer = self.send(self.nodes.clients(1)[0], request)
            assert answer.status == 200, (request, answer)
        self.nodes.execute(
            "INSERT INTO authz_token (user_id, name, digest, created_at) "
            "SELECT id, 'race', %s, date_joined FROM authz_user WHERE username = %s",
            hashlib.sha256(self.token.encode()).hexdigest(),
            self.user,
        )
        (self.root,) = self.nodes.read("SELECT id FROM metalake_securable WHERE name = %s", self.tag)[0]
        self.labels = {row[0]: f"the {row[1]} {row[2].replace(self.tag, 'm')}" for row in self._objects()}

    @property
    def user(self) -> str:
        return f"{self.tag}-user"

    def send(self, client: Client, request: Request) -> Answer:
        method, path, body = orjson.loads(self._filled(orjson.dumps(request).decode()))
        return client.send(method, path, body)

    def _filled(self, text: str) -> str:
        catalog = next((id for id, label in self.labels.items() if label == "the catalog c"), 0)
        places = {"m": self.tag, "u": self.user, "uuid": self.uuid, "warehouse": f"file://{self._warehouse(catalog)}"}
        for name, value in places.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    def writer(self, server: int) -> Client:
        return self.nodes.doors[server % len(self.nodes.doors)](token=self.token)

    def _warehouse(self, catalog: int) -> Path:
        return self.nodes.home / "warehouse" / str(catalog)

    # What is left

    def left(self) -> frozenset[tuple[Any, ...]]:
        """Every row below the metalake, or below another of its name, and every metadata file; no ids and no times."""
        objects = self._objects()
        there = {row[0]: row for row in objects}
        roots = {self.root, *(row[0] for row in objects if row[3] is None)}
        found = Counter[tuple[Any, ...]]()
        for id, kind, _, parent, lineage, user, group, comment, properties, creator in objects:
            above = there.get(parent)
            stands = lineage == f"{above[4] if above else ''}/{id}" and (above is not None or kind == "metalake")
            place = self._place(there, id) if stands else f"TORN {lineage}"
            found[
                (
                    self._label(id),
                    place,
                    self._plain(user or group),
                    comment,
                    _own(_json(properties)),
                    self._plain(creator),
                )
            ] += 1
        found.update(self._told(roots, there))
        found.update(self._files(there))
        told = frozenset((*row, number) for row, number in found.items())
        # A purge that is to come ends with its catalog, whose drop leaves files.
        return told if any(row[1] == "catalog" and row[0] in self.labels for row in objects) else but_for_purges(told)

    def _objects(self) -> list[tuple]:
        named = self.nodes.read(
            "SELECT id FROM metalake_securable WHERE parent_id IS NULL AND name LIKE %s", f"{self.tag}%"
        )
        roots = {id for (id,) in named} | {self.root}
        below = " OR ".join(f"s.lineage = '/{root}' OR s.lineage LIKE %s" for root in roots)
        return self.nodes.read(
            "SELECT s.id, s.kind, s.name, s.parent_id, s.lineage, u.username, g.name, s.comment, s.properties, "
            "s.creator FROM metalake_securable s LEFT JOIN authz_user u ON u.id = s.owner_user_id "
            f"LEFT JOIN authz_group g ON g.id = s.owner_group_id WHERE {below}",
            *(f"/{root}/%" for root in roots),
        )

    def _told(self, roots: set[int], there: dict[int, tuple]) -> Iterator[tuple[Any, ...]]:
        """The rows of the other tables, each with what it is about."""
        read, label, plain = self.nodes.read, self._label, self._plain
        among, below = (f"({', '.join(map(str, ids or [0]))})" for ids in (roots, there))
        for table in ("metalake_metalake", "catalogs_catalog"):
            for id, on in read(f"SELECT securable_ptr_id, enabled FROM {table} WHERE securable_ptr_id IN {below}"):
                yield "enabled", label(id), bool(on)
        for id, path in read(
            f"SELECT securable_ptr_id, physical_name FROM catalogs_schema WHERE securable_ptr_id IN {below}"
        ):
            yield "path", label(id), path
        for id, former in read(
            f"SELECT table_id, former_since IS NOT NULL FROM catalogs_locationclaim WHERE table_id IN {below}"
        ):
            yield "claim", label(id), bool(former)
        for kind, name in read(f"SELECT kind, full_name FROM catalogs_reservedplace WHERE of_metalake IN {among}"):
            yield "reserved", kind, name
        for role, on, privilege, effect in read(
            "SELECT r.securable_ptr_id, g.content_object_id, p.codename, g.effect FROM authz_grant g "
            "JOIN authz_role r ON r.group_id = g.group_id JOIN auth_permission p ON p.id = g.permission_id "
            f"WHERE r.securable_ptr_id IN {below}"
        ):
            yield "grant", label(role), label(on), privilege, effect
        for user, role in read(
            "SELECT u.username, r.securable_ptr_id FROM authz_user_groups ug JOIN authz_user u ON u.id = ug.user_id "
            f"JOIN authz_role r ON r.group_id = ug.group_id WHERE r.securable_ptr_id IN {below}"
        ):
            yield "holder", plain(user), label(role)
        for metalake, user in read(
            "SELECT m.metalake_id, u.username FROM authz_member m JOIN authz_user u ON u.id = m.user_id "
            f"WHERE m.metalake_id IN {among}"
        ):
            yield "member", label(metalake), plain(user)
        for metalake, group, user in read(
            "SELECT g.metalake_id, g.name, u.username FROM authz_group g LEFT JOIN authz_group_users gu "
            f"ON gu.group_id = g.id LEFT JOIN authz_user u ON u.id = gu.user_id WHERE g.metalake_id IN {among}"
        ):
            yield "group", label(metalake), group, plain(user)
        for id, actor, event, name in read(
            f"SELECT object_id, actor, event, full_name FROM authz_auditentry WHERE metalake_id IN {among}"
        ):
            yield "audit", label(id), plain(actor), event, plain(name)
        for id, name, present, latest, deleted in read(
            "SELECT view_id, view_name, current_version, latest_version, deleted_at FROM view_meta "
            f"WHERE metalake_id IN {among}"
        ):
            yield "view", label(id), name, present, latest, bool(deleted)
        for id, version, properties, deleted in read(
            f"SELECT view_id, version, properties, deleted_at FROM view_version_info WHERE metalake_id IN {among}"
        ):
            yield "version of view", label(id), version, _own(_json(properties)), bool(deleted)
        for id, *fact in self._newest_facts(among):
            yield "history", label(id), self._stands_as(there, id, *fact)

    def _newest_facts(self, among: str) -> list[tuple]:
        return self.nodes.read(
            "SELECT about, holder, name, state FROM authz_fact WHERE id IN (SELECT max(id) FROM authz_fact "
            f"WHERE topic = 'object' AND metalake_id IN {among} GROUP BY about)"
        )

    def _stands_as(self, there: dict[int, tuple], id: int, parent: int, name: str, state: Any) -> bool:
        """Whether the history says of an object what its row says; what went with something above it is not said."""
        row = there.get(id)
        said = _json(state) if state else None
        if row is None or said is None:
            return (row is None) == (said is None) or any(above not in there for above in self._above(said))
        return (row[3] or 0, row[2], row[4]) == (parent, name, said["lineage"])

    @staticmethod
    def _above(said: dict[str, Any] | None) -> list[int]:
        return [int(part) for part in (said or {}).get("lineage", "").split("/") if part][:-1]

    def _files(self, there: dict[int, tuple]) -> Iterator[tuple[Any, ...]]:
        among = "(" + ", ".join(map(str, there or [0])) + ")"
        read = "SELECT securable_ptr_id, metadata_location FROM {} WHERE securable_ptr_id IN " + among
        pointers = [row for rows in POINTERS for row in self.nodes.read(read.format(rows))]
        for id, pointer in pointers:
            file = Path(urlsplit(pointer).path)
            if not file.exists():
                yield "pointer", self._label(id), "TO NOTHING"
                continue
            metadata = orjson.loads(file.read_bytes())
            columns = [each["name"] for each in metadata["schemas"][-1]["fields"]]
            log = len(metadata.get("metadata-log", []))
            yield "pointer", self._label(id), _own(metadata.get("properties", {})), str(columns), log
        catalogs = {id for id, label in self.labels.items() if label == "the catalog c"}
        catalogs |= {id for id, row in there.items() if row[1] == "catalog"}
        files = sum(len([*self._warehouse(id).glob("**/*.metadata.json")]) for id in catalogs)
        yield "metadata files", files

    def _label(self, id: int) -> str:
        return self.labels.get(id, "another")

    def _place(self, there: dict[int, tuple], id: int | None) -> str:
        names = []
        while id is not None and id in there:
            names.append(self._plain(there[id][2]))
            id = there[id][3]
        return ".".join(reversed([name or "" for name in names]))

    def _plain(self, text: str | None) -> str | None:
        return None if text is None else text.replace(self.tag, "m")


def but_for_purges(left: frozenset[tuple[Any, ...]]) -> frozenset[tuple[Any, ...]]:
    """Without what is done after the commit of a purge, or not."""
    return frozenset(row for row in left if not _is_of_purge(row))


def _is_of_purge(row: tuple[Any, ...]) -> bool:
    return row[0] in ("metadata files", "reserved") or (row[0] == "audit" and row[3] == "table.purged")


def _own(properties: dict[str, Any]) -> str:
    """The properties that a test set."""
    return str({key: value for key, value in properties.items() if key.startswith("x-")})


def _json(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else orjson.loads(value)


# Orders


def serial(nodes: Nodes, write: Write, disturbance: Disturbance) -> list[Outcome]:
    """What the write leads to before, between and after the requests of the disturbance."""
    return [_in_order(World(nodes, write), disturbance, place) for place in range(len(disturbance.requests) + 1)]


def _in_order(world: World, disturbance: Disturbance, place: int) -> Outcome:
    client, writer = world.nodes.clients(1)[0], world.writer(0)
    before = [world.send(client, request) for request in disturbance.requests[:place]]
    written = world.send(writer, world.write.request)
    after = [world.send(client, request) for request in disturbance.requests[place:]]
    eventually(lambda: not _follow_ups(world.nodes), SETTLED)
    return Outcome(told(written), tuple(map(told, [*before, *after])), world.left())


def _follow_ups(nodes: Nodes) -> int:
    return int(nodes.read("SELECT count(*) FROM metalake_outbox WHERE topic = 'table.purge'")[0][0])


def told(answer: Answer) -> str:
    """An answer without its words: which container is missing first is not the same in every order."""
    body = answer.body if isinstance(answer.body, dict) else {}
    return " ".join(str(part) for part in (answer.status, body.get("dropped")) if part is not None)


# Races


def raced(
    nodes: Nodes, write: Write, disturbance: Disturbance, orders: Sequence[Outcome], meeting: str, turn: int = 0
) -> list[str]:
    """One round: what was not as one of the orders, as sentences."""
    world = World(nodes, write)
    if meeting != FREE and not nodes.database.startswith("postgres"):
        meeting = FREE  # SQLite has no locks of rows
    writer, owner = world.writer(turn), nodes.doors[(turn + 1) % len(nodes.doors)]()
    acts: list[Callable[[], list[Answer]]] = [
        lambda: [world.send(writer, write.request)],
        lambda: [world.send(owner, request) for request in disturbance.requests],
    ]
    connect([writer, owner])
    if meeting == FREE:
        written, done = together([_later(act) for act in acts])
    else:
        places = (0, 1) if meeting == WRITE_FIRST else (1, 0)
        first, second = _met(world, [acts[place] for place in places])
        written, done = (first, second) if places == (0, 1) else (second, first)
    answers = told(written[0]), tuple(map(told, done))
    like = [order for order in orders if (order.write, order.disturbance) == answers]
    left = world.left()

    def is_one() -> bool:
        nonlocal left
        left = world.left()
        return any(order.left == left for order in like)

    if any(order.left == left for order in like):
        return []
    # Only what follows the commit of a purge may take its time.
    if any(but_for_purges(order.left) == but_for_purges(left) for order in like) and eventually(is_one, SETTLED):
        return []
    nearest = min(like or orders, key=lambda order: len(order.left ^ left))
    return [
        f"{write} against {disturbance} ({meeting}): answered {answers}, in order {[order[:2] for order in orders]}; "
        f"left {sorted(map(str, left - nearest.left))} and not {sorted(map(str, nearest.left - left))}"
    ]


def _later(act: Callable[[], list[Answer]]) -> Callable[[], list[Answer]]:
    def waits() -> list[Answer]:
        time.sleep(random.uniform(0, LATE))
        return act()

    return waits


def _met(world: World, acts: Sequence[Callable[[], list[Answer]]]) -> list[list[Answer]]:
    """The answers of both, which come one after the other to rows that are held until both wait, or are done."""
    with ThreadPoolExecutor(2) as threads, psycopg.connect(world.nodes.database) as holder:
        for rows in ("metalake_securable", *POINTERS):
            own = "SELECT id FROM metalake_securable WHERE lineage LIKE %s OR id = %s"
            key = "id" if rows == "metalake_securable" else "securable_ptr_id"
            holder.execute(
                f"SELECT 1 FROM {rows} WHERE {key} IN ({own}) ORDER BY {key} FOR UPDATE",
                (f"/{world.root}/%", world.root),
            )
        turns = []
        with psycopg.connect(world.nodes.database, autocommit=True) as watch:
            for act in acts:
                turns.append(threads.submit(act))
                waited = len(turns)

                def is_there(waited: int = waited) -> bool:
                    return _waiting(watch) + sum(turn.done() for turn in turns) >= waited

                eventually(is_there, MEET)
        holder.commit()
        return [turn.result() for turn in turns]


def _waiting(watch: psycopg.Connection) -> int:
    """How many wait for a row that somebody holds."""
    return int(watch.execute(WAITING).fetchone()[0])


def rounds(nodes: Nodes, write: Write, disturbance: Disturbance, number: int) -> list[str]:
    """What did not hold in this many rounds, each meeting in its turn."""
    orders = serial(nodes, write, disturbance)
    wrong = [f"{write}, {disturbance}: in order answered {order}" for order in orders if _failed(order)]
    for turn in range(number):
        wrong += raced(nodes, write, disturbance, orders, MEETINGS[turn % len(MEETINGS)], turn)
    return wrong


def _failed(order: Outcome) -> bool:
    return any(answer.startswith("5") for answer in (order.write, *order.disturbance))
