"""Saving the settings of a catalog changes what was changed in the form, and nothing else, whoever else changes it."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client

from catalogs import vault
from catalogs.models import Catalog
from catalogs.secrets import MASK
from catalogs.services import catalogs
from catalogs.services.alterations import Alteration
from tests.demo import actor
from tests.frontend.conftest import add_outside
from tests.frontend.pages.test_catalogs import error_at, send, settings_of
from tests.providers.world import World

CANARY = "canary-90be1c"
ODD = {
    "note": "line one\nline two",
    "a=b": "c",
    "sep": " , ",
    "page": "one\x0ctwo",
    "return": "one\rtwo",
    "key=s3.secret-access-key": CANARY,
}
PLAIN = {"region": "eu=west", "empty": "", "owner-team": "met", "markup": "</textarea><b>", "token": CANARY}


class Browser(HTMLParser):
    """What a browser would send of a form that nobody touched."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.sent: dict[str, str] = {}
        self.area = self.choice = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        name, type_ = given.get("name", ""), given.get("type")
        if "disabled" in given:
            return
        if tag == "input" and name and type_ != "checkbox":
            self.sent[name] = (given.get("value") or "").replace("\r", "").replace("\n", "")
            if type_ == "number" and not self.sent[name].removeprefix("-").replace(".", "", 1).isdecimal():
                self.sent[name] = ""
        elif tag == "textarea":
            self.area, self.sent[name] = name, ""
        elif tag == "select":
            self.choice = name
        elif tag == "option" and (self.choice not in self.sent or "selected" in given):
            self.sent[self.choice] = given.get("value") or ""

    def handle_data(self, data: str) -> None:
        if self.area:
            self.sent[self.area] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            shown = self.sent[self.area].replace("\r\n", "\n").replace("\r", "\n").removeprefix("\n")
            self.sent[self.area] = shown.replace("\n", "\r\n")
            self.area = ""


def opened(client: Client, path: str) -> dict[str, str]:
    page = client.get(path).content.decode()
    assert CANARY not in page
    return Browser(page).sent | {"act": "keep"}


def alter(**properties: str | None) -> None:
    """Somebody else does."""
    change = Alteration(properties=tuple((name.replace("_", "-"), value) for name, value in properties.items()))
    catalogs.alter_catalog(actor("admin"), "demo", "station", change)


def kept() -> tuple[str | None, dict[str, str]]:
    row = Catalog.objects.get(name="station")
    return row.comment, vault.properties_of(row.pk)


@pytest.mark.parametrize("act", ["keep", "test"])
@pytest.mark.parametrize("part", [True, False])
def test_a_form_from_before_another_s_change_saves_nothing(
    admin: Client, world: World, act: str, part: bool, tmp_path: Any
) -> None:
    add_outside(world)
    path = settings_of("station")
    form = opened(admin, path)
    new = str(World(tmp_path / "new.json").path)
    alter(world=new, team_secret_key=CANARY, owner_team="met")
    before = kept()
    typed = form | {"comment": "Weather", "others": "mine=yes", "name": "no way!", "act": act}
    status, page, _ = send(admin, path, typed, part=part)
    assert (status, kept()) == (422, before)
    assert "changed meanwhile by somebody else; nothing was saved" in page
    assert f'<a href="{path}"' in page, "the way forward"
    assert "The connection works" not in page and "not right yet" not in page and CANARY not in page
    assert error_at(page, "name") == "", "nothing is judged by what the catalog is now"
    if not part:
        again = Browser(page).sent
        assert (again["comment"], again["others"]) == ("Weather", "mine=yes"), "what was typed stays"
        assert send(admin, path, again | {"name": "station", "act": "keep"})[0] == 422, "and it is still of before"
    anew = opened(admin, path) | {"comment": "Weather"}
    assert send(admin, path, anew)[0] == 200
    assert kept() == ("Weather", {"world": new, "team-secret-key": CANARY, "owner-team": "met"})


