"""`gcli` and servers that know more or less than it does, and a new kind of object."""

from __future__ import annotations

from typing import Any

import pytest

from metalake_client.cli.kinds import KINDS, Kind
from tests.metalake_client.gcli import Gcli
from tests.metalake_client.stand_in import VERSION, StandIn

CATALOG = {
    "name": "lake",
    "type": "relational",
    "provider": "lakehouse-iceberg",
    "comment": None,
    "properties": {"in-use": "true"},
    "audit": {"creator": "admin", "createTime": "2026-11-24T10:00:00Z"},
}  # as a server of version 1.3 answered


def speaks(stand_in: StandIn, version: str) -> None:
    stand_in.answers["GET /api/version"] = {"code": 0, "version": VERSION["version"] | {"version": version}}


def test_a_server_that_answers_more_is_understood(alone: Gcli, stand_in: StandIn) -> None:
    more = CATALOG | {"tags": ["gold"], "quota": {"tables": 5}}
    stand_in.answers["GET /api/metalakes/m/catalogs"] = {"code": 0, "catalogs": [more], "cursor": 3}
    stand_in.answers["GET /api/metalakes/m/catalogs/lake"] = {"code": 0, "catalog": more, "warnings": []}
    assert alone.ok("catalog", "list").out == "name\tprovider\ttype\tcomment\nlake\tlakehouse-iceberg\trelational\t\n"
    assert alone.json("catalog", "list") == [more]
    assert "quota\ttables=5" in alone.ok("catalog", "details", "--catalog", "lake").out
    found = [{"type": "fileset", "id": "1", "name": "raw", "path": ["m", "lake", "raw"], "icon": "x"}]
    results = {"objects": found, "roles": [], "users": [], "groups": [], "isCut": False, "models": []}
    stand_in.answers["GET /api/metalakes/m/search"] = {"code": 0, "results": results}
    assert alone.ok("search", "-q", "raw").out == "type\tname\tpath\nfileset\traw\tlake.raw\n"


def test_a_server_that_answers_less_is_understood(alone: Gcli, stand_in: StandIn) -> None:
    less = {"name": "lake", "type": "relational"}
    stand_in.answers["GET /api/metalakes/m/catalogs"] = {"code": 0, "catalogs": [less]}
    assert alone.ok("catalog", "list").out == "name\tprovider\ttype\tcomment\nlake\t\trelational\t\n"
    stand_in.answers["GET /api/metalakes/m/catalogs"] = {"code": 0, "identifiers": [{"namespace": [], "name": "lake"}]}
    assert alone.json("catalog", "list") == [{"namespace": [], "name": "lake"}]
    speaks(stand_in, "1.2.0")
    stand_in.answers["GET /api/metalakes/m/catalogs"] = {"code": 0}
    lacks = alone("catalog", "list")
    assert (lacks.code, lacks.out) == (1, "")
    assert lacks.err.startswith(
        "gcli: The server's answer has no 'identifiers'. It speaks version 1.2.0, and this gcli"
    )


def test_what_an_older_server_does_not_know_is_said(alone: Gcli, stand_in: StandIn) -> None:
    asked = ("view", "lineage", "--catalog", "lake", "--schema", "s", "--view", "v")
    assert alone(*asked).err == "gcli: There is nothing at this path.\n"  # of the same version: a wrong address
    speaks(stand_in, "1.2.0")
    unknown = alone(*asked)
    assert unknown.code == 2 and unknown.err.count("\n") == 1
    assert unknown.err.startswith("gcli: The server does not know what this command asks for. It speaks version 1.2.0,")
    missing = {"code": 1003, "type": "NoSuchViewException", "message": "There is no view v."}
    stand_in.answers["GET /api/metalakes/m/catalogs/lake/schemas/s/views/v/lineage"] = (404, missing)
    assert (alone(*asked).code, alone(*asked).err) == (4, "gcli: There is no view v.\n")
    refused = {"code": 1001, "type": "IllegalArgumentException", "message": "updates: unknown field"}
    stand_in.answers["PUT /api/metalakes/m/catalogs/lake"] = (400, refused)
    assert "unknown field It speaks version 1.2.0" in alone(
        "catalog", "alter", "--catalog", "lake", "--comment", "x"
    ).err.replace("field.", "field")


@pytest.mark.parametrize(
    ("version", "code", "words"),
    [
        ("1.3.1", 0, ""),
        ("1.4.0", 0, "what only one of them has does not work"),
        ("1.2.9", 0, "what only one of them has does not work"),
        ("1.5.0", 1, "do not go together"),
        ("2.3.0", 1, "do not go together"),
        ("next", 1, "do not go together"),
    ],
)
def test_the_versions_of_both_sides_are_compared(
    alone: Gcli, stand_in: StandIn, version: str, code: int, words: str
) -> None:
    speaks(stand_in, version)
    ended = alone("server", "version", "--output", "json")
    assert (ended.code, ended.data["version"], ended.data["gcli"]) == (code, version, "1.3")
    assert words in ended.err and bool(ended.err) == bool(words)


def test_a_kind_that_gcli_does_not_know_is_said(alone: Gcli) -> None:
    newer = alone("fileset", "list")
    assert newer.code == 2 and newer.err.startswith("gcli: This gcli knows no kind and no command 'fileset'.")
    assert "Did you mean table?" in alone("tabel", "list").err


def test_a_new_kind_is_one_declaration(
    alone: Gcli, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    gadget = Kind(
        name="gadget",
        plural="gadgets",
        above=("catalog", "schema"),
        changes=("name", "comment", "properties"),
        fields=("file",),
        drops=("purge",),
        switches=True,
        columns=("name", "colour"),
        help="Gadgets.",
    )
    monkeypatch.setitem(KINDS, "gadget", gadget)
    path, shown = "/api/metalakes/m/catalogs/lake/schemas/a%3Ab/gadgets", {"name": "g", "colour": "red"}
    stand_in.answers |= {
        f"GET {path}": {"gadgets": [shown]},
        f"POST {path}": {"gadget": shown},
        f"GET {path}/g": {"gadget": shown},
        f"PUT {path}/g": {"gadget": shown},
        f"DELETE {path}/g": {"dropped": True},
    }
    assert "  gadget      Gadgets." in alone.ok("--help").out
    place = ("--catalog", "lake", "--schema", "a:b")
    file = tmp_path / "gadget.json"
    file.write_text('{"colour": "red"}')
    assert alone.ok("gadget", "list", *place).out == "name\tcolour\ng\tred\n"
    assert alone.json("gadget", "create", *place, "--name", "g", "--file", str(file), "-p", "k=v") == shown
    assert alone.json("gadget", "details", *place, "--gadget", "g") == shown
    alone.ok("gadget", "alter", *place, "--name", "g", "--rename", "h")
    alone.ok("gadget", "drop", *place, "--name", "g", "--purge", "--yes")
    assert stand_in.bodies == [
        {"colour": "red", "name": "g", "properties": {"k": "v"}},
        {"updates": [{"@type": "rename", "newName": "h"}]},
    ]
    assert stand_in.asked[-1] == f"DELETE {path}/g?purge=true"
