"""AWS Glue, S3 and STS over HTTP: moto's server with what it lacks of Glue, and faults at the turn of a switch.

Added to moto: texts that AWS documents as too long, or with characters that it does not take, are refused; pages with
tokens, no more than Glue gives at once; UpdateTable refuses a stale VersionId and obeys SkipArchive; names fold to
lower case; each CatalogId is a catalog of its own; a fresh table has an UpdateTime.

What it does not prove: signatures and rights (any key may do anything), Lake Formation, quotas and the sizes that Glue
refuses, the order of its lists, Expression and partition filters as Glue reads them, OpenTableFormatInput, tables
handled by OpenTableFormat; SearchTables, GetCatalogs, column statistics and functions, which answer 500 as moto does.
"""

from __future__ import annotations

import base64
import io
import json
import socket
import threading
import urllib.parse
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from functools import cache
from typing import Any
from unittest import mock

import pytest

Environ = dict[str, Any]
ACCOUNT, REGION = "123456789012", "us-east-1"
ACCESS_KEY, SECRET_KEY = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
ANY = "*"
WRITES = ("CreateDatabase", "UpdateDatabase", "CreateTable", "UpdateTable", "CreatePartition")


class Fault(Enum):
    """What happens to a call; the two late ones wait `seconds`, or until they are let through."""

    ERROR = auto()  # 500 InternalServiceException, not applied
    THROTTLED = auto()  # 400 ThrottlingException, not applied
    EXPIRED = auto()  # 400 ExpiredTokenException, not applied
    REQUEST_LOST = auto()  # the connection ends, not applied
    REPLY_LOST = auto()  # applied, then the connection ends
    REQUEST_LATE = auto()  # applied late, though the caller may have left
    REPLY_LATE = auto()  # applied, answered late
    OWN = auto()  # what the test makes of it


ANSWERS = {
    Fault.ERROR: ("500 Internal Server Error", "InternalServiceException", "An internal error occurred"),
    Fault.THROTTLED: ("400 Bad Request", "ThrottlingException", "Rate exceeded"),
    Fault.EXPIRED: (
        "400 Bad Request",
        "ExpiredTokenException",
        "The security token included in the request is expired",
    ),
}


Apply = Callable[[Callable[..., Any]], list[bytes]]  # given what takes the status and the headers


@dataclass
class Rule:
    """`own` gives the answer, or None where the connection is to end."""

    operation: str
    fault: Fault
    times: int | None = 1
    after: int = 0
    seconds: float = 60
    own: Callable[[Apply, Callable[..., Any]], list[bytes] | None] = lambda apply, start_response: None


@dataclass
class Glue:
    """The running stand-in; keys are as good as any."""

    endpoint: str
    access_key: str = ACCESS_KEY
    secret_key: str = SECRET_KEY
    region: str = REGION
    account: str = ACCOUNT
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)  # (operation, parameters) as they came in
    lists_end: datetime | None = None
    shares: bool = False  # the targets of links with who asks for these, as AWS documents for a permitted caller
    expired: set[str] = field(default_factory=set)  # access keys whose every call is refused
    _rules: list[Rule] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _late: threading.Event = field(default_factory=threading.Event)  # what late calls wait for

    def client(self, service: str = "glue", **settings: Any) -> Any:
        """A boto3 client for a look behind Metalake's back; it does not retry."""
        import boto3
        from botocore.config import Config

        given = {
            "endpoint_url": self.endpoint,
            "aws_access_key_id": self.access_key,
            "aws_secret_access_key": self.secret_key,
            "region_name": self.region,
            "config": Config(retries={"total_max_attempts": 1}, connect_timeout=3, read_timeout=20),
        }
        return boto3.client(service, **given | settings)

    def create_bucket(self, name: str = "lake") -> str:
        """An S3 bucket; returns its URL, s3://lake."""
        self.client("s3").create_bucket(Bucket=name)
        return f"s3://{name}"

    def fail(self, operation: str, fault: Fault, *, times: int | None = 1, after: int = 0, seconds: float = 60) -> None:
        """The next `times` calls (None: all) of an operation, "UpdateTable" or ANY, go wrong, once `after` went well.

        The requests of S3 name no operation: "s3:PUT" is every PUT to it.
        """
        with self._lock:
            self._rules.append(Rule(operation, fault, times, after, seconds))

    def let_through(self) -> None:
        """The late calls that wait go on."""
        late, self._late = self._late, threading.Event()
        late.set()

    def be_late(self, rule: Rule) -> None:
        self._late.wait(rule.seconds)

    def stop_listing_new_ones(self) -> None:
        """GetTables and GetDatabases leave out what is created from now on; other calls find it."""
        from moto.core.utils import utcnow

        self.lists_end = utcnow()

    def heal(self) -> None:
        """No more faults, no key is expired, and lists are complete."""
        with self._lock:
            self._rules.clear()
        self.expired.clear()
        self.lists_end, self.shares = None, False
        self.let_through()

    def next_fault(self, operation: str) -> Rule | None:
        with self._lock:
            for rule in self._rules:
                if rule.operation not in (operation, ANY):
                    continue
                if rule.after:
                    rule.after -= 1
                    continue
                if rule.times is not None:
                    rule.times -= 1
                    if not rule.times:
                        self._rules.remove(rule)
                return rule
        return None

    def reset(self) -> None:
        """Empty every account and forget faults and calls."""
        from moto.moto_api._internal.models import moto_api_backend

        self.heal()
        self.calls.clear()
        moto_api_backend.reset()


