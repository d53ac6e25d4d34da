"""`gcli` on people, roles, grants, questions and tokens of a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.metalake_client.gcli import Gcli
from tests.names import own_name

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
    assert gcli("access", "drift", "--file", str(file)).code == 0
    file.write_text(file.read_text().replace("select_table", "modify_table"))
    assert gcli("access", "drift", "--file", str(file)).code == 5
    planned = gcli.json("access", "plan", "--file", str(file))
    assert sorted(each["change"] for each in planned["changes"]) == ["grant", "revoke"]
    assert gcli("access", "apply", "--file", str(file)).code == 2
    assert "Applied 2 changes." in gcli.ok("access", "apply", "--file", str(file), "--yes").err
    assert gcli("access", "drift", "--file", str(file)).code == 0
    assert "Nothing to change." in gcli.ok("access", "apply", "--file", str(file)).err
    file.write_text("roles: [")
    assert gcli("access", "plan", "--file", str(file)).code == 2


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


def test_a_token_takes_the_place_of_a_password(gcli: Gcli, monkeypatch: pytest.MonkeyPatch) -> None:
    token = gcli.json("token", "create", "--name", own_name("token"))
    monkeypatch.delenv("METALAKE_PASSWORD")
    assert gcli("catalog", "list").code == 3
    monkeypatch.setenv("METALAKE_TOKEN", token["secret"])
    assert gcli("catalog", "list").code == 0
    listed = gcli.json("token", "list")
    assert token["id"] in [each["id"] for each in listed] and token["secret"] not in str(listed)
    gcli.ok("token", "drop", "--id", str(token["id"]), "--yes")
    assert gcli("catalog", "list").code == 3
