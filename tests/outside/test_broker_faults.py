"""Redis gone, hung, flushed, full; messages lost, doubled, late: no acknowledged write is lost, and all go on alone."""

from __future__ import annotations

import json
import signal
import time
from concurrent.futures import wait
from contextlib import suppress
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
from redis.exceptions import OutOfMemoryError

from tests.catalogs.racing import Answer
from tests.outside.deployment import Deployment, Served
from tests.waiting import eventually

VIEW = {
    "name": "delays",
    "columns": [{"name": "delay", "type": "integer"}],
    "representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT delay FROM flights"}],
}
pytestmark = [pytest.mark.slow, pytest.mark.redis, pytest.mark.server, pytest.mark.timeout(240)]


@pytest.fixture
def live(deployed: Deployment) -> Served:
    """A catalog whose system is asked for every answer."""
    return deployed.catalog()


@pytest.fixture
def kept(deployed: Deployment) -> Served:
    """One whose answers are good for long, and were just given."""
    outside = deployed.catalog(cache_ttl="3600")
    outside.world.put_schema("flights")
    outside.world.put_table("flights", "delays")
    assert outside.works()
    assert outside.ask("GET", "/schemas/flights").status == 200
    assert outside.ask("GET", "/schemas/flights/tables").status == 200
    assert outside.ask("GET", "/schemas/flights/tables/delays").status == 200
    return outside


def mirror_is_read(kept: Served) -> bool:
    paths = ("/schemas", "/schemas/flights", "/schemas/flights/tables", "/schemas/flights/tables/delays")
    return [kept.ask("GET", path).status for path in paths] == [200] * len(paths)


def is_spared(answer: Answer) -> bool:
    """Told that nothing was done, and when to come back."""
    return answer.status == 503 and int(answer.retry_after or 0) > 0


def is_unknown(answer: Answer) -> bool:
    return answer.status == 504 and "not known yet" in answer.body["message"]


def test_redis_away(live: Served, kept: Served) -> None:
    live.on.redis.stop()
    answers = [live.make("sales"), live.ask("GET", "/schemas"), kept.ask("GET", "/schemas?refresh=true")]
    assert all(map(is_spared, answers)), answers
    assert all("Redis" in answer.body["message"] for answer in answers)
    assert mirror_is_read(kept)
    assert live.states() == ["aborted"] and live.world.schemas() == set()
    live.on.redis.start()
    assert live.works()
    assert live.make("sales").status == 200
    assert mirror_is_read(kept)


def test_redis_ends_while_the_worker_works(live: Served, kept: Served) -> None:
    live.world.fail("create_schema", "slow:3")
    write = live.make_later("sales")
    assert eventually(lambda: live.world.calls("create_schema") == 1)
    kept.world.fail("list_schemas", "slow:3")
    asked = kept.world.calls("list_schemas")
    read = kept.later("GET", "/schemas?refresh=true")
    assert eventually(lambda: kept.world.calls("list_schemas") > asked)
    live.on.redis.stop()
    assert is_unknown(write.result(60)), write.result()
    assert is_spared(read.result(60)), read.result()
    assert mirror_is_read(kept)
    assert eventually(lambda: live.states() == ["committed"])
    live.on.redis.start()
    assert live.works() and live.shown() == {"sales"}


def test_redis_ends_while_the_worker_writes_views(deployed: Deployment) -> None:
    """Which it reads, too: each call of the system is the worker's."""
    outside = deployed.catalog("memory-views")
    assert outside.make("flights").status == 200
    views = "/schemas/flights/views"
    assert outside.ask("POST", views, VIEW).status == 200
    outside.world.fail("alter_view", "slow:3")
    alteration = {"updates": [{"@type": "updateComment", "newComment": "Late"}]}
    write = outside.later("PUT", f"{views}/delays", alteration)
    assert eventually(lambda: outside.world.calls("alter_view") == 1)
    deployed.redis.stop()
    assert is_unknown(write.result(60)), write.result()
    refused = outside.ask("POST", views, VIEW | {"name": "late"})
    assert is_spared(refused) and "Redis" in refused.body["message"], refused
    assert eventually(lambda: outside.states() == ["committed", "committed", "committed"]), outside.states()
    deployed.redis.start()
    assert outside.works()
    altered = outside.ask("GET", f"{views}/delays")
    assert (altered.body["view"]["comment"], altered.body["view"]["version"]) == ("Late", 2), altered
    assert [one["name"] for one in outside.ask("GET", views).body["identifiers"]] == ["delays"]
    assert outside.ask("DELETE", f"{views}/delays").status == 200 and outside.world.tables() == set()


def test_redis_starts_anew_while_the_worker_works(live: Served) -> None:
    """The reply goes to a Redis that knows of nobody who waits."""
    live.world.fail("create_schema", "slow:2")
    write = live.make_later("sales")
    assert eventually(lambda: live.world.calls("create_schema") == 1)
    live.on.redis.stop()
    live.on.redis.start()
    assert is_unknown(write.result(60)), write.result()
    assert eventually(lambda: live.states() == ["committed"])
    assert live.works() and live.shown() == {"sales"}
    assert all(0 < live.on.keys.ttl(key) <= 60 for key in live.on.keys.keys("metalake:reply:*"))


