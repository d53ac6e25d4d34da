"""Collects static files, with a hash in the name and compressed, so that browsers may cache them forever."""

from __future__ import annotations

import hashlib
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

STAMP = "made-of"
"""The file in STATIC_ROOT with the fingerprint of the files it was collected from."""
UNUSED = ["rest_framework", "guardian", "redoc"]
"""Folders of libraries whose pages we do not serve."""


def prepare() -> None:
    """Collect the files of all apps into STATIC_ROOT, unless they are unchanged since last time.

    The stamp is written last, so a crash in between makes the next start do it again. Files of earlier versions stay,
    for pages that are still open.
    """
    stamp, state = Path(settings.STATIC_ROOT) / STAMP, fingerprint()
    if stamp.is_file() and stamp.read_text() == state:
        return
    call_command("collectstatic", interactive=False, verbosity=0, ignore_patterns=UNUSED)
    stamp.write_text(state)


def fingerprint() -> str:
    """A hash over the path, size and mtime of every static file of the installed apps."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list(UNUSED):
            facts = Path(storage.path(name)).stat()
            digest.update(f"{name} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()
