"""The caches of metadata files: the least recently used leaves first, and they never grow over their limits."""

from __future__ import annotations

import threading
from typing import Any

import orjson
import pytest

from formats.iceberg import builder
from formats.iceberg.metadata_cache import MetadataCache, ParsedCache
from metalake.errors import Invalid


def test_the_least_recently_used_leaves_first():
    cache = MetadataCache(max_bytes=30)
    cache.put(1, "a", b"x" * 9)
    cache.put(1, "b", b"x" * 9)
    cache.put(1, "c", b"x" * 9)
    assert cache.get(1, "a") == b"x" * 9
    cache.put(1, "d", b"x" * 9)
    assert [cache.get(1, key) is None for key in "abcd"] == [False, True, False, False]


def test_what_one_catalog_keeps_is_nothing_to_another():
    cache = MetadataCache(max_bytes=1_000)
    cache.put(1, "s3://lake/t/metadata/0.metadata.json", b"ours")
    assert cache.get(2, "s3://lake/t/metadata/0.metadata.json") is None
    cache.put(2, "s3://lake/t/metadata/0.metadata.json", b"theirs")
    cache.forget(2, "s3://lake/t/metadata/0.metadata.json")
    assert cache.get(1, "s3://lake/t/metadata/0.metadata.json") == b"ours"


def test_an_entry_over_the_limit_is_not_kept_and_evicts_nothing():
    cache = MetadataCache(max_bytes=30)
    cache.put(1, "a", b"x" * 9)
    cache.put(1, "b", b"x" * 30)
    assert cache.get(1, "a") and cache.get(1, "b") is None


def test_putting_again_counts_once_and_forgetting_gives_back():
    cache = MetadataCache(max_bytes=30)
    for _ in range(10):
        cache.put(1, "a", b"x" * 9)
    cache.put(1, "b", b"x" * 19)
    assert len(cache) == 2
    cache.forget(1, "b")
    cache.forget(1, "never there")
    cache.put(1, "c", b"x" * 19)
    assert len(cache) == 2 and cache.get(1, "b") is None


def test_threads_never_take_it_over_its_limit():
    cache = MetadataCache(max_bytes=1_000)

    def use(number: int) -> None:
        for step in range(2_000):
            location = str((number * step) % 50)
            cache.put(1, location, b"x" * (step % 60))
            cache.get(1, str(step % 50))
            if step % 7 == 0:
                cache.forget(1, location)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = sum(len(key[1]) + len(content) for key, content in cache._entries.items())
    assert kept == cache._bytes <= 1_000


def test_what_was_packed_goes_with_its_content_and_takes_room() -> None:
    cache, content = MetadataCache(100), b"x" * 40
    cache.put(1, "a", content)
    cache.put_answer(1, "a", content, "gzip", b"packed")
    assert cache.answer(1, "a", content, "gzip") == b"packed"
    assert cache.answer(1, "a", b"y" * 40, "gzip") is None
    cache.put(1, "a", b"z" * 40)
    assert cache.answer(1, "a", content, "gzip") is None
    cache.put_answer(1, "a", content, "gzip", b"late")  # of what is no longer there
    assert cache.answer(1, "a", b"z" * 40, "gzip") is None
    last = b"w" * 40
    cache.put(1, "b", last)
    cache.put_answer(1, "b", last, "gzip", b"p" * 30)
    assert cache.get(1, "a") is None and cache.answer(1, "b", last, "gzip") == b"p" * 30


def test_a_large_file_is_parsed_once_and_the_oldest_leaves_first() -> None:
    cache = ParsedCache(max_bytes=4_000, small=1_000)
    first, second, third = (orjson.dumps(metadata_of(note=letter * 1_000)) for letter in "abc")
    held = cache.of(first)
    assert held["properties"]["note"] == "a" * 1_000 and cache.of(first) is held
    assert cache.of(bytes(bytearray(first))) is not held, "other bytes, though equal: what they say is looked at"
    cache = ParsedCache(max_bytes=4_000, small=1_000)
    kept = [cache.of(content) for content in (first, second)]
    assert cache.of(first) is kept[0]
    cache.of(third)
    assert cache.of(first) is kept[0] and cache.of(second) is not kept[1]
    assert cache._entries.currsize == sum(len(content) for content, _ in cache._entries.values()) <= 4_000


def test_what_was_written_is_not_parsed_again_and_small_or_huge_files_are_not_kept() -> None:
    cache = ParsedCache(max_bytes=4_000, small=1_000)
    for size, is_kept in ((1, False), (1_000, True), (5_000, False)):
        metadata = metadata_of(note="x" * size)
        content = orjson.dumps(metadata)
        cache.put(content, metadata)
        cache.put(content, metadata)
        assert (cache.of(content) is metadata) == is_kept
        assert cache.of(content) == metadata
    assert cache._entries.currsize < 4_000 and len(cache._entries) == 1


def test_a_file_that_cannot_be_read_is_refused_each_time() -> None:
    cache = ParsedCache(max_bytes=4_000, small=0)
    broken = b'{"format-version": 9}'
    for _ in range(2):
        with pytest.raises(Invalid):
            cache.of(broken)


def metadata_of(**properties: str) -> dict[str, Any]:
    return builder.new_table_metadata(
        table_uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1",
        location="file:///lake/flights",
        schema={"type": "struct", "fields": [{"id": 1, "name": "carrier", "type": "string", "required": False}]},
        partition_spec=None,
        sort_order=None,
        properties=properties,
        now_ms=1_700_000_000_000,
    )
