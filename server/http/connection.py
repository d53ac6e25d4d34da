"""One client connection: reads requests one after the other and writes the responses.

All of it runs on the event loop's thread.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, cast

from server.http import limits
from server.http.request_parser import Reader
from server.http.responses import CONTINUE, Refused, refusal

if TYPE_CHECKING:
    from server.http.http_server import HttpServer


class Connection(asyncio.Protocol):
    """Everything that a connection waits for has a deadline, which the server checks every second."""

    transport: asyncio.Transport
    reader: Reader

    def __init__(self, server: HttpServer, given: bytes | None = None) -> None:
        """`given`: the bytes that another process has already read from it."""
        self.server = server
        self.given = given
        self.read = bytearray()  # the bytes read of the request, while it may still move to another process
        self.may_move = False
        self.ahead = b""  # pipelined bytes, received before the current response was sent
        self.is_answering = False
        self.is_closing = False  # no further request is read
        self.is_full = False  # the client does not read its responses fast enough
        self.is_half_closed = False  # the client has closed its sending side
        self.is_gone = False
        self.began = 0.0  # when the request began
        self.due = 0.0
        self.idle_since = 0.0
        self.received = 0  # bytes of the body at the last check
        self.unsent, self.unsent_due = 0, 0.0  # unsent bytes at the last check, and when there must be fewer

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop has a class of its own
        peer, here = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self.reader = Reader(peer[:2] if peer else ("", 0), here[:2], self.server.memory)
        self.transport.set_write_buffer_limits(high=limits.AHEAD)
        self._begin_idle()
        self.server.enters(self)
        if self.given is not None:
            self._read(self.given)

    def connection_lost(self, failure: Exception | None) -> None:
        self.is_gone = True
        self.reader.forget()
        self.server.leaves(self)

    def data_received(self, data: bytes) -> None:
        if self.is_closing:
            return  # drop what the client still sends
        if self.is_answering or self.is_full or self.ahead:
            self.ahead += data
            if len(self.ahead) > limits.AHEAD:
                self.transport.pause_reading()
        else:
            self._read(data)

    def eof_received(self) -> bool:
        """A client that closed its sending side still gets the responses to what it sent."""
        self.is_half_closed = True
        return self.is_answering or bool(self.ahead)

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        if not (self.is_answering or self.is_closing):
            self._resume()

    # Reading

    def _begin_idle(self) -> None:
        """Start the idle timeout between two requests."""
        self.idle_since = time.monotonic()
        self.due = self.idle_since + limits.IDLE

    @property
    def is_idle(self) -> bool:
        return not (self.is_answering or self.is_closing or self.reader.has_begun)

    def _read(self, data: bytes) -> None:
        reader = self.reader
        if not reader.has_begun:
            self.began = time.monotonic()
            self.due = self.began + limits.HEAD
            self.read, self.may_move = bytearray(), self.server.hands_over
        if self.may_move:
            self.read += data
        had_head = reader.has_head
        try:
            reader.feed(data)
        except Refused as refused:
            self.refuse(refused)
            return
        if self.may_move and reader.is_large and self.move():
            return
        if reader.is_whole:
            self.is_answering = True
            self.server.take(self)
            return
        if reader.has_head and not had_head:
            self.received, self.due = 0, time.monotonic() + limits.STEP
            if reader.expects_continue and not reader.size:
                self.transport.write(CONTINUE)
        if self.is_half_closed:
            self.transport.close()  # the rest will not come

    def move(self) -> bool:
        """Hand the connection, and the bytes read, to the process for large requests; False if it has to stay."""
        if self.may_move and not self.transport.get_write_buffer_size():
            self.transport.pause_reading()
            client = self.transport.get_extra_info("socket").fileno()
            if self.server.hand_over(client, bytes(self.read) + self.ahead):
                self.is_gone = True
                self.transport.abort()  # closes only this process's descriptor
                return True
            self.transport.resume_reading()
        self.read, self.may_move = bytearray(), False
        return False

    def _resume(self) -> None:
        """Read what arrived in the meantime."""
        if self.is_gone or self.is_closing or self.is_answering or self.is_full:
            return
        self.transport.resume_reading()
        if self.ahead:
            data, self.ahead = self.ahead, b""
            self._read(data)

    # Answering

    @property
    def keeps_alive(self) -> bool:
        is_last = (self.is_half_closed or self.given is not None) and not (self.ahead or self.reader.has_ahead)
        return self.reader.keeps_alive and not (is_last or self.server.is_closing)

    def send(self, answer: bytes, *, closes: bool) -> None:
        """Send the response to the current request; then continue with the next one, or close."""
        self.is_answering = False
        if self.is_gone:
            return
        self.transport.write(answer)
        if closes:
            self._close(lingers=bool(self.ahead))
            return
        self.ahead = self.reader.next() + self.ahead
        if self.is_half_closed and not self.ahead:
            self._close(lingers=False)
            return
        self._begin_idle()
        if not self.is_full:
            self.server.loop.call_soon(self._resume) if self.ahead else self.transport.resume_reading()

    def refuse(self, refused: Refused) -> None:
        """Send an error and close, since it is unknown where the client's next request begins."""
        self.transport.write(refusal(refused, is_head=self.reader.is_head))
        self.reader.forget()
        self.server.log_unreadable(self, refused.status)
        self._close(lingers=True)

    def _close(self, *, lingers: bool) -> None:
        """Close; with `lingers` after a delay, since a client that is still sending would not read the response."""
        self.is_closing = True
        self.ahead = b""
        self.due = time.monotonic() + limits.LINGER
        if self.is_half_closed or not lingers:
            self.transport.close()
            return
        self.transport.write_eof()
        self.transport.resume_reading()

    # Deadlines

    def check_deadlines(self, now: float) -> None:
        unsent = self.transport.get_write_buffer_size()
        self.server.memory.others += unsent + len(self.ahead)
        if unsent:
            self._require_reading(unsent, now)
            return
        self.unsent = 0
        if self.is_answering or now < self.due:
            return
        reader = self.reader
        if self.is_closing:
            self.transport.abort()
        elif not reader.has_begun:
            self.transport.close()
        elif not reader.has_head:
            self.refuse(Refused(408, f"The head of the request did not come within {limits.HEAD:.0f} seconds."))
        elif reader.size - self.received < limits.LEAST or now - self.began > limits.BODY:
            self.refuse(Refused(408, "The body of the request comes too slowly."))
        else:
            self.received, self.due = reader.size, now + limits.STEP

    def _require_reading(self, unsent: int, now: float) -> None:
        if not self.unsent:
            self.unsent, self.unsent_due = unsent, now + limits.STEP
        elif now >= self.unsent_due:
            if unsent > self.unsent - limits.LEAST:
                self.transport.abort()
            self.unsent, self.unsent_due = unsent, now + limits.STEP
        self.due = max(self.due, now + limits.LINGER)