def test_redis_hangs(live: Served, kept: Served) -> None:
    """Connections stay open and nothing answers, as behind a broken network."""
    redis = live.on.redis.process
    live.world.fail("create_schema", "slow:2")
    write = live.make_later("sales")
    assert eventually(lambda: live.world.calls("create_schema") == 1)
    redis.send_signal(signal.SIGSTOP)
    asked = [live.make_later("hr"), live.later("GET", "/schemas"), kept.later("GET", "/schemas?refresh=true")]
    assert mirror_is_read(kept)
    assert write.result(60).status == 200, "its row says that it is done"
    assert all(is_spared(answer.result(60)) for answer in asked), [answer.result() for answer in asked]
    assert mirror_is_read(kept)
    redis.send_signal(signal.SIGCONT)
    assert live.works() and kept.works()
    assert live.shown() == live.world.schemas() == {"sales"}, "a message that came through after all did something"


def refusals(live: Served) -> int:
    """How often Redis has refused to take something for want of memory."""
    counted: dict[str, Any] = live.on.keys.info("errorstats")
    return int(counted.get("errorstat_OOM", {}).get("count", 0))


def test_messages_are_lost(live: Served, kept: Served) -> None:
    """Flushed with all that is in Redis, or thrown away by a worker that cannot note that it has them."""
    live.world.fail("create_schema", "slow:2")
    under_way = live.make_later("sales")
    assert eventually(lambda: live.world.calls("create_schema") == 1)
    with live.on.paused_worker():
        write, read = live.make_later("hr"), kept.later("GET", "/schemas?refresh=true")
        refresh = kept.ask("POST", "/refreshes").body["refresh"]
        assert eventually(lambda: len(live.on.queued("metalake.settle")) == 1)
        assert eventually(lambda: len(live.on.queued("metalake.remote_call")) == 1)
        live.on.rows("DELETE FROM metalake_outbox WHERE topic = 'catalog.refresh' RETURNING id")  # as if it were sent
        live.on.keys.flushall()
        unnoted = live.make_later("planes")
        assert eventually(lambda: len(live.on.queued("metalake.settle")) == 1)
        live.on.keys.config_set("maxmemory", 1)
        refused = refusals(live)
    assert eventually(lambda: not live.on.queued("metalake.settle") and refusals(live) > refused)
    live.on.keys.config_set("maxmemory", 0)
    assert mirror_is_read(kept)
    assert under_way.result(60).status in (200, 504), under_way.result()
    assert is_unknown(write.result(60)), write.result()
    is_made = unnoted.result(60).status == 200  # where another message than its own was refused
    assert is_made or is_unknown(unnoted.result()), unnoted.result()
    assert read.result(60).status == 504 and read.result().retry_after, read.result()
    assert live.works(), "the worker hears of nothing any more"
    assert live.make("airports").status == 200
    assert eventually(live.is_settled)
    assert live.states() == ["committed", "aborted", "committed" if is_made else "aborted", "committed"]
    assert live.shown() == live.world.schemas() == {"sales", "airports"} | ({"planes"} if is_made else set())
    assert eventually(lambda: kept.ask("GET", f"/refreshes/{refresh['id']}").body["refresh"]["state"] == "done")


def test_redis_is_full(live: Served, kept: Served) -> None:
    keys = live.on.keys
    live.world.fail("create_schema", "slow:2")
    under_way = live.make_later("sales")
    assert eventually(lambda: live.world.calls("create_schema") == 1)
    keys.config_set("maxmemory", 1)
    answers = [live.make("airports"), kept.ask("GET", "/schemas?refresh=true")]
    assert all(map(is_spared, answers)), answers
    assert all("Redis" in answer.body["message"] for answer in answers)
    assert mirror_is_read(kept)
    assert eventually(lambda: live.states() == ["committed", "aborted"])
    keys.config_set("maxmemory", 0)
    assert under_way.result(60).status in (200, 504), under_way.result()
    assert live.works(), "the worker hears of nothing any more"
    assert live.make("airports").status == 200
    assert live.shown() == live.world.schemas() == {"sales", "airports"}


def test_redis_evicts(live: Served, kept: Served) -> None:
    """Whatever it throws away: what was acknowledged is there, and nothing else of what was asked for."""
    keys = live.on.keys
    keys.config_set("maxmemory-policy", "allkeys-lru")
    keys.config_set("maxmemory", keys.info("memory")["used_memory"] + 300_000)
    enough, told = Event(), {}
    junk = [live.on.pool.submit(fill, live.on, enough) for _ in range(2)]
    assert eventually(lambda: keys.info("stats")["evicted_keys"] > 100)
    for number in range(8):
        told[f"s{number}"] = live.make_later(f"s{number}")
        assert mirror_is_read(kept)
    wait(told.values(), 60)
    enough.set()
    wait(junk, 60)
    keys.config_set("maxmemory", 0)
    assert live.works()
    assert eventually(live.is_settled)
    acknowledged = {name for name, answer in told.items() if answer.result().status == 200}
    open_ended = {name for name, answer in told.items() if is_unknown(answer.result())}
    assert all(is_spared(answer.result()) for name, answer in told.items() if name not in acknowledged | open_ended)
    assert live.shown() == live.world.schemas()
    assert acknowledged <= live.shown() <= acknowledged | open_ended


