"""Files that follow what is rendered: each replaced as a whole, only where it changed, and removed when it is over.

A file is ours if its first line says so (rendered.mark_with). Others are neither replaced nor removed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from metalake_client.engines.rendered import Rendered, mark_of_catalog
from metalake_client.failures import Exit, Failure

MODE = 0o644  # before the umask: engines often run as another user, and no secret is in these files
PATTERNS = ("*.properties", "*.sql", "*.yaml", "*.sh", "*.conf", "*/hive-site.xml")
"""Where files of ours may be in a folder."""
_LONGEST_LINE = 8_192


@dataclass(frozen=True)
class Written:
    """Names of files, relative to their folder."""

    changed: tuple[str, ...]
    removed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.changed or self.removed)


def write(folder: Path, rendered: Rendered, only: Collection[str] = ()) -> Written:
    """Make our files in a folder those that were rendered; with `only`, those of the catalogs of these names.

    Raises Failure, before anything is changed, where a file of somebody else is in the way; and where the folder cannot
    be written. A file is never there in half.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        changed = [name for name, text in rendered.files.items() if _differs(folder, name, text, rendered.mark)]
        removed = [name for name in _ours(folder, rendered.mark, only) if name not in rendered.files]
        for name in changed:
            _replace(folder / name, rendered.files[name])
        for name in removed:
            _remove(folder, name)
    except OSError as refused:
        where = refused.filename or folder
        raise Failure(f"{where} cannot be written: {refused.strerror or refused}.", Exit.USAGE) from None
    return Written(tuple(changed), tuple(removed))


def _differs(folder: Path, name: str, text: str, mark: str) -> bool:
    """Whether our file has to be written. Raises Failure if it is not ours."""
    path = folder / _plain(name)
    if not os.path.lexists(path):
        return True
    if path.is_symlink() or not path.is_file() or mark not in _first_line(path):
        raise Failure(
            f"{path} was not written by gcli for this metalake: move it away, or choose another --folder.",
            Exit.CONFLICT,
        )
    return path.read_bytes() != text.encode()


def _plain(name: str) -> PurePosixPath:
    """A name that stays in its folder. Raises Failure for another, which a catalog's name may have led to."""
    parts = name.split("/")
    if len(parts) > 2 or any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
        raise Failure(f"{name!r} cannot be the name of a file.", Exit.USAGE)
    return PurePosixPath(name)


def _ours(folder: Path, mark: str, only: Collection[str]) -> Iterator[str]:
    """The names of our files in the folder."""
    marks = [mark + mark_of_catalog(catalog) for catalog in only] or [mark]
    for path in sorted(path for pattern in PATTERNS for path in folder.glob(pattern)):
        if path.is_file() and not path.is_symlink() and any(each in _first_line(path) for each in marks):
            yield path.relative_to(folder).as_posix()


def _first_line(path: Path) -> str:
    """Empty for a file that may not be read, which is none of ours."""
    try:
        with path.open("rb") as file:
            return file.readline(_LONGEST_LINE).decode(errors="replace")
    except OSError:
        return ""


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    umask = os.umask(0)
    os.umask(umask)
    handle, beside = tempfile.mkstemp(prefix=".gcli-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, MODE & ~umask)
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def _remove(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    if "/" in name:
        with suppress(OSError):  # something of others is in it
            (folder / name).parent.rmdir()
