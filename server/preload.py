"""Preloads modules and templates in the parent, before a server's processes are forked.

Nothing here may start what does not survive a fork: no connection, no thread, and not PyArrow, which starts threads.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterable
from pathlib import Path

from django.apps import apps
from django.template.loader import get_template
from django.urls import URLPattern, URLResolver, get_resolver

OUR_PAGES = "frontend"
M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8  # as malloc.h has them
HEAPS, LARGE = 2, 256 * 1024


def load() -> None:
    """Load the modules behind all URLs and the pages' templates, which each process would otherwise load itself."""
    _reach(get_resolver().url_patterns)
    folder = Path(apps.get_app_config(OUR_PAGES).path) / "templates"
    for page in sorted(folder.rglob("*.html")):
        get_template(str(page.relative_to(folder)))


def _reach(patterns: Iterable[URLPattern | URLResolver]) -> None:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            _reach(pattern.url_patterns)


def freeze() -> None:
    """Exclude loaded objects from garbage collection, whose writes would un-share their pages after the fork."""
    gc.collect()
    gc.freeze()
    _limit_heaps()


def _limit_heaps() -> None:
    """Limit glibc's arenas, of which threads get up to eight a processor, and free large blocks (mallopt(3))."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # another C library
    mallopt(M_ARENA_MAX, HEAPS)
    mallopt(M_MMAP_THRESHOLD, LARGE)
