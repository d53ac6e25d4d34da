"""Check that a local folder is the one with the store's tables, not another one at the same path.

A folder shared by all nodes contains a marker file with a random id, which the database records too. An unshared home,
a failed mount or a misconfigured folder lacks it; a table's file that is missing there may still exist elsewhere.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterable, Iterator
from secrets import token_hex

from django.conf import settings

from catalogs.models import Catalog, Table
from catalogs.services.file_check import managed_catalogs
from formats.iceberg.locations import is_local, is_under, real_path
from metalake import shared_settings
from metalake.errors import Invalid
from metalake.models import Shared, below
from metalake.outbox import NotHere
from metalake.shared_settings import Difference
from providers.places import named_places, own_warehouse

log = logging.getLogger(__name__)

MARKER = ".metalake-folder"
SHARED = "folder "  # followed by its path


def roots() -> list[str]:
    """The folders below which this process may delete, from its settings."""
    home = str(settings.METALAKE_HOME)
    own = own_warehouse()
    named = [*([own] if is_local(own) else []), f"{home}/warehouse", home, *settings.METALAKE_FILE_LOCATIONS]
    return list(dict.fromkeys("/" + folder.removeprefix("file:").strip("/") for folder in named))


def root_of(place: str) -> str | None:
    """The innermost of `roots` that contains a local place, with links resolved; None if none does."""
    real = real_path(place)
    holding = [root for root in roots() if is_under(real, real_path(root))]
    return max(holding, key=lambda root: len(real_path(root)), default=None)


def require_here(places: Iterable[str], of_catalog: Iterable[str]) -> None:
    """Raise NotHere unless a table's local places are in recorded folders.

    The catalog's folders around them must exist too: the server never removes one, so a missing one is not mounted.
    """
    folders = list(_local(of_catalog))
    for place in _local(places):
        root = root_of(place)
        if root is None:
            raise NotHere(
                f"{place} is not allowed here: METALAKE_HOME, METALAKE_WAREHOUSE or METALAKE_FILE_LOCATIONS of this "
                "process are not those of the server that had the table"
            )
        if reason := _why_unrecognised(root, shared_settings.known(SHARED + root)):
            raise NotHere(reason)
        for folder in folders:
            if is_under(real_path(place), real_path(folder)) and not os.path.isdir(real_path(folder)):
                raise NotHere(
                    f"The folder {folder} of the catalog is not there: is its file system mounted? If its files are "
                    "gone for good, make it anew, empty"
                )


def _why_unrecognised(root: str, known: str | None) -> str:
    """Why a folder is not the recorded one; "" if it is."""
    if not os.path.isdir(real_path(root)):
        return f"The folder {root} is not there: is its file system mounted?"
    marker = _marker(root)
    if known is None:  # at this path; another node may mount it elsewhere
        known = marker if marker and Shared.objects.filter(name__startswith=SHARED, value=marker).exists() else None
    if known is None:
        return f"The folder {root} is not known to the store: start a server that reaches it"
    if marker != known:
        return (
            f"The folder {root} is not the one that the store knows, which carries {known} in {MARKER}: mount it. "
            f"If this is the right one now: manage.py shared_settings --forget '{SHARED}{root}', then start a server"
        )
    return ""


# Marking


def mark(file: str) -> None:
    """Record the folder of a table's file, unless it is recorded already or the file does not exist."""
    for place in _local([file]):
        root = root_of(place)
        if root and shared_settings.known(SHARED + root) is None and os.path.exists(real_path(place)):
            _mark(root)


def mark_used() -> None:
    """Record each folder that has files of catalogs; called at server startup."""
    for root, catalogs in _used().items():
        if shared_settings.known(SHARED + root) is None and _holds_their_files(catalogs):
            _mark(root)


def _used() -> dict[str, list[Catalog]]:
    used: dict[str, list[Catalog]] = {}
    for row in managed_catalogs():
        for root in {root for place in _local(named_places(row.properties)) if (root := root_of(place))}:
            used.setdefault(root, []).append(row)
    return used


def _local(places: Iterable[str]) -> Iterator[str]:
    for place in filter(is_local, places):
        try:
            real_path(place)
        except Invalid:
            continue
        yield place


def _holds_their_files(catalogs: Iterable[Catalog]) -> bool:
    """Whether a table's file exists, or there are no tables: an empty mount point must not be recorded."""
    newest = [Table.objects.filter(below(row.lineage)).order_by("-pk").first() for row in catalogs]
    files = [row.metadata_location for row in newest if row and is_local(row.metadata_location)]
    return not files or any(os.path.exists(real_path(file)) for file in files)


def _mark(root: str) -> None:
    try:
        if root in roots()[:2]:  # the server's own folders
            os.makedirs(real_path(root), exist_ok=True)
        shared_settings.agree(SHARED + root, _marker(root) or _write_marker(root))
    except OSError as failure:
        log.warning("The folder %s was not marked as this store's: %s", root, failure.strerror)


def _marker(root: str) -> str | None:
    try:
        with open(os.path.join(real_path(root), MARKER)) as file:
            return file.read(64).strip() or None
    except OSError:
        return None


def _write_marker(root: str) -> str:
    """Write the marker file unless it exists; of concurrent processes, on any machine, the first wins."""
    path = os.path.join(real_path(root), MARKER)
    draft = f"{path}.{token_hex(4)}"
    with open(draft, "x") as file:
        file.write(f"{token_hex(16)}\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    except OSError as failure:
        if failure.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        os.rename(draft, path)  # no hard links on this file system
        return _marker(root) or ""
    finally:
        if os.path.exists(draft):
            os.unlink(draft)
    return _marker(root) or ""


def compare() -> Iterator[Difference]:
    for name, known in Shared.objects.filter(name__startswith=SHARED).values_list("name", "value"):
        root = name.removeprefix(SHARED)
        if root_of(root) is None:
            yield Difference("purges", f"The folder {root}, which tables of this store lie in, is not allowed here.")
        elif reason := _why_unrecognised(root, known):
            yield Difference("purges", reason)
