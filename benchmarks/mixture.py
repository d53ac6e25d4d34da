"""A realistic mixture of requests: loads, lists, commits, rights, pages and refusals, on both wires."""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable
from http.client import HTTPConnection
from urllib.parse import urlencode, urlsplit

import orjson

from pipelines.rest import Client

CLIENTS, TABLES = 8, 50
CONFIG, WIRE = "/iceberg/demo/v1/config?warehouse=lake", "/iceberg/demo/v1/lake/namespaces"
NATIVE = "/api/metalakes/demo"
FIELDS = [{"id": n, "name": f"column_{n}", "type": "string", "required": False} for n in range(1, 31)]
COLUMNS = {"type": "struct", "fields": FIELDS}


class Caller:
    """One client: a keep-alive connection, a token, and the session of a page."""

    def __init__(self, url: str, token: str, session: str) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
        self.token, self.session = token, session
        self.chance = random.Random(token)
        self.answers: Counter[int] = Counter()

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> bytes:
        given = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **headers}
        content = body if body is None or isinstance(body, bytes) else orjson.dumps(body)
        self._connection.request(method, path, content, given)
        answer = self._connection.getresponse()
        self.answers[answer.status] += 1
        return answer.read()

    def page(self, path: str) -> None:
        self._connection.request("GET", path, headers={"Cookie": self.session})
        answer = self._connection.getresponse()
        self.answers[answer.status] += 1
        answer.read()

    @property
    def table(self) -> str:
        return f"t{self.chance.randrange(TABLES)}"


Act = Callable[[Caller], object]


class Mixture:
    """Requests to the store that the demo filled, with a schema `wide` of many tables besides."""

    def __init__(self, url: str, password: str) -> None:
        self._url = url
        admin = Client(url, "admin", password)
        self._tokens = [admin.call("POST", "tokens", body={"name": f"mixed{n}"}) for n in range(CLIENTS)]
        self._session, self._objects = sign_in(url, "admin", password)
        stranger = admin.call("POST", "tokens", body={"name": "mixed", "user": "analyst"})["token"]["secret"]
        caller = self._caller(0)
        caller.ask("POST", WIRE, {"namespace": ["mixed"]})
        for n in range(TABLES):
            caller.ask("POST", f"{WIRE}/mixed/tables", {"name": f"t{n}", "schema": COLUMNS})
        caller.ask("POST", f"{NATIVE}/roles", {"name": "mixed", "properties": {}, "securableObjects": []})
        assert set(caller.answers) == {200}, caller.answers
        self._acts = acts(self._objects, stranger)

    def run(self, requests: int) -> Counter[int]:
        """Send so many requests; returns the number of answers by status."""
        kinds, weights = [act for _, act in self._acts], [weight for weight, _ in self._acts]
        callers = [self._caller(n) for n in range(CLIENTS)]

        def ask(caller: Caller) -> None:
            for act in caller.chance.choices(kinds, weights, k=requests // CLIENTS):
                act(caller)

        threads = [threading.Thread(target=ask, args=(caller,)) for caller in callers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum((caller.answers for caller in callers), Counter())

    def _caller(self, number: int) -> Caller:
        return Caller(self._url, self._tokens[number]["token"]["secret"], self._session)


def acts(objects: list[str], stranger: str) -> list[tuple[float, Act]]:
    """The kinds of requests, each with its percentage."""
    may = {"privileges": [{"name": "select_table", "condition": "allow"}]}

    def commit(caller: Caller) -> None:
        value = {f"note-{caller.chance.randrange(50)}": str(caller.chance.random())}
        updates = [{"action": "set-properties", "updates": value}]
        caller.ask("POST", f"{WIRE}/mixed/tables/{caller.table}", {"requirements": [], "updates": updates})

    def rights(caller: Caller) -> None:
        word = caller.chance.choice(("grant", "revoke"))
        caller.ask("PUT", f"{NATIVE}/permissions/roles/mixed/table/lake.mixed.{caller.table}/{word}", may)

    def wrong(caller: Caller) -> None:
        caller.ask("GET", f"{WIRE}/mixed/tables/t", Authorization=f"Bearer {caller.chance.random()}")

    return [
        (28, lambda caller: caller.ask("GET", f"{WIRE}/mixed/tables/{caller.table}")),
        (2, lambda caller: caller.ask("GET", f"{WIRE}/travel%1Fnyc%1F2013/tables/flights")),
        (5, lambda caller: caller.ask("HEAD", f"{WIRE}/mixed/tables/{caller.table}")),
        (5, lambda caller: caller.ask("GET", CONFIG)),
        (8, lambda caller: caller.ask("GET", f"{WIRE}/mixed/tables")),
        (4, lambda caller: caller.ask("GET", WIRE)),
        (15, lambda caller: caller.ask("GET", f"{NATIVE}/catalogs/lake/schemas/mixed/tables/{caller.table}")),
        (5, lambda caller: caller.ask("GET", f"{NATIVE}/catalogs/lake/schemas/mixed/tables")),
        (4, lambda caller: caller.ask("GET", f"{NATIVE}/catalogs?details=true")),
        (4, commit),
        (2, rights),
        (3, lambda caller: caller.page(f"/objects/{caller.chance.choice(objects)}")),
        (1, lambda caller: caller.page("/tree")),
        (6, lambda caller: caller.ask("GET", f"{WIRE}/mixed/tables/none")),
        (4, lambda caller: caller.ask("GET", f"{NATIVE}/catalogs/lake/schemas/none")),
        (2, lambda caller: caller.ask("GET", f"{WIRE}/mixed/tables/t1", Authorization=f"Bearer {stranger}")),
        (1, lambda caller: caller.ask("POST", f"{WIRE}/mixed/tables/t1", b'{"updates": [')),
        (0.5, wrong),
        (0.5, lambda caller: caller.ask("GET", f"{WIRE}/wide/tables")),
    ]


def sign_in(url: str, user: str, password: str) -> tuple[str, list[str]]:
    """The cookies of a user who signs in on the page, and the objects that the first page links to."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.request("GET", "/login")
    answer = connection.getresponse()
    hidden = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', answer.read().decode())
    cookie = answer.headers["Set-Cookie"].partition(";")[0]
    assert hidden
    form = urlencode({"csrfmiddlewaretoken": hidden[1], "username": user, "password": password})
    headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded", "Origin": url}
    connection.request("POST", "/login", form, headers)
    answer = connection.getresponse()
    answer.read()
    given = [value.partition(";")[0] for value in answer.headers.get_all("Set-Cookie") or []]
    assert answer.status == 302 and given, answer.status
    session = "; ".join(given)
    connection.request("GET", "/", headers={"Cookie": session})
    objects = sorted(set(re.findall(r"/objects/(\d+)", connection.getresponse().read().decode())))
    assert objects, "the first page leads nowhere"
    return session, objects
