"""How people type a command: names as words, options before it, one spelling of whom it is about; and what they see."""

from __future__ import annotations

import io
from collections import Counter

import pytest

from metalake_client.cli import output
from metalake_client.cli.app import main
from metalake_client.cli.command_line import FORMER
from metalake_client.cli.kinds import PEOPLE
from tests.metalake_client.cli.test_completion import completed
from tests.metalake_client.gcli import Gcli
from tests.metalake_client.stand_in import StandIn

M = "/api/metalakes/m"
TABLE = f"GET {M}/catalogs/lake/schemas/sales/tables/orders"


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("catalog details lake", f"GET {M}/catalogs/lake"),
        ("catalog details --name lake", f"GET {M}/catalogs/lake"),
        ("schema list lake", f"GET {M}/catalogs/lake/schemas"),
        ("table details lake sales orders", TABLE),
        ("table details --catalog lake sales orders", TABLE),
        ("table details orders --schema sales --catalog lake", TABLE),
        ("table details lake -o json sales --table orders", TABLE),
        ("table details lake sales -- orders", TABLE),
        ("view version lake sales v 3", f"GET {M}/catalogs/lake/schemas/sales/views/v/versions/3"),
        ("user details rita", f"GET {M}/users/rita"),
        ("role drop readers --yes", f"DELETE {M}/roles/readers"),
        ("owner details schema lake.sales", f"GET {M}/owners/schema/lake.sales"),
        ("grant add readers catalog lake --privilege X", f"PUT {M}/permissions/roles/readers/catalog/lake/grant"),
        ("role assign readers --for-group g", f"PUT {M}/permissions/groups/g/grant"),
        ("job log 7", f"GET {M}/jobs/runs/7/logs?offset=0"),
        ("search orders", f"GET {M}/search?q=orders"),
        ("token drop 7 --yes", "GET /api/tokens"),
        ("metalake details other", "GET /api/metalakes/other"),
        ("-m other metalake details m", f"GET {M}"),
        ("-m other catalog details lake", "GET /api/metalakes/other/catalogs/lake"),
        ("catalog -m other details lake", "GET /api/metalakes/other/catalogs/lake"),
        ("-m other catalog details -m m lake", f"GET {M}/catalogs/lake"),
    ],
)  # fmt: skip
def test_names_are_typed_as_words(alone: Gcli, stand_in: StandIn, line: str, asked: str) -> None:
    alone(*line.split())
    assert stand_in.asked[0].replace("&exact", "?").partition("?exact")[0] == asked


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("table details lake sales", "'--table'"),
        ("-m m metalake drop --yes", "'--metalake'"),
        ("table details lake sales orders more", "(more)"),
        ("view version lake sales v three", "'--version'"),
        ("role assign readers", "--for-user and --for-group"),
        ("access effective", "--for-user and --for-group and --for-role"),
    ],
)
def test_too_few_or_too_many_words_ask_nothing(alone: Gcli, stand_in: StandIn, line: str, words: str) -> None:
    ended = alone(*line.split())
    assert (ended.code, stand_in.asked, ended.err.count("\n")) == (2, [], 1) and words in ended.err


CHANGES = ("role assign r", "role unassign r", "owner set catalog lake")
ABOUT = (
    ("access explain table lake.s.t --privilege SELECT_TABLE", "user", "--about"),
    ("access check table lake.s.t --privilege SELECT_TABLE", "user", "--about"),
    ("access seen", "user", "--about"),
    *((f"access {verb}", kind, f"--of-{kind}") for verb in ("effective", "ways catalog c") for kind in PEOPLE),
    *((line, kind, f"--to-{kind}") for line in CHANGES for kind in ("user", "group")),
    ("token create laptop", "user", "--for"),
)  # fmt: skip


@pytest.mark.parametrize(("line", "kind", "former"), ABOUT)
def test_whom_it_is_about_has_one_spelling_and_former_ones_work(
    alone: Gcli, stand_in: StandIn, line: str, kind: str, former: str
) -> None:
    for spelling in (f"--for-{kind}", former):
        alone(*line.split(), spelling, "rita")
        alone(*line.split(), f"{spelling}=rita")
    asked = [each for each in stand_in.asked if not each.endswith("/version")]
    bodies = list(map(str, stand_in.bodies))
    assert [asked.count(asked[0]), bodies.count((bodies or [""])[0])] == [4, len(bodies)]
    assert "rita" in asked[0] + str(bodies[:1])
    shown = alone.ok(*line.split()[:2], "--help").out.split()
    assert f"--for-{kind}" in shown and not {each for many in FORMER.values() for each in many} & set(shown)


