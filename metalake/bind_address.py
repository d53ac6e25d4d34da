"""The address that a server listens on, and the explanation if it cannot.

Source: bind(2), ip(7) and proc(5) of Linux.
"""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from glob import iglob
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

LISTENS = "0A"  # TCP_LISTEN in /proc/net/tcp


def address() -> tuple[str, int]:
    """METALAKE_HOST and METALAKE_PORT. Raises ImproperlyConfigured for an invalid port."""
    host, port = os.environ.get("METALAKE_HOST", "127.0.0.1"), os.environ.get("METALAKE_PORT", "8090")
    if not (port.isascii() and port.isdecimal() and len(port) < 6 and 0 < int(port) < 65536):
        raise ImproperlyConfigured(f"METALAKE_PORT is a number from 1 to 65535, not {port[:80]!r}.")
    return host, int(port)


def listen() -> socket.socket:
    """A socket listening on the address. Raises ImproperlyConfigured if it cannot be bound."""
    host, port = address()
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # old connections may be in TIME_WAIT
        listener.bind((host, port))
        listener.listen(2048)  # backlog
    except (OSError, UnicodeError) as failure:
        listener.close()
        raise ImproperlyConfigured(why_not(failure, host, port)) from None
    return listener


def why_not(failure: OSError | UnicodeError, host: str, port: int) -> str:
    """A message that says why the address cannot be bound, and what to do."""
    number = failure.errno if isinstance(failure, OSError) else None
    if number == errno.EADDRINUSE:
        by = _by(port)
        other = f"METALAKE_PORT={port % 65535 + 1}" + (", and a METALAKE_HOME of its own" if "Metalake" in by else "")
        return f"Port {port} of {host} is taken{by}: stop what has it, or choose another, {other}."
    if number == errno.EACCES:
        return f"This account may not open port {port}: choose one from 1024 on, METALAKE_PORT=8090, behind a proxy."
    if number == errno.EADDRNOTAVAIL or isinstance(failure, socket.gaierror | UnicodeError):
        return f"METALAKE_HOST={host} is no address of this machine: 127.0.0.1 is itself, 0.0.0.0 all its networks."
    return f"It cannot listen on port {port} of {host}: {failure}."


def _by(port: int) -> str:
    """The process that listens on a port, if this account may see it: " by process 71 (java)", else ""."""
    sockets, holders = set(), []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            rows = [line.split() for line in Path(table).read_text().splitlines()]
            sockets |= {f"socket:[{row[9]}]" for row in rows if row[3] == LISTENS and row[1].endswith(f":{port:04X}")}
    for link in iglob("/proc/[0-9]*/fd/*"):
        with suppress(OSError):
            if os.readlink(link) in sockets:
                holders.append(int(link.split("/")[2]))
    with suppress(OSError, ValueError):
        holder = min(holders)  # the parent of the processes that inherited it; ValueError if none
        words = Path(f"/proc/{holder}/cmdline").read_text(errors="replace").split("\0")
        if "serve" in words and words[words.index("serve") - 1].endswith(("manage.py", "metalake")):
            return f" by another Metalake (process {holder})"
        return f" by process {holder} ({Path(words[0]).name})"
    return ""
