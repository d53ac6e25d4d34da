"""How `gcli` ends: exit codes, one line for an error, profiles, completion, pipes; and what it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from urllib.parse import quote

import pytest
import typer
import yaml

from metalake_client.cli import groups
from metalake_client.cli.app import app
from metalake_client.cli.kinds import KINDS
from tests.cases import each
from tests.metalake_client.gcli import Gcli
from tests.metalake_client.stand_in import StandIn
from tests.servers import REPOSITORY, MetalakeServer

PROGRAM = (sys.executable, "-m", "metalake_client")
CATALOGS = "GET /api/metalakes/m/catalogs"
FAMILIES = (*KINDS, *groups.FAMILIES)


def test_help_names_every_family(alone: Gcli) -> None:
    shown = alone.ok("--help")
    assert shown.out.startswith("Usage: gcli ") and not shown.err
    listed = [line.split()[0] for line in shown.out.partition("Commands:")[2].splitlines() if line[2:3].strip()]
    assert tuple(listed) == FAMILIES
    assert alone().code == 2 and alone().out == shown.out
    assert alone.ok("--version").out.startswith("gcli ")


@each("family", FAMILIES)
def test_every_command_has_help(alone: Gcli, family: str) -> None:
    command = typer.main.get_command(app).get_command(None, family)  # type: ignore[attr-defined]
    names = command.list_commands(None) if hasattr(command, "list_commands") else ()
    for name in ("", *names):
        each = command.get_command(None, name) if name else command
        where = f"gcli {family} {name}".strip()
        usage, _, line, *_ = each.get_help(typer.Context(each, info_name=where)).splitlines()
        assert usage.startswith(f"Usage: {where} ") and line.startswith("  "), where  # it says what it does
    assert alone.ok(family, "--help").out.startswith(f"Usage: gcli {family} ")


@pytest.mark.slow
def test_help_needs_neither_the_server_nor_its_libraries() -> None:
    code = (
        "import sys\nfrom metalake_client.cli.app import main\nmain(['--help'])\nprint(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert loaded.isdisjoint({"django", "metalake", "requests", "yaml", "pyiceberg", "rich", "keyring"})


@each(
    "line, code, words",
    [
        ("catalog list", 2, "--metalake"),
        ("catalog lists", 2, "Did you mean list?"),
        ("table details --catalog a", 2, "--schema"),
        ("catalog list --metalake m --output xml", 2, "xml"),
        ("catalog list --metalake m --url http://127.0.0.1:9", 6, "http://127.0.0.1:9"),
        (
            "catalog list --metalake m --url nowhere:80",
            2,
            "nowhere:80 cannot be asked: a server's URL begins",
        ),
        ("token list --for-user bo", 2, "No such option: --for-user. See"),
        ("user list --limit many", 2, "'--limit': it is a whole number."),
        ("access seen --for-group g", 2, "--for-group (Possible options: --for-user)"),
        (
            "table create c s t --metalake m --file /none",
            2,
            "/none cannot be read: No such file or directory.",
        ),
        ("catalog list --metalake m --profile none", 2, "none"),
        ("catalog create --metalake m --name c --properties a", 2, "--properties"),
        ("table list --metalake m --catalog c --schema s --limit 0", 2, "limit"),
    ],
)
def test_what_is_wrong_is_one_line(alone: Gcli, line: str, code: int, words: str) -> None:
    ended = alone(*line.split())
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("gcli: ") and ended.err.count("\n") == 1 and words in ended.err


@pytest.mark.slow
def test_what_the_server_refuses_has_an_exit_code(
    gcli: Gcli, metalake_server: MetalakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gcli("catalog", "details", "--catalog", "none").code == 4
    missing = gcli("catalog", "list", "--metalake", "none")
    assert missing.code == 4 and "none" in missing.err and "gcli metalake list" in missing.err
    gcli.ok("role", "create", "--name", "r")
    taken = gcli("role", "create", "--name", "r")
    assert taken.code == 5 and taken.err.count("\n") == 1 and "Traceback" not in taken.err
    monkeypatch.setenv("METALAKE_PASSWORD", "wrong")
    refused = gcli("catalog", "list")
    assert refused.code == 3 and "wrong" in refused.err
    monkeypatch.setenv("METALAKE_URL", f"{metalake_server.url}/elsewhere")
    assert gcli("catalog", "list").code == 1


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ((404, b"<html>Not found</html>"), 1, "answered 404, and not as Metalake does"),
        (b"<html>Welcome</html>", 1, "answered 200, and not as Metalake does"),
        ([], 1, "answered 200, and not as Metalake does"),
        ({"hello": "world"}, 1, "The server's answer has no 'identifiers'"),
        ((302, {"moved": True}), 1, "answered 302, and not as Metalake does"),
        ((500, {"code": 1002, "message": "It failed:\n\x1b[31mbadly"}), 1, "It failed: \\x1b[31mbadly"),
        ((502, {"code": 1007, "message": "Glue does not answer."}), 6, "Glue does not answer."),
        ((429, {"code": 1000, "message": "Too many attempts."}), 3, "Too many attempts."),
        ((409, {"error": {"message": "It exists.", "type": "AlreadyExistsException", "code": 409}}), 5, "It exists."),
        (
            (404, {"code": 1003, "type": "NoSuchMetalakeException", "message": "No metalake m."}),
            4,
            "gcli metalake list",
        ),
    ],
)
def test_what_a_server_answers_wrong_is_one_line(
    alone: Gcli, stand_in: StandIn, answer: object, code: int, words: str
) -> None:
    stand_in.answers[CATALOGS] = answer
    stand_in.headers = {"Location": f"{stand_in.url}/login"}
    ended = alone("catalog", "list")
    assert (ended.code, ended.out, ended.err.count("\n")) == (code, "", 1)
    assert ended.err.startswith("gcli: ") and words in ended.err
    assert not any("login" in each for each in stand_in.asked)  # nobody else is shown the credential


def test_a_server_without_tls_is_told_from_a_wrong_certificate(alone: Gcli, stand_in: StandIn) -> None:
    ended = alone("catalog", "list", "--url", stand_in.url.replace("http", "https"))
    assert (ended.code, ended.err.count("\n")) == (6, 1) and "does not speak TLS: is it http://?" in ended.err


def test_what_is_not_there_is_named_whole(alone: Gcli, stand_in: StandIn) -> None:
    path = "DELETE /api/metalakes/m/catalogs/lake/schemas/a%3Ab/tables/t"
    stand_in.answers |= {path: {"code": 0, "dropped": False}, "GET /api/tokens": {"tokens": [{"id": 7, "name": "l"}]}}
    ended = alone("table", "drop", "lake", "a:b", "t", "--yes")
    assert (ended.code, ended.err) == (4, "gcli: Table lake.a:b.t does not exist.\n")
    assert alone("token", "drop", "none").err == "gcli: You have no token none. See gcli token list.\n"  # asks nothing
    nothing: dict[str, object] = {"objects": [], "roles": [], "users": [], "groups": [], "isCut": False}
    stand_in.answers["GET /api/metalakes/m/search"] = {"results": nothing}
    assert alone("search", "x").err == "gcli: Nothing that you may see is named like 'x'.\n"
    stand_in.answers["DELETE /api/tokens/7"] = {"code": 0, "revoked": True}
    assert alone.ok("token", "drop", "l", "-y").err == alone.ok("token", "drop", "7", "-y").err == "Revoked token l.\n"


def test_an_answer_that_breaks_off_is_one_line(alone: Gcli, stand_in: StandIn) -> None:
    stand_in.answers[CATALOGS] = b'{"catalogs": ['
    stand_in.headers = {"Content-Length": "100"}
    ended = alone("catalog", "list")
    assert (ended.code, ended.err.count("\n")) == (6, 1) and "broke off" in ended.err


@pytest.mark.parametrize("name", ["a/b", "50%", "a:b", "a b", "a?b#c", "%2e%2e", "ü", "a.b", "...", "'"])
def test_odd_names_reach_what_they_name(alone: Gcli, stand_in: StandIn, name: str) -> None:
    alone("catalog", "drop", "--yes", "--catalog", name)
    assert stand_in.asked[0] == f"DELETE /api/metalakes/m/catalogs/{quote(name, safe='')}"


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_what_is_no_name_asks_nothing(alone: Gcli, stand_in: StandIn, name: str) -> None:
    ended = alone("catalog", "drop", "--yes", "--catalog", name)  # ".." would drop the metalake
    assert (ended.code, ended.err, stand_in.asked) == (2, f"gcli: '{name}' is no name.\n", [])


def test_bytes_that_are_no_text_are_one_line(alone: Gcli, stand_in: StandIn) -> None:
    ended = alone("catalog", "drop", "--yes", "--catalog", "\udcff")
    assert (ended.code, ended.err, stand_in.asked) == (2, "gcli: A name holds bytes that are no UTF-8.\n", [])


def test_pages_are_followed_as_far_as_they_are_wanted(alone: Gcli, stand_in: StandIn) -> None:
    def page(query: dict[str, str]) -> dict[str, object]:
        start, size = int(query.get("pageToken", 0)), int(query["limit"])
        end = min(start + size, 2500)
        users = [{"user": f"u{number}", "privileges": []} for number in range(start, end)]
        return {"access": users} | ({"nextPageToken": str(end)} if end < 2500 else {})

    stand_in.answers["GET /api/metalakes/m/access/objects/catalog/lake"] = page
    asked = ("access", "list", "--type", "catalog", "--object", "lake")
    for limit, requests in ((5, 1), (1000, 1), (1001, 2), (2000, 2), (9000, 3), (None, 3)):
        stand_in.asked.clear()
        some = [] if limit is None else ["--limit", str(limit)]
        rows = alone.json(*asked, *some)
        assert [each["user"] for each in rows] == [f"u{number}" for number in range(min(limit or 2500, 2500))]
        assert len(stand_in.asked) == requests
    pages = {None: ["a", "b"], "2": ["c", "d"]}
    stand_in.answers[CATALOGS] = lambda query: {
        "catalogs": [{"name": name} for name in pages[query.get("pageToken")]],
        "nextPageToken": None if "pageToken" in query else "2",
    }  # a list that has pages in a newer server only
    assert [each["name"] for each in alone.json("catalog", "list", "--limit", "3")] == ["a", "b", "c"]
    stand_in.asked.clear()
    assert len(alone.json("catalog", "list", "--limit", "2")) == 2 and len(stand_in.asked) == 1


def test_json_and_yaml_are_what_the_server_says(alone: Gcli, stand_in: StandIn) -> None:
    catalogs = [{"name": "é: - #'\"", "properties": {"a": "1\n\x1b", "no": "yes"}}, {"name": "b\x1b", "comment": None}]
    catalogs.append({"name": "1e3"})
    stand_in.answers[CATALOGS] = {"catalogs": catalogs}
    stand_in.answers[f"{CATALOGS}/b"] = {"catalog": catalogs[0]}
    for words in (("catalog", "list"), ("catalog", "details", "--catalog", "b")):
        expected = catalogs if words[1] == "list" else catalogs[0]
        assert alone.json(*words) == yaml.safe_load(alone.ok(*words, "--output", "yaml").out) == expected
        assert "\x1b" not in alone.ok(*words).out
    assert alone.ok("catalog", "list", "-o", "json").out.count("\n") == 5  # a row on each line
    assert "- name: '1e3'\n" in alone.ok("catalog", "list", "-o", "yaml").out
    stand_in.answers[CATALOGS] = {"catalogs": []}
    assert (alone.json("catalog", "list"), alone.ok("catalog", "list", "-o", "yaml").out) == ([], "[]\n")
    assert alone.ok("catalog", "list").out == ""


def test_a_closed_pipe_is_no_error(stand_in: StandIn) -> None:
    stand_in.answers[CATALOGS] = {"catalogs": [{"name": f"catalog_{number:06}"} for number in range(20_000)]}
    for output in ("json", "table"):
        line = f"{' '.join(PROGRAM)} catalog list --output {output} | head -n 1"
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {line}"], cwd=REPOSITORY, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")


def test_an_interrupt_of_a_running_command_is_one_line(alone: Gcli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("metalake_client.rest.Client._send", interrupted)
    ended = alone("catalog", "list", "--metalake", "m")
    assert (ended.code, ended.out, ended.err) == (130, "", "gcli: Interrupted.\n")


def test_a_terminal_that_lacks_a_character_gets_it_spelled(stand_in: StandIn) -> None:
    stand_in.answers[CATALOGS] = {"catalogs": [{"name": "é"}]}
    command = [*PROGRAM, "catalog", "list"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()[4], done.stderr) == (0, "\\xe9", "")


def test_what_nobody_foresaw_is_one_line(alone: Gcli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr("metalake_client.rest.Client._send", broken)
    ended = alone("catalog", "list", "--metalake", "m")
    assert (ended.code, ended.err.count("\n")) == (1, 1) and "secret" not in ended.err
    assert "ZeroDivisionError" in ended.err and "METALAKE_TRACEBACK" in ended.err
    monkeypatch.setenv("METALAKE_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        alone("catalog", "list", "--metalake", "m")
