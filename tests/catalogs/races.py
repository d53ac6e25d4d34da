"""One round of each race: run against servers, it returns what did not hold, as sentences.

The suite runs a few rounds of each, benchmarks/races.py the full figures. `tag` is new for each round.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from urllib.parse import urlsplit

from tests.catalogs.racing import ICEBERG, NATIVE, Answer, Client, Nodes, namespace, segment
from tests.waiting import eventually

Act = Callable[[Client], Answer]
COLUMNS = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
LATE = 0.02  # seconds; the longest that one side of a race waits, so that the sides meet everywhere


def one_name(nodes: Nodes, tag: str, clients: int = 64) -> list[str]:
    """All create the same `A:B:C`: one wins, and there is one chain of one owner, audited once a level."""
    name = f"{tag}:B:C"
    answers = nodes.race(*[create_schema(name)] * clients)
    wrong = _expect(answers, {200: 1, 409: clients - 1})
    levels = _levels(nodes, tag)
    if [path for path, _, _ in levels] != _chain(name):
        wrong.append(f"the levels are {levels}")
    if len({owner for _, _, owner in levels}) != 1:
        wrong.append(f"the owners differ: {levels}")
    return wrong + _audited_once(nodes, levels) + _orphans(nodes)


def different_leaves(nodes: Nodes, tag: str, clients: int = 32) -> list[str]:
    """All create another `A:B:Ci`: all succeed, and the parents are made once."""
    names = [f"{tag}:B:C{number:02}" for number in range(clients)]
    wrong = _expect(nodes.race(*map(create_schema, names)), {200: clients})
    levels = _levels(nodes, tag)
    if [path for path, _, _ in levels] != [*_chain(f"{tag}:B"), *(_physical(name) for name in names)]:
        wrong.append(f"the levels are {[path for path, _, _ in levels]}")
    return wrong + _audited_once(nodes, levels) + _orphans(nodes)


def create_against_drop(nodes: Nodes, tag: str, creators: int = 2, droppers: int = 2) -> list[str]:
    """`A:B:Ci` is created while `A` is dropped: whichever was first, no schema is without its parent."""
    nodes.made(f"{NATIVE}/schemas", {"name": tag})
    names = [f"{tag}:B:C{number}" for number in range(creators)]
    creates = [late(create_schema(name)) for name in names]
    drops = [late(drop_schema(tag)) for _ in range(droppers)]
    answers = nodes.race(*creates, *drops)
    wrong = _expect(answers[:creators], {200: creators}) + _only(answers[creators:], {200, 409})
    there = {path for path, _, _ in _levels(nodes, tag)}
    wrong += [f"{name} was made and is not there" for name in names if not there.issuperset(_chain(name))]
    return wrong + _orphans(nodes)


def table_against_drop(nodes: Nodes, tag: str) -> list[str]:
    """A table is created in a schema while that is dropped: both cannot have happened, and no file is left over."""
    name = f"{tag}:B"
    nodes.made(f"{NATIVE}/schemas", {"name": name})
    made, dropped = nodes.race(late(create_table(name, "t")), late(drop_schema(name)))
    there = bool(_levels(nodes, name))
    wrong = _only([made], {200, 404}) + _only([dropped], {200, 409})
    if (made.status == 200) != there or (dropped.status == 200) == there:
        wrong.append(f"create said {made.status}, drop said {dropped.status}, and the schema is there: {there}")
    return wrong + _orphans(nodes) + _leftovers(nodes, tag)


def one_table(nodes: Nodes, tag: str, clients: int = 8) -> list[str]:
    """All create the same table: one wins, and the losers' metadata files are gone."""
    nodes.made(f"{NATIVE}/schemas", {"name": tag})
    answers = nodes.race(*[create_table(tag, "t")] * clients)
    return _expect(answers, {200: 1, 409: clients - 1}) + _leftovers(nodes, tag)


def many_commits(nodes: Nodes, tag: str, writers: int = 8, commits: int = 10) -> list[str]:
    """Each writer sets properties of its own, one a commit, trying again when another won: none is lost."""
    nodes.made(f"{NATIVE}/schemas", {"name": tag})
    path = f"{ICEBERG}/namespaces/{tag}/tables"
    nodes.made(path, {"name": "t", "schema": COLUMNS})

    def write(writer: int) -> Act:
        def act(client: Client) -> Answer:
            for number in range(commits):
                while (answer := set_property(f"{path}/t", f"key-{writer}-{number}")(client)).status == 409:
                    pass
            return answer

        return act

    wrong = _expect(nodes.race(*map(write, range(writers))), {200: writers})
    metadata = nodes.ask("GET", f"{path}/t").body["metadata"]
    kept = sum(key.startswith("key-") for key in metadata["properties"])
    if kept != writers * commits:
        wrong.append(f"{writers * commits - kept} of {writers * commits} commits were lost")
    if len(_metadata_files(nodes, tag)) != kept + 1:
        wrong.append(f"{len(_metadata_files(nodes, tag))} metadata files after {kept} commits")
    return wrong


def overlapping_places(nodes: Nodes, tag: str, clients: int = 4) -> list[str]:
    """Tables are created in the same place, or one inside another's: one wins."""
    nodes.made(f"{NATIVE}/schemas", {"name": tag})
    root = f"{nodes.warehouse}/{tag}/place"
    depths = [random.choice(["", "/a", "/a/b"]) for _ in range(clients - 1)]
    places = [root, *(root + depth for depth in depths)]
    random.shuffle(places)
    acts = [create_table(tag, f"t{number}", place) for number, place in enumerate(places)]
    wrong = _only(answers := nodes.race(*acts), {200, 400})
    won = [place for place, answer in zip(places, answers, strict=True) if answer.status == 200]
    if not won:
        wrong.append("nobody won")
    wrong += [
        f"{one} and {other} were both given away"
        for place, one in enumerate(won)
        for other in won[place + 1 :]
        if f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")
    ]
    return wrong + _leftovers(nodes, tag)


