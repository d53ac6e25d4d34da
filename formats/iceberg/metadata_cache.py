"""The metadata files that a process keeps in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict

from cachetools import LRUCache

from formats.iceberg.metadata_json import parse_metadata
from formats.iceberg.parsing import Json

SMALL = 64 * 1024  # bytes, parsed in a tenth of a millisecond


class MetadataCache:
    """The JSON of metadata files by catalog and location; evicts the least recently used. Safe between threads.

    A metadata file never changes, so an entry never becomes stale; `forget` is for files that are deleted. The catalog
    is part of the key, since two catalogs may have different storages under one location.
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
        """The answer of this form that was made of this content, if any."""
        key = catalog_id, location
        with self._lock:
            return self._answers.get(key, {}).get(form) if self._entries.get(key) is content else None

    def put_answer(self, catalog_id: int, location: str, content: bytes, form: str, answer: bytes) -> None:
        """Keep an answer that was made of this content as long as the content itself."""
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
    """The parsed form of large metadata files: a commit parses nothing of a file that this process wrote or parsed.

    A file is known by the very bytes object that `MetadataCache` gives out. What is given is shared by all who ask:
    whoever changes metadata copies what he changes first, as `Draft` does. Counts the bytes of the files, whose parsed
    form takes some three times as many, but for what two versions of a table share. Safe between threads.
    """

    def __init__(self, max_bytes: int, small: int = SMALL) -> None:
        self.small = small
        # Each entry holds its bytes, so that nothing else has their id.
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
        """Keep the metadata that a file's content was parsed to, or made of."""
        if self.small <= len(content) <= self._entries.maxsize:
            with self._lock:
                self._entries[id(content)] = content, metadata


def _size(key: tuple[int, str], content: bytes) -> int:
    return len(key[1]) + len(content)
