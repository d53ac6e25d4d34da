"""The cache of metadata files: the least recently used leaves first, and it never grows over its limit."""

from __future__ import annotations

import threading

from catalogs.iceberg.files import MetadataCache


def test_the_least_recently_used_leaves_first():
    cache = MetadataCache(max_bytes=30)
    cache.put("a", b"x" * 9)
    cache.put("b", b"x" * 9)
    cache.put("c", b"x" * 9)
    assert cache.get("a") == b"x" * 9
    cache.put("d", b"x" * 9)
    assert [cache.get(key) is None for key in "abcd"] == [False, True, False, False]


def test_an_entry_over_the_limit_is_not_kept_and_evicts_nothing():
    cache = MetadataCache(max_bytes=30)
    cache.put("a", b"x" * 9)
    cache.put("b", b"x" * 30)
    assert cache.get("a") and cache.get("b") is None


def test_putting_again_counts_once_and_forgetting_gives_back():
    cache = MetadataCache(max_bytes=30)
    for _ in range(10):
        cache.put("a", b"x" * 9)
    cache.put("b", b"x" * 19)
    assert len(cache) == 2
    cache.forget("b")
    cache.forget("never there")
    cache.put("c", b"x" * 19)
    assert len(cache) == 2 and cache.get("b") is None


def test_threads_never_take_it_over_its_limit():
    cache = MetadataCache(max_bytes=1_000)

    def use(number: int) -> None:
        for step in range(2_000):
            location = str((number * step) % 50)
            cache.put(location, b"x" * (step % 60))
            cache.get(str(step % 50))
            if step % 7 == 0:
                cache.forget(location)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = sum(len(key) + len(content) for key, content in cache._entries.items())
    assert kept == cache._bytes <= 1_000
