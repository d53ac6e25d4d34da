"""Pooled connections to Hive metastores; their failures become our errors."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from hive_metastore.ThriftHiveMetastore import Client
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TException
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from metalake.errors import OutcomeUnknown, ProviderBusy, ProviderUnavailable
from providers.deadline import require_time
from providers.hive.errors import ANSWERS_WHOLE, About, is_write, translated
from providers.network.endpoints import CONNECT_SECONDS, READ_SECONDS, Endpoint
from providers.network.idle_connections import IdleConnections
from providers.network.metastores import CheckedSocket
from providers.network.response_budget import ResponseBudget, places_returned

ANSWER_SECONDS = 25.0  # for one whole response, even if bytes keep arriving
MOST_ITEMS = 1_000_000
CHUNK = 64 * 2**10
MOST_IDLE = 8  # idle connections per metastore; connecting costs more than most calls
IDLE_SECONDS = 60.0


class BoundedSocket(CheckedSocket):
    """A socket that limits the time and weight of each response."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port, CONNECT_SECONDS, READ_SECONDS)
        self.next_answer()

    def next_answer(self) -> None:
        self._until = time.monotonic() + ANSWER_SECONDS
        self.scale = ResponseBudget(f"{self.host}:{self.port}")

    def read(self, size: int) -> bytes:
        seconds = self._until - time.monotonic()
        if seconds <= 0:
            raise TTransportException(TTransportException.TIMED_OUT, "the answer took too long")
        self.handle.settimeout(min(READ_SECONDS, seconds))
        data: bytes = super().read(min(size, CHUNK))  # `size` comes from the response
        self.scale.add(len(data))
        return data

    def readAll(self, size: int) -> bytes:  # thrift's own is quadratic
        data = bytearray()
        while len(data) < size:
            data += self.read(size - len(data))
        return bytes(data)

    def is_quiet(self) -> bool:
        """Whether the peer has neither sent data nor closed the connection."""
        return not select.select([self.handle], [], [], 0)[0]


class CountingProtocol(TBinaryProtocolAccelerated):
    """Thrift's decoder, calling `made` for each struct that it creates."""

    def __init__(self, transport: TBufferedTransport, made: Callable[[], None]) -> None:
        limits = {"string_length_limit": settings.METALAKE_MAX_ANSWER, "container_length_limit": MOST_ITEMS}
        super().__init__(transport, strictRead=True, fallback=False, **limits)
        decode: Any = vars(self)["_fast_decode"]
        known = dict[type, Any]()

        def counted(spec: Any) -> Any:
            """The field spec of a struct, with each struct's class replaced by one that counts."""
            match spec:
                case [type() as struct, fields] if isinstance(spec, list):
                    if struct not in known:
                        known[struct] = [_counted(struct, made), None]
                        known[struct][1] = counted(fields)
                    return known[struct]
                case tuple():
                    return tuple(map(counted, spec))
            return spec

        self._fast_decode = lambda into, protocol, spec: decode(into, protocol, [spec[0], counted(spec)[1]])


def _counted(struct: type, made: Callable[[], None]) -> type:
    """A class, as the decoder requires one, that calls `made` and creates the original struct."""

    def make(_: type, *given: Any, **named: Any) -> Any:
        made()
        return struct(*given, **named)

    return type(struct.__name__, (struct,), {"__new__": make})


class Metastore:
    """An open connection. Raises ProviderUnavailable if it cannot be opened."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.where = f"{endpoint.host}:{endpoint.port}"
        self._socket = BoundedSocket(endpoint.host, endpoint.port)
        self._transport = TBufferedTransport(self._socket, CHUNK)
        self._client = Client(CountingProtocol(self._transport, lambda: self._socket.scale.add_part()))
        self.is_good = True
        self.idle_since = 0.0
        self._transport.open()

    def call(self, method: str, *arguments: Any, about: About) -> Any:
        """Call a method of the metastore. Raises our errors, from `translated`."""
        if is_write(method):
            require_time()
        self._socket.next_answer()
        self.is_good = False
        try:
            getattr(self._client, f"send_{method}")(*arguments)
        except (TException, OSError):
            # The metastore did nothing, since it executes only complete requests.
            raise ProviderUnavailable(f"The connection to {self.where} broke before {method} was sent.") from None
        try:
            answer = getattr(self._client, f"recv_{method}")()
        except ProviderBusy as busy:
            raise OutcomeUnknown(busy.message, kind="catalog") if is_write(method) else busy from None
        except ANSWERS_WHOLE as refusal:
            self.is_good = True
            raise translated(refusal, method, about, self.where) from None
        except Exception as failure:  # the decoder may raise anything for a malformed response
            raise translated(failure, method, about, self.where) from None
        self.is_good = True
        return answer

    @property
    def weight(self) -> int:
        """The weight of the last response, as `providers.network.response_budget` defines it."""
        return self._socket.scale.weight

    def is_quiet(self) -> bool:
        return self._socket.is_quiet()

    def close(self) -> None:
        self._transport.close()


_idle = IdleConnections["Metastore"](most_each=MOST_IDLE, seconds=IDLE_SECONDS)


@contextmanager
def connection(endpoints: Sequence[Endpoint]) -> Iterator[Metastore]:
    """A pooled or new connection to the first metastore that accepts one. Raises ProviderUnavailable."""
    address = tuple(endpoints)
    metastore = _idle.take(address) or connect(endpoints)
    try:
        with places_returned():
            yield metastore
    finally:
        if metastore.is_good:
            _idle.give_back(address, metastore)
        else:
            metastore.close()


def connect(endpoints: Sequence[Endpoint]) -> Metastore:
    """A new connection to the first metastore that accepts one. Raises ProviderUnavailable; nothing was sent then."""
    failures = []
    for endpoint in endpoints:
        try:
            return Metastore(endpoint)
        except ProviderUnavailable as failure:
            failures.append(failure)
    if len(failures) == 1:
        raise failures[0]
    raise ProviderUnavailable(" ".join(failure.message for failure in failures), kind="catalog")
