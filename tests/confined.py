"""Run a program that can change the files of its own folders alone: a metastore deletes what it is told to delete.

    python tests/confined.py <folder>[:<folder>...] <program> [arguments]

Two walls, neither of which asks for a privilege of the suite: Linux' Landlock (landlock(7)), and, where the suite runs
as root, another user, who keeps of root's rights that to read. Whether they hold is tried before the program starts: a
process that is confined so tries to change files in a folder beside its own. Where one attempt succeeds, or the
process cannot write in its own folders, the program is not started.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
VERSION, PATH_BENEATH = 1, 1
KEEP_CAPABILITIES, NO_NEW_PRIVILEGES, AMBIENT, RAISE = 8, 38, 47, 2
READ_ANYTHING = 2  # CAP_DAC_READ_SEARCH: jars and interpreters may lie in root's own home
CAPABILITIES = 0x20080522  # the newest form of capset(2)
# Writing, removing and making files of every kind; since version 2 moving them elsewhere, since 3 truncating.
WRITES = {1: sum(1 << bit for bit in (1, *range(4, 13))), 2: 1 << 13, 3: 1 << 14}
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
OF_FILES = 1 << 1 | 1 << 14  # the rights that a rule for a single file may give
UNPRIVILEGED = "nobody"
NOT_CONFINED = 77  # the exit code


class NotConfined(Exception):
    """The program would be able to change files of others; says how."""


class Ruleset(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def confined(folders: Sequence[Path], *command: str, as_user: bool = True) -> list[str]:
    """The command, so confined to folders that are there. With `as_user` false it stays the suite's own user."""
    given = os.pathsep.join(str(folder.resolve()) for folder in folders)
    program = [sys.executable, os.path.abspath(__file__), *([] if as_user else ["--same-user"])]
    return [*program, given, *command]


def give(*folders: Path) -> None:
    """Make folders those of the user that confined programs run as."""
    if os.geteuid() == 0:
        user = pwd.getpwnam(UNPRIVILEGED)
        for folder in folders:
            os.chown(folder, user.pw_uid, user.pw_gid)


def confine(folders: Sequence[Path], *, as_user: bool) -> None:
    """Take from this process and its children the right to change other files. Raises NotConfined, OSError."""
    if sys.platform != "linux":
        raise NotConfined("it takes Linux")
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(CREATE_RULESET, None, 0, VERSION)
    if version < 1:
        raise NotConfined("this kernel has no Landlock")
    handled = sum(rights for since, rights in WRITES.items() if since <= version)
    rules = Ruleset(handled)
    ruleset = libc.syscall(CREATE_RULESET, ctypes.byref(rules), ctypes.sizeof(rules), 0)
    places = {str(folder): handled for folder in folders}
    places |= {device: handled & OF_FILES for device in DEVICES if os.path.exists(device)}
    for place, rights in places.items():
        below = PathBeneath(rights, os.open(place, os.O_PATH))
        if libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(below), 0):
            raise OSError(ctypes.get_errno(), place)
    if as_user and os.geteuid() == 0:
        _leave_root(libc)
    if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.syscall(RESTRICT_SELF, ruleset, 0):
        raise OSError(ctypes.get_errno(), "Landlock")


def _leave_root(libc: ctypes.CDLL) -> None:
    user = pwd.getpwnam(UNPRIVILEGED)
    libc.prctl(KEEP_CAPABILITIES, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    for kept in (1 << READ_ANYTHING, 0):  # a container may lack that one: then all must be readable by everybody
        header, sets = (ctypes.c_uint32 * 2)(CAPABILITIES, 0), (ctypes.c_uint32 * 6)(kept, kept, kept, 0, 0, 0)
        if libc.capset(ctypes.byref(header), ctypes.byref(sets)) == 0:
            break
    else:
        raise NotConfined("the rights of root cannot be given up")
    libc.prctl(AMBIENT, RAISE, READ_ANYTHING, 0, 0)


def require_confined(folders: Sequence[Path], *, as_user: bool) -> None:
    """Try it, in a process of its own. Raises NotConfined where something beside the folders can be changed."""
    beside = Path(tempfile.mkdtemp(prefix="beside-", dir=folders[0].parent))
    try:
        for name in ("kept", "other"):
            (beside / name).write_text(name)
            (beside / name).chmod(0o666)
        beside.chmod(0o777)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.write(writing, _tried(folders, beside, as_user).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answer:
            said = answer.read()
        os.waitpid(child, 0)
        found = {file.name: file.read_text() for file in beside.iterdir()}
        if said == "held" and found != {"kept": "kept", "other": "other"}:
            said = f"files beside it were changed: {found}"
        if said != "held":
            raise NotConfined(said or "the process that tried it ended early")
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _tried(folders: Sequence[Path], beside: Path, as_user: bool) -> str:
    """`held`, or what is wrong."""
    try:
        confine(folders, as_user=as_user)
        if as_user and 0 in (*os.getresuid(), *os.getresgid()):
            return "it runs as root"
        for folder in folders:
            own = folder / f".tried-{os.getpid()}"
            own.write_text("own")
            for what, attempt in _attempts(own, beside).items():
                with suppress(OSError):
                    attempt()
                    return f"it can {what} a file beside its folders"
            own.unlink()
    except (NotConfined, OSError, KeyError) as problem:
        return str(problem)
    return "held"


def _attempts(own: Path, beside: Path) -> dict[str, Callable[[], object]]:
    kept = beside / "kept"
    return {
        "write": lambda: kept.write_text("changed"),
        "add to": lambda: kept.open("a"),
        "truncate": lambda: os.truncate(kept, 0),
        "delete": kept.unlink,
        "rename": lambda: kept.rename(beside / "renamed"),
        "take": lambda: kept.rename(own.with_name(f"{own.name}-taken")),
        "overwrite": lambda: own.rename(beside / "other"),
        "make": lambda: (beside / "made").write_text("made"),
        "make a folder for": lambda: (beside / "folder").mkdir(),
        "link": lambda: (beside / "link").symlink_to(own),
    }


def main(arguments: list[str]) -> None:
    as_user = arguments[0] != "--same-user"
    given, *command = arguments if as_user else arguments[1:]
    folders = [Path(folder) for folder in given.split(os.pathsep)]
    try:
        require_confined(folders, as_user=as_user)
        confine(folders, as_user=as_user)
    except (NotConfined, OSError) as problem:
        sys.stderr.write(f"{command[0]} is not started, for it would not be confined: {problem}\n")
        sys.exit(NOT_CONFINED)
    own = {"HOME": str(folders[0]), "TMPDIR": str(folders[0]), "PYTHONDONTWRITEBYTECODE": "1"}
    os.execvpe(command[0], command, os.environ | own)


if __name__ == "__main__":
    main(sys.argv[1:])
