"""How long the server waits for its clients, and how much it takes from them before any work is done."""

from __future__ import annotations

LINE = 8190  # bytes of a request line
FIELDS = 17 * 1024  # bytes of all header fields together: an issuer's token may take 16 KiB
MOST_FIELDS = 100
LARGE = 1024 * 1024  # bytes of a body from which on it is read in the process for large requests
FEW_CHUNKS, SMALL_CHUNK = 1000, 128  # more than so many chunks hold so many bytes on average
AHEAD = 64 * 1024  # bytes that are read of what a client sends before its last request is answered

# Seconds
HEAD = 10.0  # from the first byte of a head to its last
BODY = 300.0  # for a whole body
STATEMENT = 2.0  # for one statement of a short read
STEP, LEAST = 10.0, 1024  # in each step of that long so many bytes, of a body that comes and of an answer that is read
IDLE = 30.0  # between two requests
LINGER = 5.0  # after an answer that ends the connection, for what the client is still sending
PARTING = 1.0  # in which an idle client may still send a request when its process ends

MOST_CONNECTIONS = 4000  # of a process; then who has been idle for longest makes room
MOST_KEPT = 256 * 1024 * 1024  # bytes of bodies and of answers that a process keeps for its clients
MOST_READS, MOST_OTHERS = 512, 64  # requests that wait for a thread
