"""Wishes in words: what is read out of them, and that only objects that one may grant on are offered."""

from __future__ import annotations

import pytest

from access.explain.search import Phrase, objects_meant, read_phrase
from metalake.levels import Level
from tests.authz.small_world import World


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("analyst reads travel:nyc", Phrase("analyst", Level.READER, "travel:nyc")),
        ("  group:sales may write lake.travel ", Phrase("group:sales", Level.WRITER, "lake.travel")),
        ("Ada Lovelace can manage x", Phrase("Ada Lovelace", Level.MANAGER, "x")),
        ("mia READ lake.A.b reads c", Phrase("mia", Level.READER, "lake.A.b reads c")),
        ("analyst reads", None),
        ("reads travel", None),
        ("analyst reading travel", None),
        ("travel:nyc", None),
        ("", None),
    ],
)
def test_a_phrase_has_a_person_a_verb_and_an_object(text: str, phrase: Phrase | None) -> None:
    assert read_phrase(text) == phrase


def test_a_long_text_is_none() -> None:
    assert read_phrase(f"mia reads {'a' * 600}") is None


def meant(world: World, name: str, text: str) -> list[tuple[str, str, str]]:
    return [(one.who, one.level.value, one.on.name) for one in objects_meant(world.actor(name), text)]


@pytest.mark.django_db
def test_the_owner_is_offered_what_is_named(world: World) -> None:
    assert meant(world, "olga", "mia reads A:B") == [("mia", "reader", "B")]
    assert ("mia", "writer", "lake") in meant(world, "olga", "mia writes lake")
    assert meant(world, "olga", "mia reads nothing") == []


@pytest.mark.django_db
def test_only_what_one_may_grant_on_is_offered(world: World) -> None:
    assert meant(world, "mia", "nils reads lake") == []
    world.give("mia", "use_catalog@lake", "use_schema@lake.A", "select_table@lake.A")
    assert meant(world, "mia", "nils reads lake.A") == [], "she sees it, and may not grant there"
    world.give("mia", "manage_grants@lake.A:B")
    assert meant(world, "mia", "nils reads lake.A:B") == [("nils", "reader", "B")]
