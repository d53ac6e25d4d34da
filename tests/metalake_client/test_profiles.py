"""Profiles and secrets of `gcli`: where they come from, and that they go nowhere else."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from metalake_client.cli.app import app
from tests.metalake_client.gcli import Gcli
from tests.metalake_client.stand_in import StandIn

SECRET = "s3cret-that-nobody-sees"


def test_profiles_give_what_options_leave_out(alone: Gcli, profiles_file: Path) -> None:
    assert alone.ok("profile", "list").err == "There are none.\n"
    alone.ok("profile", "set", "work", "--url", "http://127.0.0.1:9", "--metalake", 'odd "name"', "--user", "rita")
    alone.ok("profile", "set", "home", "--url", "http://127.0.0.1:10")
    assert [each["current"] for each in alone.json("profile", "list")] == [False, True]
    lacks = alone("catalog", "list")
    assert lacks.code == 3 and "rita" in lacks.err and "METALAKE_TOKEN" in lacks.err
    alone.ok("profile", "use", "home")
    assert alone("profile", "use", "none").code == 4
    assert "http://127.0.0.1:10" in alone("metalake", "list").err
    assert "http://127.0.0.1:11" in alone("metalake", "list", "--url", "http://127.0.0.1:11").err
    alone.ok("profile", "remove", "home")
    assert [each["metalake"] for each in alone.json("profile", "list")] == ['odd "name"']
    profiles_file.write_text("[work]\npassword = 'x'\n")
    wrong = alone("profile", "list")
    assert wrong.code == 2 and "password" in wrong.err
    profiles_file.write_text("[work")
    assert str(profiles_file) in alone("profile", "list").err


def test_a_file_that_cannot_be_written_stays_as_it_was(
    alone: Gcli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone.ok("profile", "set", "work", "--url", "http://127.0.0.1:9")
    file = tmp_path / "folder" / "profiles.toml"
    before = file.read_text()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        refused = alone("profile", "set", "work", "--url", "http://127.0.0.1:10")
    assert (refused.code, refused.err) == (2, f"gcli: {file} cannot be written: No space left on device.\n")
    assert file.read_text() == before and [each.name for each in file.parent.iterdir()] == [file.name]
    monkeypatch.setenv("METALAKE_PROFILES", str(file / "below" / "a" / "file"))  # unwritable for root, too
    refused = alone("profile", "set", "work")
    assert refused.code == 2 and refused.err.count("\n") == 1


def test_no_secret_is_an_argument() -> None:
    group = typer.main.get_command(app)
    context = typer.Context(group)
    options = set[str]()
    for name in group.list_commands(context):  # type: ignore[attr-defined]
        family = group.get_command(context, name)  # type: ignore[attr-defined]
        for each in getattr(family, "commands", {name: family}).values():
            options |= {spelling for one in each.params if not getattr(one, "is_flag", False) for spelling in one.opts}
    assert "--user" in options and options.isdisjoint({"--password", "--token", "--secret"})


class Keyring(SimpleNamespace):
    """What the library keyring is to `gcli`."""

    def __init__(self) -> None:
        super().__init__(kept={})

    def get_password(self, service: str, name: str) -> str | None:
        return self.kept.get((service, name))

    def set_password(self, service: str, name: str, secret: str) -> None:
        self.kept[service, name] = secret

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[service, name]


def at_a_prompt(monkeypatch: pytest.MonkeyPatch, answer: object) -> None:
    """Somebody sits there, and types this; an exception is what they do in its place."""

    def typed(prompt: str = "") -> str:
        if isinstance(answer, BaseException):
            raise answer
        return str(answer)

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True, readline=typed))
    monkeypatch.setattr("getpass.getpass", typed)


def test_the_keyring_keeps_what_was_typed(
    alone: Gcli, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, profiles_file: Path
) -> None:
    keyring = Keyring()
    monkeypatch.setattr("metalake_client.profiles._keyring", lambda: keyring)
    stand_in.answers["GET /api/authn/me"] = {"code": 0, "principal": "rita"}
    alone.ok("profile", "set", "work", "--url", stand_in.url, "--user", "rita")
    at_a_prompt(monkeypatch, SECRET)
    said = alone.ok("profile", "login", "work")
    assert "You are rita" in said.err and SECRET not in said.err + profiles_file.read_text()
    assert list(keyring.kept.values()) == [SECRET]
    at_a_prompt(monkeypatch, AssertionError("nobody is asked now"))
    assert alone.ok("server", "whoami").out == "principal\trita\n"
    alone.ok("profile", "logout", "work")
    assert not keyring.kept
    at_a_prompt(monkeypatch, SECRET)
    refusal = {"code": 1011, "type": "UnauthorizedException", "message": "The token is unknown, revoked or expired."}
    stand_in.answers["GET /api/authn/me"] = (401, refusal)
    refused = alone("profile", "login", "work")
    assert (refused.code, keyring.kept) == (3, {}) and SECRET not in refused.err
    monkeypatch.setattr("metalake_client.profiles._keyring", lambda: None)
    stand_in.answers["GET /api/authn/me"] = {"code": 0, "principal": "rita"}
    lacks = alone("profile", "login", "work")
    assert lacks.code == 2 and "METALAKE_TOKEN" in lacks.err and SECRET not in lacks.err


@pytest.mark.parametrize("done", [KeyboardInterrupt(), EOFError()])
def test_whoever_leaves_a_prompt_changes_nothing(
    alone: Gcli, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, done: BaseException
) -> None:
    monkeypatch.delenv("CI", raising=False)
    at_a_prompt(monkeypatch, done)
    is_interrupt = isinstance(done, KeyboardInterrupt)
    left = alone("catalog", "list", "--user", "rita")  # asks for a password
    assert (left.code, left.err.count("gcli: "), stand_in.asked) == (130 if is_interrupt else 2, 1, [])
    if is_interrupt:
        left = alone("catalog", "drop", "--catalog", "lake")  # asks whether
        assert left.code == 130 and left.err.endswith("gcli: Interrupted.\n") and not stand_in.asked


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("YES\n", 0), ("n\n", 2), ("\n", 2), ("", 2)])
def test_a_drop_asks(alone: Gcli, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, answer: str, code: int) -> None:
    monkeypatch.delenv("CI", raising=False)
    at_a_prompt(monkeypatch, answer)
    stand_in.answers["DELETE /api/metalakes/m/catalogs/lake"] = {"code": 0, "dropped": True}
    ended = alone("catalog", "drop", "--catalog", "lake")
    assert ended.code == code and bool(stand_in.asked) == (code == 0)
    assert ended.err.startswith("Drop catalog lake? [y/N] ")


@pytest.mark.parametrize("token", ["two words", "broken\nin two", "pässword"])
def test_what_cannot_be_a_token_is_not_shown(
    alone: Gcli, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("METALAKE_TOKEN", token)
    refused = alone("catalog", "list")
    assert (refused.code, stand_in.asked) == (3, []) and token.split()[0] not in refused.err
    monkeypatch.setenv("METALAKE_TOKEN", "")
    refused = alone("metalake", "list", "--url", f"http://rita:{SECRET}@127.0.0.1:9")
    assert refused.code == 2 and SECRET not in refused.err


def test_a_secret_is_read_once_from_the_environment(
    alone: Gcli, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METALAKE_TOKEN", SECRET)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    stand_in.answers["GET /api/metalakes/m/catalogs"] = (500, {"code": 1002, "message": "The server failed."})
    failed = alone("catalog", "list")
    assert (failed.code, failed.err) == (1, "gcli: The server failed.\n")