def fill(deployment: Deployment, enough: Event) -> None:
    """Put into Redis what it has no room for."""
    keys, until = deployment.keys, time.monotonic() + 120
    while not enough.is_set() and time.monotonic() < until:
        with suppress(OutOfMemoryError):
            keys.set(uuid4().hex, "x" * 10_000)


# Messages


def test_a_write_is_told_of_several_times(live: Served) -> None:
    with live.on.paused_worker():
        write = live.make_later("sales:emea")
        assert eventually(lambda: len(live.on.queued("metalake.settle")) == 1)
        (message,) = live.on.queued("metalake.settle")
        live.on.keys.rpush("celery", message, message, message)
        live.world.fail("create_schema", "slow:1")
    assert write.result(60).status == 200, write.result()
    for _ in range(3):
        live.on.keys.lpush("celery", message)
    live.on.drained()
    assert live.world.calls("create_schema") == 2, "one for each level"
    assert live.states() == ["committed"]
    assert live.shown() == {"sales"}


def test_a_message_comes_an_hour_late(live: Served) -> None:
    """It has expired; should the worker's clock not say so, the write that it is about has long ended."""
    live.world.fail("create_schema", "denied")
    with live.on.paused_worker():
        write = live.make_later("sales")
        assert eventually(lambda: len(live.on.queued("metalake.settle")) == 1)
        message = json.loads(live.on.queued("metalake.settle")[0])
    assert write.result(60).status == 502, write.result()
    assert live.make("hr").status == 200
    (intent, _, fence), (other, _, _) = live.intents()
    calls = live.world.calls("create_schema")
    message["headers"]["expires"] = "2026-01-01T00:00:00+00:00"
    live.on.keys.lpush("celery", json.dumps(message))
    message["headers"]["expires"] = None
    live.on.keys.lpush("celery", json.dumps(message))
    for late, its in ((intent, 0), (intent, fence), (other, 0), (other, 1), (404, 0)):
        live.on.send("metalake.settle", late, its, "", "metalake:reply:late")
    live.on.drained()
    assert live.world.calls("create_schema") == calls
    assert live.states() == ["aborted", "committed"]
    assert not live.on.keys.exists("metalake:reply:late")


def test_who_lost_the_right_meanwhile_is_told_nothing(live: Served) -> None:
    message = ["list_schemas", {"page": None}, "", "metalake:reply:late"]
    (catalog,) = live.on.rows("SELECT id FROM metalake_securable WHERE name = %s", live.name)[0]
    live.world.put_schema("flights")
    asked = live.world.calls("list_schemas")
    nobody = {"id": 987654321, "name": "mia", "claimed": [], "active": None}
    live.on.send("metalake.remote_call", catalog, nobody, *message)
    answer = json.loads(live.on.keys.blpop(["metalake:reply:late"], 60)[1])
    assert answer["error"]["class"] == "Forbidden" and "flights" not in str(answer)
    live.on.send("metalake.remote_call", catalog, nobody | {"id": 0}, "drop_schema", *message[1:])
    assert json.loads(live.on.keys.blpop(["metalake:reply:late"], 60)[1])["error"]["class"] == "Forbidden"
    assert live.world.calls("list_schemas") == asked and live.world.calls("drop_schema") == 0
    live.on.send("metalake.remote_call", catalog, nobody, *message)
    live.on.drained()
    assert 0 < live.on.keys.ttl("metalake:reply:late") <= 60, "an answer that nobody waits for"


def test_a_refresh_is_told_of_twice_and_long_after(live: Served) -> None:
    for schema in ("flights", "sales"):
        live.world.put_schema(schema)
        for number in range(7):
            live.world.put_table(schema, f"t{number}")
    live.world.fail("list_tables", "slow:1")
    run = live.ask("POST", "/refreshes").body["refresh"]
    for _ in range(4):
        live.on.send("metalake.refresh", int(run["id"]))

    def state() -> dict[str, Any]:
        return live.ask("GET", f"/refreshes/{run['id']}").body["refresh"]

    assert eventually(lambda: state()["state"] == "done")
    assert (state()["seen"], live.world.calls("list_tables")) == (16, 6)
    live.on.send("metalake.refresh", int(run["id"]))
    live.on.send("metalake.refresh", 404)
    live.on.send("metalake.scheduled_refresh", 404)
    live.on.drained()
    assert (state()["seen"], live.world.calls("list_tables")) == (16, 6)


def test_nonsense_in_the_queue_stops_no_worker(live: Served) -> None:
    live.on.send("metalake.no_such_task", 1)
    live.on.send("metalake.settle", "one", {"two": 2})
    live.on.send("metalake.remote_call", None, None, None, None, None, None)
    live.on.send("metalake.refresh", "many")
    assert live.works()
    assert live.make("sales").status == 200
