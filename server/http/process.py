"""A worker process of the server; gunicorn's arbiter starts, monitors and stops it."""

from __future__ import annotations

import asyncio
import mmap
import os
import resource
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from typing import Any

import uvloop
from django.conf import settings
from gunicorn.workers.base import Worker

from server.http import limits
from server.http.connection import Connection
from server.http.handover import Handover
from server.http.hot_reads import FastReads
from server.http.http_server import HttpServer

ASIDE = 0.002  # seconds that processes with fewer connections get to accept a new one first
SWITCH = 0.001  # seconds after which a computing thread yields to the others


class Balance:
    """The number of connections of each process, in shared memory; created before the fork."""

    PLACES = 512
    NOBODY = -1

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, 4 * self.PLACES)
        for place in range(self.PLACES):
            self.put(place, self.NOBODY)

    def put(self, place: int, connections: int) -> None:
        struct.pack_into("i", self.memory, 4 * (place % self.PLACES), connections)

    def fewest(self) -> int:
        counts = [count for (count,) in struct.iter_unpack("i", self.memory[:]) if count != self.NOBODY]
        return min(counts, default=0)


BALANCE = Balance()
HANDOVER = Handover()


class Roles:
    """Chooses the process for large requests, in the parent before each fork; a single process does everything."""

    def __init__(self) -> None:
        self.generation = 0  # SIGHUP starts a new generation of processes

    def renew(self, arbiter: Any) -> None:
        self.generation += 1

    def choose(self, arbiter: Any, worker: ServerWorker) -> None:
        worker.generation = self.generation
        others = [each for each in arbiter.WORKERS.values() if each.generation == self.generation]
        worker.is_alone = arbiter.cfg.workers == 1
        worker.is_for_large = not worker.is_alone and not any(each.is_for_large for each in others)


ROLES = Roles()


class ServerWorker(Worker):
    """A process with one event loop for I/O, and threads that handle requests."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.is_hurried = False
        self.entering: set[asyncio.Task[Any]] = set()
        self.generation, self.is_alone, self.is_for_large = 0, True, False  # set by ROLES

    def init_signals(self) -> None:
        """Reset the signals that the event loop does not handle."""
        for number in self.SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGABRT, self.handle_abort)
        signal.signal(signal.SIGWINCH, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)

    def run(self) -> None:
        sys.setswitchinterval(SWITCH)
        if self.is_for_large:
            os.nice(limits.NICENESS)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.ends = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            self.loop.add_signal_handler(number, self._end, number != signal.SIGTERM)
        _allow_files()
        if self.is_for_large:  # large requests compute rather than wait
            settings.METALAKE_READ_THREADS, settings.METALAKE_THREADS = 1, max(2, settings.METALAKE_THREADS // 2)
            self.server = HttpServer(self.wsgi, self.loop)
            self.listeners = [HANDOVER.out_of]
            self.loop.add_reader(HANDOVER.out_of, self._take_over)
        else:
            handover = None if self.is_alone else HANDOVER
            counts = lambda count: BALANCE.put(self.age, count)  # noqa: E731
            self.server = HttpServer(self.wsgi, self.loop, counts, handover, FastReads())
            self.listeners = [listener.sock for listener in self.sockets]
            BALANCE.put(self.age, 0)
            for listener in self.listeners:
                listener.setblocking(False)
                self.loop.add_reader(listener, self._on_connection, listener)
        self.server.open()
        while self.alive and self.ppid == os.getppid():
            if not self.server.is_stuck:
                self.notify()
            self.server.check_deadlines()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.ends.wait(), 1.0)
        await self._close()

    def _end(self, is_hurried: bool) -> None:
        self.alive = False
        self.ends.set()
        self.is_hurried = self.is_hurried or is_hurried

    # New connections

    def _on_connection(self, listener: socket.socket) -> None:
        """Accept a new connection: now if no process has fewer connections, otherwise after ASIDE.

        Every process is woken for it.
        """
        if len(self.server.connections) <= BALANCE.fewest():
            self._accept(listener)
            return
        self.loop.remove_reader(listener)
        self.loop.call_later(ASIDE, self._accept_later, listener)

    def _accept_later(self, listener: socket.socket) -> None:
        if self.alive:
            self._accept(listener)
            self.loop.add_reader(listener, self._on_connection, listener)

    def _accept(self, listener: socket.socket) -> bool:
        """Accept a pending connection; False if there is none, or no room for it."""
        try:
            client, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):  # another process was faster, or the client is gone
            return False
        except OSError as failure:  # too many open files
            self.log.error("a connection could not be accepted: %s", failure)
            self.server.make_room()
            return False
        self._enter(client)
        return True

    def _take_over(self) -> None:
        if handed_over := HANDOVER.take():
            self._enter(*handed_over)

    def _enter(self, client: socket.socket, given: bytes | None = None) -> None:
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made = self.loop.connect_accepted_socket(lambda: Connection(self.server, given), client)
        entering = self.loop.create_task(made)
        self.entering.add(entering)
        entering.add_done_callback(self.entering.discard)

    # The end

    async def _close(self) -> None:
        """Graceful shutdown: finish running requests, and give idle clients a moment to send one more."""
        for listener in self.listeners:
            self.loop.remove_reader(listener)
        # Once every process has closed it, new connections are refused and a proxy tries another node.
        for listener in self.sockets:
            while not self.is_for_large and self._accept(listener.sock):
                pass
            listener.close()
        self.server.is_closing, self.server.counts = True, bool
        BALANCE.put(self.age, BALANCE.NOBODY)
        began = time.monotonic()
        while (self.entering or not self.server.is_idle) and not self.is_hurried:
            passed = time.monotonic() - began
            if passed > self.cfg.graceful_timeout:
                break
            if passed > limits.PARTING:
                self.server.close_idle()
            self.notify()
            self.server.check_deadlines()
            await asyncio.sleep(0.05)


def _allow_files() -> None:
    """Raise the open-file limit to what the server's connections need, if the machine allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = limits.MOST_CONNECTIONS + 1024
    if soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(needed, hard), hard))