def test_how_to_print_stands_before_the_command_too(alone: Gcli, stand_in: StandIn) -> None:
    stand_in.answers[f"GET {M}/catalogs"] = {"catalogs": [{"name": "lake"}]}
    printed = {alone.ok(*line.split()).out for line in ("-o json catalog list", "catalog list -o json")}
    assert printed == {'[\n  {"name":"lake"}\n]\n'}
    assert alone.ok("-o", "yaml", "catalog", "list", "-o", "json").out in printed  # the nearer one counts
    alone.ok("--url", stand_in.url, "profile", "set", "work")
    assert alone.ok("--output", "json", "profile", "list").data[0]["url"] == stand_in.url


def test_a_user_beside_a_token_is_said_to_be_ignored(
    alone: Gcli, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METALAKE_TOKEN", "mlk_x")
    stand_in.answers["GET /api/authn/me"] = {"principal": "rita"}
    for line in ("server whoami --user bo", "--user bo server whoami"):
        ended = alone.ok(*line.split())
        assert ended.out == "principal\trita\n" and ended.err.count("\n") == 1
        assert ended.err.startswith("--user bo is ignored")
    monkeypatch.setenv("METALAKE_USER", "bo")  # of the environment, where both may well be
    assert not alone.ok("server", "whoami").err


@pytest.mark.parametrize("width", [20, 79, 200])
def test_details_begin_with_the_name_and_nothing_is_cut_off(
    alone: Gcli, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """A terminal of any width shows each sign of each value; a pipe has them on one line."""
    place = "s3://" + "x" * 300
    columns = [{name: name * 40 for name in "ABCDEFGHIJ"}]
    stand_in.answers[f"GET {M}/catalogs/lake"] = {
        "catalog": {"id": 1, "properties": {"warehouse": place}, "name": "lake"}
    }
    assert alone.ok("catalog", "details", "lake").out == f"name\tlake\nid\t1\nproperties\twarehouse={place}\n"
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "dumb")
    assert main(["catalog", "details", "lake"]) == 0
    output.print_rows(columns, list("ABCDEFGHIJ"), output.Format.TABLE)
    shown = Counter(terminal.getvalue())
    assert shown["x"] == 300 and "…" not in shown and [shown[each] for each in "ABCDEFGHIJ"] == [41] * 10


def test_a_missing_table_does_not_exist_for_check_as_for_explain(gcli: Gcli) -> None:
    gcli.ok("catalog", "create", "lake", "--provider", "lakehouse-iceberg")
    for verb in ("check", "explain"):
        ended = gcli("access", verb, "table", "lake.sales.orders", "--privilege", "SELECT_TABLE")
        assert (ended.code, ended.out) == (4, "") and "does not exist" in ended.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_words_complete_as_options_do(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shell: str
) -> None:
    lists = {"catalogs": ["lake", "lab"], "catalogs/lake/schemas": ["sales"], "users": ["rita"], "roles": ["readers"]}
    for path, names in lists.items():
        stand_in.answers[f"GET {M}/{path}"] = {"identifiers": [{"name": each} for each in names]}
    stand_in.answers[f"GET {M}/catalogs/lake/schemas/sales/tables"] = {"identifiers": [{"name": "orders"}]}
    stand_in.answers["GET /configs"] = {"gravitino.schema.separator": ":"}

    def ask(line: str) -> str:
        return completed(shell, line, monkeypatch, capsys, line.split(" "))

    assert "lab" in ask("gcli catalog details l") and "lab" not in ask("gcli table details lake s")
    for line in ("table details lake sales ", "table details lake --schema sales o", "-m m table details lake sales "):
        assert "orders" in ask(f"gcli {line}")
    assert "orders" not in ask("gcli table details lake sales orders ")
    for spelling in ("--for-user", "--to-user"):
        answered = ask(f"gcli role assign {spelling} r")
        assert "rita" in answered and "readers" not in answered
    assert "readers" in ask("gcli role assign --for-user rita r")
    spellings = ask("gcli role assign --")
    assert "--for-user" in spellings and "--to-user" not in spellings
