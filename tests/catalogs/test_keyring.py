"""The file of master keys: made once, read with care, changed in one step."""

from __future__ import annotations

import logging
import stat
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from catalogs import keyring
from metalake.errors import ProviderUnavailable

KEY = b64encode(b"k" * 32).decode()
OTHER = b64encode(b"o" * 32).decode()


@pytest.fixture
def ring(tmp_path: Path, settings: Any) -> Path:
    path = tmp_path / "keys" / "ring"
    settings.METALAKE_SECRET_KEYS_FILE = path
    return path


def write(ring: Path, text: str) -> None:
    ring.parent.mkdir(exist_ok=True)
    ring.write_text(text)
    ring.chmod(0o600)


def test_it_is_made_once_for_its_owner_alone(ring: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: keyring.make(), range(8)))
    (file,) = ring.parent.iterdir()
    assert file == ring
    assert stat.S_IMODE(ring.stat().st_mode) == 0o600
    (key_id,) = keyring.ids()
    assert len(keyring.key_of(key_id).key) == 32
    before = ring.read_text()
    keyring.make()
    assert ring.read_text() == before


def test_the_first_line_is_the_newest_and_comments_say_nothing(ring: Path) -> None:
    write(ring, f"# ours\n\n  new {KEY}\nold   {OTHER}  \n# end\n")
    assert keyring.ids() == ["new", "old"]
    assert keyring.newest().id == "new"
    assert keyring.key_of("old").key == b"o" * 32


def test_a_key_that_came_later_is_found_and_a_lost_one_is_not(ring: Path) -> None:
    write(ring, f"old {KEY}\n")
    assert keyring.key_of("old")
    with pytest.raises(keyring.UnknownKey):
        keyring.key_of("new")
    write(ring, f"new {OTHER}\nold {KEY}\n")
    assert keyring.key_of("new").key == b"o" * 32
    assert keyring.newest().id == "new"


def test_adding_keeps_all_that_is_there(ring: Path) -> None:
    write(ring, f"# ours\nold {KEY}\n# end")
    ring.chmod(0o640)
    fresh = keyring.add()
    first, second, *rest = ring.read_text().splitlines()
    assert (first, rest) == ("# ours", [f"old {KEY}", "# end"])
    assert second == str(fresh)
    assert keyring.newest() == fresh
    assert stat.S_IMODE(ring.stat().st_mode) == 0o640
    assert list(ring.parent.iterdir()) == [ring]


def test_a_link_to_the_ring_stays_one(ring: Path, tmp_path: Path) -> None:
    write(ring, f"old {KEY}\n")
    real = ring.rename(tmp_path / "real")
    ring.symlink_to(real)
    keyring.add()
    assert ring.is_symlink()
    assert len(keyring.ids()) == 2


def test_those_who_add_at_once_lose_none(ring: Path) -> None:
    keyring.make()
    with ThreadPoolExecutor(8) as pool:
        added = {key.id for key in pool.map(lambda _: keyring.add(), range(24))}
    assert len(added) == 24
    assert added < set(keyring.ids())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "contains no key"),
        ("# nothing\n", "contains no key"),
        (f"ok {KEY}\nshort c2hvcnQ=\n", "line 2"),
        ("sesame\n", "line 1"),
        (f"a/b {KEY}\n", "line 1"),
        (f"ok {KEY}x\n", "line 1"),
        (f"ok {KEY}\nok {OTHER}\n", "duplicate id ok"),
        ("ключ\n", "is not text"),
    ],
)
def test_a_ring_that_cannot_be_read_says_where_and_shows_nothing(ring: Path, text: str, says: str) -> None:
    write(ring, text)
    for use in (keyring.newest, lambda: keyring.key_of("no"), keyring.add):
        with pytest.raises(ProviderUnavailable, match=says) as refused:
            use()
        assert not refused.value.retryable
        assert not any(part in refused.value.message for part in (KEY, OTHER, "c2hvcnQ=", "sesame"))
    assert ring.read_text() == text


def test_a_missing_or_unreadable_ring_is_told(ring: Path) -> None:
    with pytest.raises(ProviderUnavailable, match=r"METALAKE_SECRET_KEYS_FILE.*is missing"):
        keyring.newest()
    ring.mkdir(parents=True)
    with pytest.raises(ProviderUnavailable, match="cannot be read"):
        keyring.newest()
    ring.rmdir()
    ring.parent.rmdir()
    ring.parent.write_text("a file where the folder should be")
    with pytest.raises(ProviderUnavailable, match="cannot be made"):
        keyring.make()


def test_a_ring_that_all_may_read_is_warned_of_once(ring: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(ring, f"old {KEY}\n")
    ring.chmod(0o644)
    with caplog.at_level(logging.WARNING):
        keyring.newest()
        keyring.newest()
    assert [record.getMessage().count("chmod 600") for record in caplog.records] == [1]


def test_a_key_is_not_shown() -> None:
    key = keyring.MasterKey("one", b"sesame" * 6)
    assert "sesame" not in repr(key)