def with_faults(application: Callable[..., Iterable[bytes]], glue: Glue) -> Callable[..., Iterable[bytes]]:
    """The WSGI application in front of moto's."""

    def answer(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        operation, parameters = _call(environ)
        if environ["PATH_INFO"].startswith("/moto-api"):
            return application(environ, start_response)
        glue.calls.append((operation, parameters))
        if operation in WRITES and (wrong := next(_broken(_inputs(operation), parameters, ""), "")):
            start_response("400 Bad Request", [("Content-Type", "application/x-amz-json-1.1")])
            message = f"1 validation error detected: Value at '{wrong}' failed to satisfy constraint"
            return [json.dumps({"__type": "InvalidInputException", "message": message}).encode()]
        rule = Rule(operation, Fault.EXPIRED) if _access_key(environ) in glue.expired else glue.next_fault(operation)
        if rule is None:
            return application(environ, start_response)
        if rule.fault in ANSWERS:
            status, kind, message = ANSWERS[rule.fault]
            if "HTTP_X_AMZ_TARGET" in environ:
                start_response(status, [("Content-Type", "application/x-amz-json-1.1")])
                return [json.dumps({"__type": kind, "message": message}).encode()]
            start_response(status, [("Content-Type", "text/xml")])  # STS and S3, with shorter names
            error = f"<Error><Code>{kind.removesuffix('Exception')}</Code><Message>{message}</Message></Error>"
            return [(error if operation.startswith("s3:") else f"<ErrorResponse>{error}</ErrorResponse>").encode()]
        if rule.fault is Fault.OWN:
            environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
            own = rule.own(lambda start: list(application(environ, start)), start_response)
            if own is not None:
                return own
        if rule.fault is Fault.REQUEST_LATE:
            glue.be_late(rule)
        if rule.fault not in (Fault.REQUEST_LOST, Fault.OWN):
            reply = list(application(environ, start_response))
            if rule.fault is Fault.REQUEST_LATE:
                return reply
            if rule.fault is Fault.REPLY_LATE:
                glue.be_late(rule)
                return reply
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        raise ConnectionResetError(rule.fault.name)

    return answer


@cache
def _inputs(operation: str) -> Any:
    from botocore.session import get_session

    return get_session().get_service_model("glue").operation_model(operation).input_shape


def _broken(shape: Any, given: Any, place: str) -> Iterator[str]:
    """The places of texts that are longer than AWS takes, or have characters that it does not take."""
    if shape.type_name == "structure":
        for name, value in given.items():
            yield from _broken(shape.members[name], value, f"{place}.{name}")
    elif shape.type_name == "list":
        for value in given:
            yield from _broken(shape.member, value, f"{place}.member")
    elif shape.type_name == "map":
        for key, value in given.items():
            yield from _broken(shape.key, key, f"{place}.key")
            yield from _broken(shape.value, value, f"{place}.value")
    elif shape.type_name == "string" and given is not None:
        odd = {"\r", "\n"} if "\\r\\n" in shape.metadata.get("pattern", "") else set()
        controls = {char for char in given if (char < " " and char != "\t") or char in "\ufffe\uffff"} - odd
        if len(given) > shape.metadata.get("max", len(given)) or ("pattern" in shape.metadata and controls):
            yield place


def _access_key(environ: Environ) -> str:
    return str(environ.get("HTTP_AUTHORIZATION", "")).partition("Credential=")[2].partition("/")[0]


def _call(environ: Environ) -> tuple[str, dict[str, Any]]:
    """The operation and its parameters; the body stays readable."""
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    form = environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded")
    if not (target or form):
        return f"s3:{environ['REQUEST_METHOD']}", {"path": environ["PATH_INFO"]}
    body: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    if target:
        return target.rpartition(".")[2], json.loads(body or b"{}")
    parameters = dict(urllib.parse.parse_qsl(body.decode()))
    return parameters.pop("Action", ""), parameters


def _glue_responses(glue: Glue) -> Any:
    """moto's Glue with the additions of this file; made late, since importing moto takes most of a second."""
    from moto.core.exceptions import JsonRESTError
    from moto.core.responses import ActionResult, EmptyResult
    from moto.glue.models import FakeTable, GlueBackend, glue_backends
    from moto.glue.responses import GlueResponse

    one_update_at_a_time = threading.Lock()

    class Responses(GlueResponse):
        @property
        def glue_backend(self) -> GlueBackend:
            return glue_backends[self.parameters.get("CatalogId") or self.current_account][self.region]

        @property
        def parameters(self) -> dict[str, Any]:
            given: dict[str, Any] = json.loads(self.body)
            for holder in ("DatabaseInput", "TableInput"):
                if "Name" in given.get(holder, {}):
                    given[holder]["Name"] = given[holder]["Name"].lower()
            return given

        def get_databases(self) -> ActionResult:
            databases = self._listed(self.glue_backend.get_databases())
            return self._page("DatabaseList", databases, 100, lambda one: one.name, lambda one: one.as_dict())

        def get_table(self) -> ActionResult:
            table = self.glue_backend.get_table(self.parameters["DatabaseName"], self.parameters["Name"])
            return ActionResult({"Table": self._table(table)})

        def get_tables(self) -> ActionResult:
            tables = self.glue_backend.get_tables(self.parameters["DatabaseName"], self.parameters.get("Expression"))
            return self._page("TableList", self._listed(tables), 100, lambda table: table.name, self._table)

        def get_table_versions(self) -> ActionResult:
            table = self.glue_backend.get_table(self.parameters["DatabaseName"], self.parameters["TableName"])
            versions = [int(version) for version in table.versions]
            return self._page(
                "TableVersions",
                versions,
                100,
                lambda version: -version,  # the newest first
                lambda version: {"VersionId": str(version), "Table": table.as_dict(str(version))},
            )

        def get_partitions(self) -> ActionResult:
            given = self.parameters
            partitions = self.glue_backend.get_partitions(
                given["DatabaseName"], given["TableName"], given.get("Expression") or ""
            )
            return self._page("Partitions", partitions, 1000, lambda one: one.values, lambda one: one.as_dict())

        def update_table(self) -> ActionResult:
            given = self.parameters
            with one_update_at_a_time:
                table = self.glue_backend.get_table(given["DatabaseName"], given["TableInput"]["Name"])
                if to := self._shared(table.as_dict()):
                    table = to
                current = str(table._current_version)
                if given.get("VersionId", current) != current:
                    said = f"VersionId {given['VersionId']} is not the current one, which is {current}"
                    raise JsonRESTError("ConcurrentModificationException", said)
                table.update(given["TableInput"])
                if given.get("SkipArchive"):
                    table.versions.pop(current)
            return EmptyResult()

        def _table(self, table: FakeTable) -> dict[str, Any]:
            entry = {"UpdateTime": table.created_time} | table.as_dict()
            if not (target := self._shared(entry)):
                return entry
            own = ("Name", "DatabaseName", "CatalogId", "CreateTime", "TargetTable")
            return target.as_dict() | {name: entry[name] for name in own}

        def _shared(self, entry: dict[str, Any]) -> FakeTable | None:
            """The target of a link whose caller may read it; None for another."""
            if not (glue.shares and (to := entry.get("TargetTable"))):
                return None
            backend = glue_backends[to.get("CatalogId") or self.current_account][self.region]
            with suppress(JsonRESTError):
                return backend.get_table(to["DatabaseName"], to["Name"])
            return None

        def _listed(self, all_of_them: list[Any]) -> list[Any]:
            end = glue.lists_end
            return all_of_them if end is None else [one for one in all_of_them if one.created_time < end]

        def _page(
            self,
            name: str,
            items: list[Any],
            most: int,
            key: Callable[[Any], Any],
            shape: Callable[[Any], dict[str, Any]],
        ) -> ActionResult:
            limit = self.parameters.get("MaxResults") or most
            if limit > most:
                raise JsonRESTError("InvalidInputException", f"MaxResults is {limit} and may be {most} at most")
            items, start = sorted(items, key=key), 0
            if token := self.parameters.get("NextToken"):
                start = bisect_right(items, json.loads(base64.b64decode(token)), key=key)
            page = items[start : start + limit]
            answer: dict[str, Any] = {name: [shape(one) for one in page]}
            if start + limit < len(items):
                answer["NextToken"] = base64.b64encode(json.dumps(key(page[-1])).encode()).decode()
            return ActionResult(answer)

    return Responses


@contextmanager
def running_glue() -> Iterator[Glue]:
    """Start the stand-in in threads of this process, on a free loopback port; one at a time."""
    import moto.glue.urls
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    class Quiet(MotoRequestHandler):
        def log(self, type: str, message: str, *args: Any) -> None:
            pass

    glue = Glue("")
    application = with_faults(DomainDispatcherApplication(create_backend_app), glue)
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    glue.endpoint = f"http://127.0.0.1:{server.server_port}"
    patched = mock.patch.dict(moto.glue.urls.url_paths, {"{0}/$": _glue_responses(glue).dispatch})
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    with patched:
        thread.start()
        try:
            yield glue
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


# -- Fixtures


@pytest.fixture(scope="session")
def glue_server() -> Iterator[Glue]:
    with running_glue() as glue:
        yield glue


@pytest.fixture
def glue(glue_server: Glue) -> Iterator[Glue]:
    """Glue, S3 and STS, empty, of this process alone, and without a fault; any client on this machine may use it."""
    glue_server.reset()
    yield glue_server
    glue_server.heal()
