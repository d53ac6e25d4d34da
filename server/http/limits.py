"""How long the server waits for its clients, how many bytes it accepts from them, and what goes first."""

from __future__ import annotations

LINE = 8190  # bytes of a request line
FIELDS = 17 * 1024  # bytes of all header fields together: an issuer's token may take 16 KiB
MOST_FIELDS = 100
LARGE = 1024 * 1024  # bytes of a body above which the process for large requests reads it
FEW_CHUNKS, SMALL_CHUNK = 1000, 128  # beyond so many chunks, their average size must be so many bytes
AHEAD = 64 * 1024  # bytes that are read ahead of a client that sends before its last request is answered

# Seconds
HEAD = 10.0  # from the first byte of a head to its last
BODY = 300.0  # for a whole body
STATEMENT = 2.0  # for one statement of a short read
STEP, LEAST = 10.0, 1024  # in each step of so many seconds a client must send or read so many bytes
IDLE = 30.0  # between two requests
LINGER = 5.0  # after the last answer, in which the client may still be sending
PARTING = 1.0  # in which an idle client may still send a request after its process was told to end

MOST_CONNECTIONS = 4000  # of a process; beyond that the one that has been idle for longest is closed
MOST_MEMORY = 256 * 1024 * 1024  # bytes of bodies and answers that a process has in memory for its clients
MOST_READS, MOST_OTHERS = 512, 64  # requests that wait for a thread

NICENESS = 5  # of the process for large requests, and of threads that may block: short reads of others go first