def commit_against_purge(nodes: Nodes, tag: str) -> list[str]:
    """A table is committed to while it is dropped with its files: it is dropped once, and none of its files stays."""
    nodes.made(f"{NATIVE}/schemas", {"name": tag})
    path = f"{ICEBERG}/namespaces/{tag}/tables"
    nodes.made(path, {"name": "t", "schema": COLUMNS})
    drop = late(lambda client: client.send("DELETE", f"{path}/t?purgeRequested=true"))
    answers = nodes.race(late(set_property(f"{path}/t", "a")), late(set_property(f"{path}/t", "b")), drop, drop)
    wrong = _only(answers[:2], {200, 404}) + _expect(answers[2:], {204: 1, 404: 1})
    if not eventually(lambda: not _metadata_files(nodes, tag)):
        wrong.append(f"{_metadata_files(nodes, tag)} stayed")
    return wrong


# What is asked.


def create_schema(name: str) -> Act:
    return lambda client: client.send("POST", f"{NATIVE}/schemas", {"name": name})


def drop_schema(name: str) -> Act:
    return lambda client: client.send("DELETE", f"{NATIVE}/schemas/{segment(name)}")


def create_table(schema: str, name: str, location: str | None = None) -> Act:
    body = {"name": name, "schema": COLUMNS, "location": location}
    return lambda client: client.send("POST", f"{ICEBERG}/namespaces/{namespace(schema)}/tables", body)


def set_property(table: str, key: str) -> Act:
    update = {"action": "set-properties", "updates": {key: "set"}}
    return lambda client: client.send("POST", table, {"requirements": [], "updates": [update]})


def late(act: Act) -> Act:
    """The same, after a short random wait."""

    def waits(client: Client) -> Answer:
        time.sleep(random.uniform(0, LATE))
        return act(client)

    return waits


# What must hold.


def _expect(answers: list[Answer], wanted: dict[int, int]) -> list[str]:
    told = Counter(answer.status for answer in answers)
    return [] if told == wanted else [f"answered {dict(told)} and not {wanted}"]


def _only(answers: list[Answer], wanted: set[int]) -> list[str]:
    return [f"answered {answer}" for answer in answers if answer.status not in wanted]


def _physical(logical: str) -> str:
    return logical.replace(":", "\x01")


def _chain(logical: str) -> list[str]:
    levels = logical.split(":")
    return [_physical(":".join(levels[:depth])) for depth in range(1, len(levels) + 1)]


def _levels(nodes: Nodes, top: str) -> list[tuple]:
    """Path, id and owner of a schema and of all below it."""
    physical = _physical(top)
    return nodes.rows(
        "SELECT c.physical_name, s.id, s.owner_user_id FROM catalogs_schema c "
        "JOIN metalake_securable s ON s.id = c.securable_ptr_id "
        "WHERE c.physical_name = %s OR c.physical_name LIKE %s ORDER BY c.physical_name",
        physical,
        f"{physical}\x01%",
    )


def _audited_once(nodes: Nodes, levels: list[tuple]) -> list[str]:
    found = Counter(
        row[0]
        for path, _, _ in levels
        for row in nodes.rows(
            "SELECT object_id FROM authz_auditentry WHERE event = 'schema.created' AND full_name = %s",
            "lake." + path.replace("\x01", ":"),
        )
    )
    wanted = Counter(id for _, id, _ in levels)
    return [] if found == wanted else [f"audited {found} for {wanted}"]


def _orphans(nodes: Nodes) -> list[str]:
    """Every schema has its parent, as a row, by its lineage and by its path."""
    rows = nodes.rows(
        "SELECT s.id, s.name, s.lineage, c.physical_name, p.lineage, pc.physical_name FROM metalake_securable s "
        "LEFT JOIN catalogs_schema c ON c.securable_ptr_id = s.id LEFT JOIN metalake_securable p ON p.id = s.parent_id "
        "LEFT JOIN catalogs_schema pc ON pc.securable_ptr_id = p.id WHERE s.slot = 'schema'"
    )
    wrong = []
    for id, name, lineage, path, above, path_above in rows:
        expected = f"{path_above}\x01{name}" if path_above else name
        if above is None or lineage != f"{above}/{id}" or path != expected:
            wrong.append(f"schema {path!r} at {lineage} lies under {path_above!r} at {above}")
    return wrong


def _leftovers(nodes: Nodes, tag: str) -> list[str]:
    """Every metadata file is the current one of a table, and no table's is missing."""
    pointers = {
        urlsplit(row[0]).path
        for row in nodes.rows(
            "SELECT metadata_location FROM catalogs_table WHERE metadata_location LIKE %s", f"%/{tag}/%"
        )
    }
    left, missing = _metadata_files(nodes, tag) - pointers, pointers - _metadata_files(nodes, tag)
    return [f"{left} were left over"] * bool(left) + [f"{missing} are missing"] * bool(missing)


def _metadata_files(nodes: Nodes, tag: str) -> set[str]:
    return {str(path) for path in (nodes.home / "warehouse").glob(f"**/{tag}/**/*.metadata.json")}
