"""The files that jobs may use: those below METALAKE_JOB_PATHS, without symlinks or `..` that lead out."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.conf import settings

from metalake.errors import Invalid
from metalake.wire import quote

_HOW = "METALAKE_JOB_PATHS names the folders that executables, scripts and jars of jobs may lie in"


def resolve(given: str, what: str, *, runs: bool = False) -> Path:
    """The resolved path of a template's file. With `runs` it must be executable.

    Raises Invalid for a path outside the allowed folders, also through `..` or a symlink, and for anything but a
    regular file. To be called when a template is written and again when a run starts.
    """
    path = _local(given, what)
    for root in settings.METALAKE_JOB_PATHS:
        below = _below(path, root)
        if below is not None:
            return _checked(Path(os.path.realpath(root)) / below, given, what, runs=runs)
    places = f"this server's are {', '.join(settings.METALAKE_JOB_PATHS)}" if settings.METALAKE_JOB_PATHS else "none is"
    raise Invalid(f"{what}: {quote(given)} lies outside: {_HOW}, and {places}.", kind="job_template")


def _local(given: str, what: str) -> str:
    """The path in an absolute path or a local file: URL. Raises Invalid."""
    if given.startswith("file:"):
        parts = urlsplit(given)
        if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
            raise Invalid(f"{what}: {quote(given)} is no file of this machine.", kind="job_template")
        given = unquote(parts.path)
    steps = given.split("/")
    if not given.startswith("/") or {"", ".", ".."} & set(steps[1:]) or "\0" in given:
        raise Invalid(
            f"{what}: {quote(given)} is no path as it is written here: from / on, without '.', '..' and '//'.",
            kind="job_template",
        )
    return given


def _below(path: str, root: str) -> str | None:
    """The path relative to a root, taken literally; None if it is not below it."""
    for spelled in (root, os.path.realpath(root)):
        if path.startswith(f"{spelled}/"):
            return path[len(spelled) + 1 :]
    return None


def _checked(path: Path, given: str, what: str, *, runs: bool) -> Path:
    if os.path.realpath(path) != os.fspath(path):
        raise Invalid(f"{what}: {quote(given)} leads elsewhere by a link: name the file itself.", kind="job_template")
    try:
        mode = path.lstat().st_mode
    except OSError:
        raise Invalid(f"{what}: there is no file {quote(given)}.", kind="job_template") from None
    if not stat.S_ISREG(mode):
        raise Invalid(f"{what}: {quote(given)} is no file.", kind="job_template")
    if runs and not os.access(path, os.X_OK):
        raise Invalid(f"{what}: {quote(given)} is not executable: chmod +x makes it so.", kind="job_template")
    return path
