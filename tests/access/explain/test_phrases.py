"""What is typed into the palette, as what it asks for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from access.explain.phrases import Act, Phrase, read_phrase
from metalake.levels import Level
from metalake.privileges import Privilege

NOW = datetime(2026, 11, 25, 9, 30, tzinfo=UTC)  # a Wednesday
READER, WRITER, MANAGER = Level
GRANT, WHO, WHY = Act
WEEK = NOW + timedelta(days=7)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("analyst reads travel:nyc", Phrase(GRANT, "travel:nyc", "analyst", READER)),
        ("  group:sales may write lake.travel ", Phrase(GRANT, "lake.travel", "group:sales", WRITER)),
        ("Ada Lovelace can manage x", Phrase(GRANT, "x", "Ada Lovelace", MANAGER)),
        ("mia READ lake.A.b reads c", Phrase(GRANT, "lake.A.b reads c", "mia", READER)),
        ("analyst reads", None),
        ("reads travel", None),
        ("analyst reading travel", None),
        ("travel:nyc", None),
        ("", None),
        ("who reads travel", Phrase(WHO, "travel", level=READER)),
        ("Who can write a b", Phrase(WHO, "a b", level=WRITER)),
        ("who has access to x", Phrase(WHO, "x")),
        ("who travels", None),
        ("why rita travel:nyc", Phrase(WHY, "travel:nyc", "rita", READER)),
        ("why can't Ada Lovelace write x", Phrase(WHY, "x", "Ada Lovelace", WRITER)),
        ("why rita may not manage x", Phrase(WHY, "x", "rita", MANAGER)),
        ("why", None),
        ("grant travel", Phrase(GRANT, "travel", level=READER)),
        ("grant rita reads x for a week", Phrase(GRANT, "x", "rita", READER, ends=WEEK)),
        ("grant writer on x to group:a b", Phrase(GRANT, "x", "group:a b", WRITER)),
        ("grant modify_table on x", Phrase(GRANT, "x", privilege=Privilege.MODIFY_TABLE)),
        ("grant", None),
    ],
)
def test_a_phrase_names_an_object_and_perhaps_a_person(text: str, phrase: Phrase | None) -> None:
    assert read_phrase(text, NOW) == phrase


@pytest.mark.parametrize(
    ("end", "ends"),
    [
        ("for a week", "2026-12-02T09:30"),
        ("for 2 hours", "2026-11-25T11:30"),
        ("for an hour", "2026-11-25T10:30"),
        ("for 9999 years", ""),
        ("until Friday", "2026-11-28T00:00"),
        ("until fri", "2026-11-28T00:00"),
        ("until wednesday", "2026-12-03T00:00"),
        ("until today", "2026-11-26T00:00"),
        ("until tomorrow", "2026-11-27T00:00"),
        ("until 2026-12-31", "2027-01-01T00:00"),
        ("until 2026-12-31T18:00+02:00", "2026-12-31T16:00"),
        ("until 9999-12-31", ""),
        ("until 2026-02-30", ""),
        ("until whenever", ""),
        ("until f", ""),
    ],
)
def test_an_end_is_the_end_of_its_day_or_so_long_from_now(end: str, ends: str) -> None:
    """What is not understood is told back, and the rest is read all the same."""
    phrase = read_phrase(f"rita reads travel {end}", NOW)
    assert phrase
    assert (phrase.what, phrase.who) == ("travel", "rita")
    assert phrase.ends == (datetime.fromisoformat(f"{ends}Z") if ends else None)
    assert phrase.unread == ("" if ends else end.partition(" ")[2])


def test_a_long_text_is_none() -> None:
    assert read_phrase(f"mia reads {'a' * 600}", NOW) is None
