"""Limits of the HTTP server: timeouts, sizes, queues, and scheduling priority."""

from __future__ import annotations

LINE = 8190  # bytes of a request line
FIELDS = 17 * 1024  # bytes of all header fields together: an issuer's token may take 16 KiB
MOST_FIELDS = 100
LARGE = 1024 * 1024  # bytes of a body above which the process for large requests reads it
FEW_CHUNKS, SMALL_CHUNK = 1000, 128  # beyond this many chunks, their average size must be this many bytes
AHEAD = 64 * 1024  # bytes buffered from a client that pipelines requests

# Seconds
HEAD = 10.0  # from the first byte of a head to its last
BODY = 300.0  # for a whole body
STATEMENT = 2.0  # for one statement of a short read
STEP, LEAST = 10.0, 1024  # in every 10 seconds a client must send or read at least 1024 bytes
IDLE = 30.0  # between two requests
LINGER = 5.0  # after the last response, while the client may still be sending
PARTING = 1.0  # for idle clients to send one more request after shutdown began

MOST_CONNECTIONS = 4000  # of a process; beyond that the one that has been idle for longest is closed
MOST_MEMORY = 256 * 1024 * 1024  # bytes of bodies and responses that a process buffers for its clients
MOST_READS, MOST_OTHERS = 512, 64  # queued requests

NICENESS = 5  # of the process for large requests, and of threads that may block: short reads take precedence
