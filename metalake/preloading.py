"""What every process of a server has in common, made once in the one that forks them.

Nothing that a fork breaks may be begun there: no connection, no thread, and not PyArrow, which starts some.
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
    """The modules behind every path and our pages' templates, which each process would wait for and have to itself."""
    _reach(get_resolver().url_patterns)
    folder = Path(apps.get_app_config(OUR_PAGES).path) / "templates"
    for page in sorted(folder.rglob("*.html")):
        get_template(str(page.relative_to(folder)))


def _reach(patterns: Iterable[URLPattern | URLResolver]) -> None:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            _reach(pattern.url_patterns)


def freeze() -> None:
    """What is here at a fork stays: a look for garbage would write to its pages, and each process have its own."""
    gc.collect()
    gc.freeze()
    _keep_heaps_few()


def _keep_heaps_few() -> None:
    """glibc gives threads heaps of their own, eight a processor, and keeps what large blocks left (mallopt(3))."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return  # another library's heap
    mallopt(M_ARENA_MAX, HEAPS)
    mallopt(M_MMAP_THRESHOLD, LARGE)
