"""`gcli` on people, roles, grants, questions and tokens of a real server."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.metalake_client.gcli import Gcli
from tests.names import own_name
from tests.servers import STORE, MetalakeServer

pytestmark = pytest.mark.slow

SCHEMA = ("--type", "schema", "--object", "lake.a")
ABOUT = ("--privilege", "SELECT_TABLE", *SCHEMA)


@pytest.fixture
def reader(gcli: Gcli) -> str:
    """A user who has the role readers, which may read lake.a."""
    user = own_name("rita")
    gcli.ok("catalog", "create", "--name", "lake", "--provider", "lakehouse-iceberg")
    gcli.ok("schema", "create", "--catalog", "lake", "--name", "a")
    gcli.ok("user", "create", "--name", user)
    gcli.ok("role", "create", "--name", "readers")
    gcli.ok("role", "assign", "--role", "readers", "--to-user", user)
    use = ("--type", "catalog", "--object", "lake", "--privilege", "USE_CATALOG")
    gcli.ok("grant", "add", "--role", "readers", *use)
    read = ("--privilege", "USE_SCHEMA", "--privilege", "SELECT_TABLE")
    gcli.ok("grant", "add", "--role", "readers", *SCHEMA, *read, "--until", "2099-01-01T00:00:00Z")
    return user


def test_who_may_and_why(gcli: Gcli, reader: str) -> None:
    why = gcli.ok("access", "explain", "--about", reader, *ABOUT).out
    assert why.startswith("Yes:") and f"{reader} holds role readers." in why
    assert gcli.json("access", "check", "--about", reader, *ABOUT) == {"allowed": True}
    before = gcli("access", "check", "--about", reader, *ABOUT, "--as-of", "2020-01-01T00:00:00Z")
    assert before.code == 2 and "The history of metalake" in before.err
    who = {each["user"]: each["privileges"] for each in gcli.json("access", "list", *SCHEMA)}
    assert set(who[reader]) == {"use_schema", "select_table"}
    reach = gcli.json("access", "effective", "--of-user", reader)
    assert [(each["type"], each["fullName"]) for each in reach][1:] == [("catalog", "lake"), ("schema", "lake.a")]
    assert gcli("access", "explain", "--about", reader, *SCHEMA).code == 2


def test_grants_are_listed_denied_and_revoked(gcli: Gcli, reader: str) -> None:
    rows = gcli.json("grant", "list", "--role", "readers")
    assert {(each["object"], each["name"]) for each in rows} == {
        ("lake", "use_catalog"),
        ("lake.a", "use_schema"),
        ("lake.a", "select_table"),
    }
    select = ("--role", "readers", *SCHEMA, "--privilege", "SELECT_TABLE")
    assert "revoke it" in gcli("grant", "add", *select, "--deny").err
    gcli.ok("grant", "remove", *select)
    gcli.ok("grant", "add", *select, "--deny")
    denied = gcli("access", "check", "--about", reader, *ABOUT)
    assert denied.code == 3 and "gcli: No." in denied.err
    gcli.ok("grant", "remove", *select, "--deny")
    gcli.ok("role", "unassign", "--role", "readers", "--to-user", reader)
    assert gcli.ok("access", "explain", "--about", reader, *ABOUT).out.startswith("No:")
    assert gcli("role", "assign", "--role", "readers").code == 2


def test_grants_as_code(gcli: Gcli, reader: str, tmp_path: Path) -> None:
    file = tmp_path / "access.yaml"
    file.write_text(gcli.ok("access", "export").out)
    assert gcli.ok("access", "drift", "--file", str(file)).err == f"The grants are those of {file}.\n"
    file.write_text(file.read_text().replace("select_table", "modify_table"))
    assert gcli("access", "drift", "--file", str(file)).code == 5
    planned = gcli.json("access", "plan", "--file", str(file))
    assert sorted(each["change"] for each in planned["changes"]) == ["grant", "revoke"]
    assert gcli("access", "apply", "--file", str(file)).code == 2
    applied = gcli.ok("access", "apply", "--file", str(file), "--yes").err
    assert "Applied 2 changes." in applied
    assert gcli("access", "drift", "--file", str(file)).code == 0
    assert "Nothing to change." in gcli.ok("access", "apply", "--file", str(file)).err
    (plan,) = re.findall(r"gcli access undo --plan (\S+)", applied)
    assert "Take back 2 changes?" in gcli("access", "undo", "--plan", plan).err
    assert "Applied 2 changes." in gcli.ok("access", "undo", "--plan", plan, "--yes").err
    assert gcli("access", "drift", "--file", str(file)).code == 5
    file.write_text(file.read_text().replace("modify_table", "SELECT_TABEL"))
    assert "'SELECT_TABEL' is no privilege; did you mean SELECT_TABLE?" in gcli("access", "plan", "-f", str(file)).err
    file.write_text("roles: [")
    wrong = gcli("access", "plan", "--file", str(file))
    assert wrong.code == 2 and "line" in wrong.err
    assert "cannot be read" in gcli("access", "plan", "--file", str(tmp_path)).err
    assert gcli("access", "plan").code == 2


def test_changes_are_planned_before_they_are_made(gcli: Gcli, reader: str, tmp_path: Path) -> None:
    select = ("--role", "readers", *SCHEMA, "--privilege", "SELECT_TABLE")
    planned = gcli.json("grant", "remove", *select, "--dry-run")
    (change,) = planned["changes"]
    assert (change["change"], change["privilege"], change["on"]["fullName"]) == ("revoke", "select_table", "lake.a")
    until = ("--until", "2099-01-01T00:00:00Z")
    for words in (
        ("grant", "add", *select[:-1], "MODIFY_TABLE", *until),
        ("role", "unassign", "--role", "readers", "--to-user", reader),
        ("role", "drop", "--name", "readers"),
    ):
        said = gcli.ok(*words, "--dry-run")
        assert "Nothing was changed." in said.err and "changes" in said.out
    gcli.ok("role", "assign", "readers", "--for-user", reader, "--yes")  # also where nothing is asked
    assert gcli.json("access", "check", "--about", reader, *ABOUT) == {"allowed": True}
    file = tmp_path / "changes.yaml"
    file.write_text(f"changes: [{{change: unassign, role: readers, user: {reader}}}]")
    assert len(gcli.json("access", "plan", "--changes", str(file))["changes"]) == 1
    gcli.ok("access", "apply", "--changes", str(file), "--yes")
    assert gcli("access", "check", "--about", reader, *ABOUT).code == 3
    wish = ("--for-user", reader, "--privilege", "SELECT_TABLE", *SCHEMA)
    assert gcli("access", "propose", *wish).code == 2
    gcli.ok("access", "propose", *wish, "--yes")
    assert gcli.json("access", "check", "--about", reader, *ABOUT) == {"allowed": True}
    assert "There is nothing to apply" in gcli("access", "propose", *wish, "--yes").err


def test_how_access_came_about(gcli: Gcli, reader: str) -> None:
    ways = gcli.json("access", "ways", *SCHEMA, "--of-user", reader, "--privilege", "SELECT_TABLE")
    assert [(each["role"], each["verdict"]) for each in ways] == [("readers", "effective")]
    everything = gcli.json("access", "ways", *SCHEMA)
    assert gcli.json("access", "ways", *SCHEMA, "--limit", "1") == everything[:1] and len(everything) > 2
    moments = gcli.json("access", "moments", *SCHEMA)
    assert len(moments) > 2 and moments == sorted(moments, key=lambda each: each["time"], reverse=True)
    assert gcli.json("access", "moments", *SCHEMA, "--limit", "2") == moments[:2]
    first = moments[-1]["time"]
    moved = {each["user"]: each for each in gcli.json("access", "compare", *SCHEMA, "--from", first)}
    assert "select_table" in moved[reader]["gained"] and not moved[reader]["lost"]
    assert gcli("access", "compare", *SCHEMA).code == 2
    done = gcli.json("access", "changes", *SCHEMA)
    assert {each["actor"] for each in done} == {"admin"} and gcli.json("access", "changes", *SCHEMA, "--limit", "1")
    seen = gcli.json("access", "seen", "--about", reader)
    assert [(each["type"], each["fullName"]) for each in seen] == [("catalog", "lake")]
    assert gcli.json("access", "seen")[0]["fullName"] == "lake"
    below = gcli.json("access", "effective", "--of-role", "readers", "--type", "schema", "--object", "lake.a")
    assert [each["fullName"] for each in below] == ["lake.a"]
    assert gcli.json("access", "grantable", *SCHEMA)
    assert gcli.ok("access", "former-members").err == "There are none.\n"
    assert gcli.json("role", "list", *SCHEMA) == [{"name": "readers"}]


def test_owners_and_groups(gcli: Gcli, reader: str) -> None:
    assert gcli.json("owner", "details", *SCHEMA)["name"] == "admin"
    gcli.ok("owner", "set", *SCHEMA, "--to-user", reader)
    assert gcli.json("owner", "details", *SCHEMA)["name"] == reader
    gcli.ok("group", "create", "--name", "people")
    gcli.ok("group", "members", "--name", "people", "--add", reader)
    gcli.ok("role", "assign", "--role", "readers", "--to-group", "people")
    assert gcli.json("group", "details", "--name", "people")["roles"] == ["readers"]
    gcli.ok("group", "drop", "--name", "people", "--yes")
    assert gcli.ok("group", "list").err == "There are none.\n"
    assert gcli("user", "drop", "--name", own_name("nobody"), "--yes").code == 4


def test_people_and_roles_come_by_files(gcli: Gcli, tmp_path: Path) -> None:
    names = [own_name("ana"), own_name("bo")]
    file, grants = tmp_path / "names.json", tmp_path / "grants.json"
    file.write_text(json.dumps(names))
    assert gcli.json("user", "create-all", "--file", str(file))["succeeded"] == 2
    assert len(gcli.json("user", "list", "--limit", "1")) == 1
    again = gcli("user", "create-all", "--file", str(file))
    assert again.code == 5 and names[0] in again.out
    invited = gcli.json("user", "invite", "--name", own_name("cy"))
    assert invited["link"].startswith("http://127.0.0.1:") and invited["path"] in invited["link"]
    gcli.ok("user", "drop-all", "--file", str(file), "--yes")
    file.write_text('{"name": 1}')
    assert gcli("user", "drop-all", "--file", str(file), "--yes").code == 2
    use = {"type": "metalake", "fullName": os.environ["METALAKE_METALAKE"]}
    grants.write_text(json.dumps([use | {"privileges": [{"name": "use_catalog", "condition": "allow"}]}]))
    gcli.ok("role", "create", "--name", "users", "--file", str(grants), "-p", "team=x")
    assert [each["name"] for each in gcli.json("grant", "list", "--role", "users")] == ["use_catalog"]
    grants.write_text("[]")
    assert gcli("role", "override", "--name", "users", "--file", str(grants)).code == 2
    gcli.ok("role", "override", "--name", "users", "--file", str(grants), "--yes")
    assert gcli.json("grant", "list", "--role", "users") == []
    gcli.ok("role", "drop", "--name", "users", "--yes")


def test_a_token_takes_the_place_of_a_password(
    gcli: Gcli, metalake_server: MetalakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "'tomorrow' has to be a moment in ISO 8601" in gcli("token", "create", "t", "--expires", "tomorrow").err
    tokens = [gcli.json("token", "create", "--name", own_name("token")) for _ in range(2)]
    monkeypatch.delenv("METALAKE_PASSWORD")
    assert gcli("catalog", "list").code == 3
    monkeypatch.setenv("METALAKE_TOKEN", tokens[0]["secret"])
    assert gcli("catalog", "list").code == 0
    listed = gcli.json("token", "list")
    assert tokens[0]["id"] in [each["id"] for each in listed] and tokens[0]["secret"] not in str(listed)
    gcli.ok("token", "drop", "--id", str(tokens[0]["id"]), "--yes")
    with closing(sqlite3.connect(metalake_server.home / STORE, timeout=60)) as store, store:
        ended = f"UPDATE authz_token SET expires_at = '2020-01-01' WHERE id = {int(tokens[1]['id'])}"
        assert store.execute(ended).rowcount == 1
    for secret in (tokens[0]["secret"], tokens[1]["secret"], "mlk_wrong"):  # revoked, expired, wrong
        monkeypatch.setenv("METALAKE_TOKEN", secret)
        refused = gcli("catalog", "list")
        assert (refused.code, refused.out, refused.err.count("\n")) == (3, "", 1)
        assert "token" in refused.err and "gcli token create" in refused.err and secret not in refused.err
