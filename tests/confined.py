"""Run a program that can change throw-away files alone: a metastore deletes the folder that it is told to delete.

    python tests/confined.py <program> [arguments]

Linux' Landlock does it (landlock(7)), without any privilege; where the kernel has none the program runs as it is.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
VERSION, PATH_BENEATH, NO_NEW_PRIVILEGES = 1, 1, 38
# Writing, removing and making files of every kind; since version 2 moving them elsewhere, since 3 truncating.
WRITES = {1: sum(1 << bit for bit in (1, *range(4, 13))), 2: 1 << 13, 3: 1 << 14}
FOLDERS = (tempfile.gettempdir(), "/dev", "/proc/self")


class Ruleset(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def confine() -> bool:
    """Take from this process and its children the right to change other files; whether the kernel can."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(CREATE_RULESET, None, 0, VERSION)
    if version < 1:
        return False
    handled = sum(rights for since, rights in WRITES.items() if since <= version)
    rules = Ruleset(handled)
    ruleset = libc.syscall(CREATE_RULESET, ctypes.byref(rules), ctypes.sizeof(rules), 0)
    for folder in filter(os.path.isdir, FOLDERS):
        below = PathBeneath(handled, os.open(folder, os.O_PATH))
        if libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(below), 0):
            raise OSError(ctypes.get_errno(), folder)
    if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.syscall(RESTRICT_SELF, ruleset, 0):
        raise OSError(ctypes.get_errno(), "Landlock")
    return True


def confined(*command: str) -> list[str]:
    """The command, so confined."""
    return [sys.executable, os.path.abspath(__file__), *command]


if __name__ == "__main__":
    confine()
    os.execvp(sys.argv[1], sys.argv[1:])
