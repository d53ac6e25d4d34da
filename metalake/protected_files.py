"""The server's own files: no catalog may use a folder that contains one, and no purge deletes one.

They are protected wherever the operator puts them, not only in the home folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

from metalake.errors import Invalid

# SQLite's files next to a database (sqlite.org/tempfiles.html), and the lock files of migrations and servers.
BESIDE_THE_STORE = ("-wal", "-shm", "-journal", ".lock", ".server")
IN_THE_HOME = ("secret_key", "secrets.keys", "static", "server.lock", "leader.lock", "jobs")


def protected_files() -> frozenset[str]:
    """Absolute paths of files and folders, as configured and with symlinks resolved; some may not exist."""
    from django.conf import settings  # lazy: reading metadata needs Django only on local disk

    home = os.fspath(settings.METALAKE_HOME)
    named = [
        *(os.path.join(home, name) for name in (*IN_THE_HOME, "metalake.sqlite3")),
        *(os.fspath(path) for path in (settings.METALAKE_SECRET_KEYS_FILE, settings.METALAKE_EVENT_LOG) if path),
        *(source for source in settings.METALAKE_OAUTH_ISSUERS.values() if source and "://" not in source),
    ]
    stores = [os.path.join(home, "metalake.sqlite3"), *_store(settings.DATABASES["default"])]
    return _with_links(tuple(named), tuple(stores))


def _store(store: Mapping[str, Any]) -> list[str]:
    """The file of a SQLite database, unless it is in memory."""
    name = os.fspath(store["NAME"] or "")
    if "sqlite" not in store["ENGINE"] or ":memory:" in name or "mode=memory" in name:
        return []
    return [name.removeprefix("file:").partition("?")[0]]


@lru_cache(maxsize=16)
def _with_links(named: tuple[str, ...], stores: tuple[str, ...]) -> frozenset[str]:
    beside = [f"{path}{ending}" for store in stores for path in _both(store) for ending in ("", *BESIDE_THE_STORE)]
    return frozenset(path for given in (*named, *beside) for path in _both(given))


def _both(path: str) -> tuple[str, str]:
    return os.path.abspath(path), os.path.realpath(path)


def is_protected(path: str) -> bool:
    """Whether a local path, with symlinks resolved, is a protected file or in a protected folder."""
    return any(_holds(file, path) for file in protected_files())


def meets_protected(folder: str) -> bool:
    """Whether a folder is protected or contains a protected file, so that no catalog or table may use it."""
    return any(_holds(file, folder) or _holds(folder, file) for file in protected_files())


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def require_apart(folders: Iterable[str], written_to: Iterable[str | os.PathLike[str]]) -> None:
    """Raise Invalid if job programs are in folders that the server or its users write to.

    `written_to` are paths and URLs; only file: URLs count.
    """
    others = [path for place in written_to if (path := _local_path(os.fspath(place)))]
    for folder in folders:
        if not folder.startswith("/") or folder == "/" or os.path.normpath(folder) != folder:
            raise Invalid(f"write {folder!r} as the path of a folder, from / on, that is not / itself.")
        place = os.path.realpath(folder)
        for other in map(os.path.realpath, others):
            if _holds(place, other) or _holds(other, place):
                raise Invalid(f"{folder} meets {other}, where the server and its users write.")


def _local_path(place: str) -> str:
    if place.startswith("file:"):
        return unquote(urlsplit(place).path)
    return place if place.startswith("/") else ""
