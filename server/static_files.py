"""Static files as pages name them: with a checksum in the name and compressed, so that browsers keep them for good."""

from __future__ import annotations

import hashlib
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

STAMP = "made-of"
"""The file in STATIC_ROOT that says which files its content was made of."""
UNUSED = ["rest_framework", "guardian", "redoc"]
"""Folders of libraries whose pages we do not have."""


def prepare() -> None:
    """Collect the files of all apps into STATIC_ROOT, unless what is there was made of the very same ones.

    The stamp is written last: a crash on the way makes the next start do it again. Files of earlier versions stay, for
    pages that are still open.
    """
    stamp, state = Path(settings.STATIC_ROOT) / STAMP, fingerprint()
    if stamp.is_file() and stamp.read_text() == state:
        return
    call_command("collectstatic", interactive=False, verbosity=0, ignore_patterns=UNUSED)
    stamp.write_text(state)


def fingerprint() -> str:
    """A checksum over the path, the size and the time of every static file of the installed apps."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list(UNUSED):
            facts = Path(storage.path(name)).stat()
            digest.update(f"{name} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()
