"""In-memory caches of metadata files, per process."""

from __future__ import annotations

import threading
from collections import OrderedDict

from cachetools import LRUCache

from formats.iceberg.metadata_json import parse_metadata
from formats.iceberg.parsing import Json

SMALL = 64 * 1024  # bytes, parsed in a tenth of a millisecond


class MetadataCache:
    """An LRU cache of the JSON of metadata files, by catalog and location. Thread-safe.

    Metadata files are immutable, so entries never become stale; `forget` is for deleted files. The catalog is part of
    the key, since the same location may be in different storages for two catalogs.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._entries: OrderedDict[tuple[int, str], bytes] = OrderedDict()
        self._answers: dict[tuple[int, str], dict[str, bytes]] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, catalog_id: int, location: str) -> bytes | None:
        key = catalog_id, location
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def put(self, catalog_id: int, location: str, content: bytes) -> None:
        key = catalog_id, location
        with self._lock:
            self._drop(key)
            if _size(key, content) > self.max_bytes:
                return
            self._entries[key] = content
            self._bytes += _size(key, content)
            self._make_room()

    def answer(self, catalog_id: int, location: str, content: bytes, form: str) -> bytes | None:
        """The cached response of this form that was built from this content, if any."""
        key = catalog_id, location
        with self._lock:
            return self._answers.get(key, {}).get(form) if self._entries.get(key) is content else None

    def put_answer(self, catalog_id: int, location: str, content: bytes, form: str, answer: bytes) -> None:
        """Cache a response that was built from this content, as long as the content itself."""
        key = catalog_id, location
        with self._lock:
            if self._entries.get(key) is content and form not in self._answers.get(key, {}):
                self._answers.setdefault(key, {})[form] = answer
                self._bytes += len(answer)
                self._make_room()

    def forget(self, catalog_id: int, location: str) -> None:
        with self._lock:
            self._drop((catalog_id, location))

    def __len__(self) -> int:
        return len(self._entries)

    def _drop(self, key: tuple[int, str]) -> None:
        content = self._entries.pop(key, None)
        if content is not None:
            self._bytes -= _size(key, content) + sum(map(len, self._answers.pop(key, {}).values()))

    def _make_room(self) -> None:
        while self._bytes > self.max_bytes:
            self._drop(next(iter(self._entries)))


class ParsedCache:
    """A cache of parsed large metadata files: a commit need not parse a file that this process wrote or parsed.

    The key is the identity of the bytes object from `MetadataCache`. Returned metadata is shared: callers copy before
    they change it, as `Draft` does. Its size is counted in file bytes; parsed metadata takes about three times as many,
    less what two versions of a table share. Thread-safe.
    """

    def __init__(self, max_bytes: int, small: int = SMALL) -> None:
        self.small = small
        # Each entry keeps its bytes object alive, so that the id is not reused.
        self._entries: LRUCache[int, tuple[bytes, Json]] = LRUCache(max_bytes, getsizeof=lambda entry: len(entry[0]))
        self._lock = threading.Lock()

    def of(self, content: bytes) -> Json:
        """The metadata in a file. Raises Invalid, as `parse_metadata` does."""
        with self._lock:
            known = self._entries.get(id(content))
        if known is not None:
            return known[1]
        metadata = parse_metadata(content)
        self.put(content, metadata)
        return metadata

    def put(self, content: bytes, metadata: Json) -> None:
        """Cache the metadata that a file's content was parsed to, or serialised from."""
        if self.small <= len(content) <= self._entries.maxsize:
            with self._lock:
                self._entries[id(content)] = content, metadata


def _size(key: tuple[int, str], content: bytes) -> int:
    return len(key[1]) + len(content)
