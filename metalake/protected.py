"""The files of this server itself: no catalog's place holds one or lies at one, and no deletion of ours takes one.

They are protected wherever an operator puts them, not only in the home folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

# What SQLite keeps beside a database (sqlite.org/tempfiles.html), and the locks of who prepares it and who serves it.
BESIDE_THE_STORE = ("-wal", "-shm", "-journal", ".lock", ".server")
IN_THE_HOME = ("secret_key", "secrets.keys", "static", "server.lock", "leader.lock")


def protected_files() -> frozenset[str]:
    """Absolute paths, as they are named and where their links lead; one may be missing, or a folder as a whole."""
    from django.conf import settings  # what reads metadata needs no Django until it meets a place of this machine

    home = os.fspath(settings.METALAKE_HOME)
    named = [
        *(os.path.join(home, name) for name in (*IN_THE_HOME, "metalake.sqlite3")),
        *(os.fspath(path) for path in (settings.METALAKE_SECRET_KEYS_FILE, settings.METALAKE_EVENT_LOG) if path),
        *(source for source in settings.METALAKE_OAUTH_ISSUERS.values() if source and "://" not in source),
    ]
    stores = [os.path.join(home, "metalake.sqlite3"), *_store(settings.DATABASES["default"])]
    return _with_links(tuple(named), tuple(stores))


def _store(store: Mapping[str, Any]) -> list[str]:
    """The file of a SQLite store that lies in one."""
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
    """Whether a path of this machine, its links followed, is such a file or lies in such a folder."""
    return any(_holds(file, path) for file in protected_files())


def meets_protected(folder: str) -> bool:
    """The same, or it holds one: then it can be no place of a catalog or a table."""
    return any(_holds(file, folder) or _holds(folder, file) for file in protected_files())


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
