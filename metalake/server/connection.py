"""One client's connection: reads its requests one after the other, and writes the answers.

All of it runs on the event loop's thread.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, cast

from metalake.server import limits
from metalake.server.answers import CONTINUE, Refused, refusal
from metalake.server.requests import Reader

if TYPE_CHECKING:
    from metalake.server.http_server import HttpServer


class Connection(asyncio.Protocol):
    """What it waits for has a time by which it is due; the server looks at every connection each second."""

    transport: asyncio.Transport
    reader: Reader

    def __init__(self, server: HttpServer, given: bytes | None = None) -> None:
        """`given` is what another process has read of it."""
        self.server = server
        self.given = given
        self.read = bytearray()  # all of the request that is read, for as long as another process may have it
        self.may_move = False
        self.ahead = b""  # what came behind a request that is not answered yet
        self.is_answering = False
        self.is_parting = False  # no further request is read
        self.is_full = False  # the client does not take what it is sent
        self.is_half_closed = False  # the client sends nothing more
        self.is_gone = False
        self.began = 0.0  # when the request did
        self.due = 0.0
        self.rests_since = 0.0
        self.came = 0  # bytes of the body by the last look
        self.unsent, self.unsent_due = 0, 0.0  # bytes of answers by the last look, and when there must be fewer

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop has its own class
        peer, here = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self.reader = Reader(peer[:2] if peer else ("", 0), here[:2], self.server.kept)
        self.transport.set_write_buffer_limits(high=limits.AHEAD)
        self._rest()
        self.server.enters(self)
        if self.given is not None:
            self._read(self.given)

    def connection_lost(self, failure: Exception | None) -> None:
        self.is_gone = True
        self.reader.forget()
        self.server.leaves(self)

    def data_received(self, data: bytes) -> None:
        if self.is_parting:
            return  # who parts hears the answer, whatever it still sends
        if self.is_answering or self.is_full or self.ahead:
            self.ahead += data
            if len(self.ahead) > limits.AHEAD:
                self.transport.pause_reading()
        else:
            self._read(data)

    def eof_received(self) -> bool:
        """Whoever sends no more still hears the answers to what it sent."""
        self.is_half_closed = True
        return self.is_answering or bool(self.ahead)

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        if not (self.is_answering or self.is_parting):
            self._go_on()

    # Reading

    def _rest(self) -> None:
        """Between two requests."""
        self.rests_since = time.monotonic()
        self.due = self.rests_since + limits.IDLE

    @property
    def is_resting(self) -> bool:
        return not (self.is_answering or self.is_parting or self.reader.has_begun)

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
        elif reader.has_head and not had_head:
            self.came, self.due = 0, time.monotonic() + limits.STEP
            if reader.expects_word and not reader.size:
                self.transport.write(CONTINUE)
        if self.is_half_closed and not reader.is_whole:
            self.transport.close()  # the rest will not come

    def move(self) -> bool:
        """To the process for large requests, with all that was read; False where it stays after all."""
        if self.may_move and not self.transport.get_write_buffer_size():
            self.transport.pause_reading()
            client = self.transport.get_extra_info("socket").fileno()
            if self.server.hand_over(client, bytes(self.read) + self.ahead):
                self.is_gone = True
                self.transport.abort()  # which closes this process's file of it alone
                return True
            self.transport.resume_reading()
        self.read, self.may_move = bytearray(), False
        return False

    def _go_on(self) -> None:
        """With what came meanwhile."""
        if self.is_gone or self.is_parting or self.is_answering or self.is_full:
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
        """The answer to the request that was taken; then the next one, or the end."""
        self.is_answering = False
        if self.is_gone:
            return
        self.transport.write(answer)
        if closes:
            self._part(lingers=bool(self.ahead))
            return
        self.ahead = self.reader.next() + self.ahead
        if self.is_half_closed and not self.ahead:
            self._part(lingers=False)
            return
        self._rest()
        if not self.is_full:
            self.server.loop.call_soon(self._go_on) if self.ahead else self.transport.resume_reading()

    def refuse(self, refused: Refused) -> None:
        """End with a reason: nobody knows any more where the client's next request begins."""
        self.transport.write(refusal(refused, is_head=self.reader.is_head))
        self.reader.forget()
        self.server.tells(self, refused.status)
        self._part(lingers=True)

    def _part(self, *, lingers: bool) -> None:
        """A client that is still sending when its connection closes would not hear the answer."""
        self.is_parting = True
        self.ahead = b""
        self.due = time.monotonic() + limits.LINGER
        if self.is_half_closed or not lingers:
            self.transport.close()
            return
        self.transport.write_eof()
        self.transport.resume_reading()

    # Deadlines

    def look(self, now: float) -> None:
        """Whether what it waits for is there in time."""
        unsent = self.transport.get_write_buffer_size()
        self.server.kept.others += unsent + len(self.ahead)
        if unsent:
            self._require_taken(unsent, now)
            return
        self.unsent = 0
        if self.is_answering or now < self.due:
            return
        reader = self.reader
        if self.is_parting:
            self.transport.abort()
        elif not reader.has_begun:
            self.transport.close()
        elif not reader.has_head:
            self.refuse(Refused(408, f"The head of the request did not come within {limits.HEAD:.0f} seconds."))
        elif reader.size - self.came < limits.LEAST or now - self.began > limits.BODY:
            self.refuse(Refused(408, "The body of the request comes too slowly."))
        else:
            self.came, self.due = reader.size, now + limits.STEP

    def _require_taken(self, unsent: int, now: float) -> None:
        if not self.unsent:
            self.unsent, self.unsent_due = unsent, now + limits.STEP
        elif now >= self.unsent_due:
            if unsent > self.unsent - limits.LEAST:
                self.transport.abort()
            self.unsent, self.unsent_due = unsent, now + limits.STEP
        self.due = max(self.due, now + limits.LINGER)