@pytest.mark.parametrize("version", [None, "", "1 ", "one", "0"])
def test_a_form_that_does_not_say_what_it_was_made_from_saves_nothing(
    admin: Client, world: World, version: str | None
) -> None:
    add_outside(world, owner="met")
    path = settings_of("station")
    form = opened(admin, path) | {"others": ""}
    del form["version"]
    status, page, _ = send(admin, path, form if version is None else form | {"version": version})
    assert (status, "nothing was saved" in page) == (422, True)
    assert send(admin, path, {})[0] == 422
    assert kept()[1]["owner"] == "met"


def test_what_lines_cannot_say_is_kept_to_the_letter(admin: Client, world: World) -> None:
    add_outside(world, **ODD, **PLAIN)
    before = kept()[1]
    path = settings_of("station")
    form = opened(admin, path)
    lines = sorted({**PLAIN, "token": MASK}.items())
    assert form["others"] == "\r\n".join(f"{key}={value}" for key, value in lines)
    page = admin.get(path).content.decode()
    for key in ODD:
        assert f"<dt>{key}</dt>" in page
    assert "<dd>line one\nline two</dd>" in page and f"<dt>key=s3.secret-access-key</dt><dd>{MASK}</dd>" in page
    assert send(admin, path, form)[0] == 200
    assert Catalog.objects.get(name="station").version == int(form["version"]), "nothing was changed"
    assert send(admin, path, form | {"comment": "Weather"})[0] == 200
    assert kept() == ("Weather", before)
    fewer = opened(admin, path) | {"others": f"token={MASK}\r\nowner-team=sea\r\nnew=1"}
    assert send(admin, path, fewer)[0] == 200
    assert kept()[1] == {"world": str(world.path), **ODD, "token": CANARY, "owner-team": "sea", "new": "1"}
    taken = opened(admin, path) | {"others": "new=1\r\nnote=mine"}
    assert "Line 2: note is kept as shown below" in error_at(send(admin, path, taken)[1], "others")


@pytest.mark.parametrize("comment", ["one\ntwo\n\nthree", "\n one\r\ntwo\rthree ", " padded "])
def test_a_comment_with_line_breaks_survives(admin: Client, world: World, comment: str) -> None:
    add_outside(world)
    said = Alteration(comment=comment, sets_comment=True)
    catalogs.alter_catalog(actor("admin"), "demo", "station", said)
    path = settings_of("station")
    form = opened(admin, path)
    assert send(admin, path, form | {"others": "region=eu"})[0] == 200
    assert kept() == (comment, {"world": str(world.path), "region": "eu"})
    assert send(admin, path, opened(admin, path) | {"comment": "first\r\nsecond"})[0] == 200
    assert kept()[0] == "first\nsecond"


@pytest.mark.store
def test_a_field_that_is_left_alone_is_not_spelt_anew(admin: Client, world: World) -> None:
    """As what was set over the API, or by an older release, may be spelt."""
    add_outside(world, **{"cache-ttl": "0060"})
    row = Catalog.objects.get(name="station")
    row.properties |= {"world": f" {world.path}\n", "nested-namespaces": "True"}
    row.save(update_fields=["properties"])
    path = settings_of("station")
    form = opened(admin, path)
    assert (form["property-cache-ttl"], form["property-nested-namespaces"]) == ("0060", "True")
    assert "must be" in error_at(send(admin, path, form | {"comment": "x"})[1], "property-nested-namespaces")
    assert send(admin, path, form | {"property-nested-namespaces": "", "comment": "y"})[0] == 200
    assert kept() == ("y", {"world": f" {world.path}\n", "cache-ttl": "0060"})


@pytest.mark.parametrize("old", ["60.0", "+60", "soon"])
def test_a_number_that_is_not_valid_any_more_is_shown_and_mended(admin: Client, world: World, old: str) -> None:
    add_outside(world)
    row = Catalog.objects.get(name="station")
    row.properties |= {"cache-ttl": old}
    row.save(update_fields=["properties"])
    path = settings_of("station")
    form = opened(admin, path)
    assert form["property-cache-ttl"] == old
    assert "hole number" in error_at(send(admin, path, form)[1], "property-cache-ttl")
    assert send(admin, path, form | {"property-cache-ttl": "60"})[0] == 200
    assert kept()[1]["cache-ttl"] == "60"
