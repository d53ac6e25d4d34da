"""The key ring: a file outside the database with the installation's master keys, one per line, the newest first.

A line is the key's id and 32 random bytes in base64; empty lines and # comments are ignored.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_bytes, token_hex

from django.conf import settings
from django.utils import timezone

from metalake.errors import ProviderUnavailable

log = logging.getLogger(__name__)

SETTING = "METALAKE_SECRET_KEYS_FILE"
HEADER = "# Master keys, newest first. Keep a copy elsewhere: without its key, nothing opens a secret again.\n"
KEY_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
KEY_BYTES = 32

_known: dict[Path, dict[str, MasterKey]] = {}


@dataclass(frozen=True)
class MasterKey:
    id: str
    key: bytes = field(repr=False)

    def __str__(self) -> str:
        return f"{self.id} {b64encode(self.key).decode()}"


class UnknownKey(Exception):
    """The ring has no key with this id."""


def newest() -> MasterKey:
    """The key to encrypt with; always read from the file, since a rotation may have added one."""
    return next(iter(_load().values()))


def key_of(key_id: str) -> MasterKey:
    """The key with this id, cached; an unknown id rereads the file. Raises UnknownKey."""
    key = _known.get(_path(), {}).get(key_id) or _load().get(key_id)
    if key is None:
        raise UnknownKey(key_id)
    return key


def ids() -> list[str]:
    return list(_load())


def exists() -> bool:
    return _path().exists()


def make() -> None:
    """Create a ring of one key unless one exists; of concurrent processes the first wins."""
    path = _path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _draft(path, f"{HEADER}{_fresh()}\n") as draft:
            try:
                path.hardlink_to(draft)
            except FileExistsError:
                pass
    except OSError as failure:
        raise _unusable(f"cannot be made ({failure.strerror})") from None


def add() -> MasterKey:
    """Prepend a new key; the file is replaced atomically."""
    path = _path().resolve()
    fresh = _fresh()
    try:
        with _alone(path.parent):
            _load()
            lines, status = path.read_text().splitlines(keepends=True), path.stat()
            first = next(number for number, line in enumerate(lines) if _says_something(line))
            with _draft(path, "".join([*lines[:first], f"{fresh}\n", *lines[first:]])) as draft:
                os.chown(draft, status.st_uid, status.st_gid)  # the servers may run under another account
                os.chmod(draft, status.st_mode & 0o777)
                os.replace(draft, path)
    except OSError as failure:
        raise _unusable(f"cannot be changed ({failure.strerror})") from None
    return fresh


def _fresh() -> MasterKey:
    return MasterKey(f"{timezone.now():%Y-%m-%d}-{token_hex(4)}", token_bytes(KEY_BYTES))


def _path() -> Path:
    return Path(settings.METALAKE_SECRET_KEYS_FILE)


def _load() -> dict[str, MasterKey]:
    path = _path()
    try:
        text, mode = path.read_text(encoding="ascii"), path.stat().st_mode
    except FileNotFoundError:
        raise _unusable("is missing; put it back from your copy") from None
    except OSError as failure:
        raise _unusable(f"cannot be read ({failure.strerror})") from None
    except UnicodeDecodeError:
        raise _unusable("is not text") from None
    ring = _parsed(text)
    if path not in _known and mode & 0o007:
        log.warning("every account of this machine may read or change %s; chmod 600 it", path)
    _known[path] = ring
    return ring


def _parsed(text: str) -> dict[str, MasterKey]:
    """The keys of a ring by id. Raises ProviderUnavailable with the number of an invalid line, never its content."""
    ring: dict[str, MasterKey] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not _says_something(line):
            continue
        key_id, _, encoded = line.strip().partition(" ")
        try:
            key = b64decode(encoded.strip(), validate=True)
        except ValueError:
            key = b""
        if not KEY_ID.fullmatch(key_id) or len(key) != KEY_BYTES:
            raise _unusable(f"is invalid in line {number}: expected an id and {KEY_BYTES} bytes in base64")
        if key_id in ring:
            raise _unusable(f"is invalid in line {number}: duplicate id {key_id}")
        ring[key_id] = MasterKey(key_id, key)
    if not ring:
        raise _unusable("contains no key")
    return ring


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _unusable(why: str) -> ProviderUnavailable:
    return ProviderUnavailable(f"The key ring of the server ({SETTING}) {why}.", kind="catalog", retryable=False)


@contextmanager
def _draft(path: Path, text: str) -> Iterator[Path]:
    """A temporary file next to `path` with this text, fsynced; removed after the block."""
    draft = path.with_name(f"{path.name}.{token_hex(4)}")
    draft.touch(mode=0o600, exist_ok=False)
    try:
        with draft.open("w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        yield draft
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold an exclusive flock on the folder during the block."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
