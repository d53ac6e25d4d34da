"""Pages: keyset tokens that belong to their caller and list."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from iceberg_rest import pages
from metalake.kinds import Kind
from tests.demo import give
from tests.iceberg_rest.world import Caller

pytestmark = pytest.mark.store

NAMES = ["a", "b", "c", "d", "e"]


@pytest.fixture
def home(owner: Caller) -> Caller:
    for name in NAMES:
        owner.make_namespace("top", name)
    return owner


def walk(caller: Caller, path: str, items: str) -> list[list[Any]]:
    """Every page of a list, following its tokens from the first."""
    found = []
    token: str | None = ""
    while token is not None:
        answer = caller.get(f"{path}&pageToken={quote(token)}")
        assert answer.status == 200, answer.content
        found.append(answer.json[items])
        token = answer.json["next-page-token"]
    return found


@pytest.mark.parametrize(("size", "pages_"), [(1, 5), (2, 3), (4, 2), (5, 1), (100, 1)])
def test_namespaces_by_pages(home: Caller, size: int, pages_: int) -> None:
    found = walk(home, f"namespaces?parent=top&pageSize={size}", "namespaces")
    assert len(found) == pages_
    assert [levels for page in found for levels in page] == [["top", name] for name in NAMES]


def test_tables_by_pages(owner: Caller) -> None:
    owner.make_namespace("top")
    for name in NAMES:
        owner.make_table("top", name)
    found = walk(owner, "namespaces/top/tables?pageSize=2", "identifiers")
    assert [[identifier["name"] for identifier in page] for page in found] == [["a", "b"], ["c", "d"], ["e"]]


def test_without_the_parameter_everything_comes(home: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "DEFAULT_SIZE", 2)
    for query in ("", "&pageSize=2"):
        answer = home.get(f"namespaces?parent=top{query}").json
        assert len(answer["namespaces"]) == len(NAMES)
        assert answer["next-page-token"] is None


def test_an_empty_token_alone_pages_by_our_own_size(home: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "DEFAULT_SIZE", 2)
    assert [len(page) for page in walk(home, "namespaces?parent=top", "namespaces")] == [2, 2, 1]


def test_names_that_come_and_go_between_pages(home: Caller) -> None:
    """Nothing is told twice and nothing that stays is missed."""
    first = home.get("namespaces?parent=top&pageSize=2&pageToken=").json
    assert home.delete("namespaces/top%1Fb").status == 204
    home.make_namespace("top", "aa")
    home.make_namespace("top", "cc")
    token = quote(first["next-page-token"])
    rest = home.get(f"namespaces?parent=top&pageSize=9&pageToken={token}").json["namespaces"]
    assert rest == [["top", name] for name in ("c", "cc", "d", "e")]


def test_pages_do_not_count_what_is_hidden(home: Caller, member: Caller) -> None:
    give(member.name, Kind.CATALOG, "lake", "use_catalog")
    for name in ("b", "e"):
        give(member.name, Kind.SCHEMA, f"lake.top:{name}", "use_schema")
    found = walk(member, "namespaces?parent=top&pageSize=1", "namespaces")
    assert found == [[["top", "b"]], [["top", "e"]]]


@pytest.mark.parametrize("size", ["0", "-1", "x", "", "1.5", "9" * 30, "²"])
def test_sizes(home: Caller, size: str) -> None:
    answer = home.get(f"namespaces?pageToken=&pageSize={quote(size)}")
    if size.startswith("9"):
        assert answer.status == 200
    else:
        assert answer.error[:2] == (400, "BadRequestException")


def test_a_token_is_bound_to_its_list_and_caller(home: Caller, reader: Caller) -> None:
    token = quote(home.get("namespaces?parent=top&pageSize=1&pageToken=").json["next-page-token"])
    for caller, path in [
        (reader, "namespaces?parent=top"),
        (home, "namespaces?parent=top%1Fa"),
        (home, "namespaces?x="),
        (home, "namespaces/top/tables?x="),
    ]:
        assert caller.get(f"{path}&pageSize=1&pageToken={token}").error[:2] == (400, "BadRequestException")
    assert home.get(f"namespaces?parent=top&pageSize=1&pageToken={token}").status == 200


@pytest.mark.parametrize(
    "forge", [lambda token: "x", lambda token: token[:-1], lambda token: "A" + token, lambda token: ":"]
)
def test_a_forged_token(home: Caller, forge: Any) -> None:
    token = home.get("namespaces?parent=top&pageSize=1&pageToken=").json["next-page-token"]
    answer = home.get(f"namespaces?parent=top&pageToken={quote(forge(token))}")
    assert answer.error[:2] == (400, "BadRequestException")
