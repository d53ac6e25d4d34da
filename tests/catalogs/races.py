"""One round of each race: run against servers, it returns what did not hold, as sentences.

The suite runs a few rounds of each, benchmarks/races.py the full figures. `tag` is new for each round.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable
from itertools import chain
from urllib.parse import urlsplit

from tests.catalogs.racing import ICEBERG, NATIVE, Answer, Client, Nodes, namespace, segment

Act = Callable[[Client], Answer]
SCHEMA_GONE_OR_THERE = {200, 404, 409}
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
    answers = nodes.race(*chain.from_iterable(zip(creates, drops, strict=True)))
    wrong = _only(answers[1::2], {200, 409}) + _expect(answers[::2], {200: creators})
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
    nodes.made(f"{ICEBERG}/namespaces/{tag}/tables", {"name": "t", "schema": COLUMNS})
    path = f"{ICEBERG}/namespaces/{tag}/tables/t"

    def write(writer: int) -> Callable[[Client], Counter[int]]:
        def act(client: Client) -> Counter[int]:
            told: Counter[int] = Counter()
            for number in range(commits):
                update = {"action": "set-properties", "updates": {f"key-{writer}-{number}": "set"}}
                while client.send("POST", path, {"requirements": [], "updates": [update]}).status == 409:
                    told[409] += 1
                told[200] += 1
            return told

        return act

    told = sum(nodes.race(*map(write, range(writers))), Counter())
    loaded = nodes.ask("GET", path).body
    kept = {key for key in loaded["metadata"]["properties"] if key.startswith("key-")}
    wrong = [] if len(kept) == writers * commits else [f"{writers * commits - len(kept)} of {dict(told)} commits lost"]
    versions = len(loaded["metadata"]["metadata-log"]) + 1
    if versions != writers * commits + 1:
        wrong.append(f"the log has {versions} versions after {writers * commits} commits")
    return wrong + _leftovers(nodes, tag, versions=versions)


def overlapping_places(nodes: Nodes, tag: str, clients: int = 4) -> list[str]:
    """Tables are created in the same place, or one inside another's: one wins."""
    nodes.made(f"{NATIVE}/schemas", {"name": tag})
    root = f"{warehouse(nodes)}/places/{tag}"
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
    """A table is committed to while it is dropped with its files: the answers fit one order, and no file stays."""
    nodes.made(f"{NATIVE}/schemas", {"name": tag})
    nodes.made(f"{ICEBERG}/namespaces/{tag}/tables", {"name": "t", "schema": COLUMNS})
    path = f"{ICEBERG}/namespaces/{tag}/tables/t"
    update = {"action": "set-properties", "updates": {"key": "set"}}
    commit = lambda client: client.send("POST", path, {"requirements": [], "updates": [update]})  # noqa: E731
    drop = lambda client: client.send("DELETE", f"{path}?purgeRequested=true")  # noqa: E731
    commits, drops = nodes.race(late(commit), late(commit), late(drop), late(drop))[:2], []
    drops = [row[0] for row in nodes.rows("SELECT details FROM authz_auditentry WHERE event = %s AND full_name = %s",
                                          "table.dropped", f"lake.{tag}.t")]
    wrong = _only(commits, {200, 404})
    return wrong if len(drops) == 1 else [*wrong, f"dropped {len(drops)} times"]


def revoke_then_use(nodes: Nodes, tag: str) -> list[str]:
    """Once a revoke is answered, whatever is asked of the other server afterwards is refused."""
    first, last = nodes.clients(len(nodes.servers))[0], Client(nodes.servers[-1].url, token=READER_TOKEN)
    grant = f"/api/metalakes/demo/permissions/roles/readers/catalog/lake/{{}}"
    body = {"privileges": [{"name": "select_table", "condition": "allow"}]}
    wrong = []
    for word, wanted in (("grant", 200), ("revoke", 403)):
        answer = first.send("PUT", grant.format(word), body)
        if answer.status != 200:
            return [f"{word} said {answer}"]
        used = last.send("GET", SECRET)
        if (used.status == 200) != (wanted == 200):
            wrong.append(f"after the {word}, a load was answered with {used.status}")
    return wrong


