"""Planted secrets, the surfaces that could show one, and the search for them in whatever spelling.

A surface is a function `(world) -> Iterator[(where, text)]` under @surface; what it asks for is searched, and so is
all that was logged meanwhile. To plant secrets in catalogs of another provider, add it to PLANTED_IN.
"""

from __future__ import annotations

import base64
import html
import json
import logging
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import quote, quote_plus

import orjson
from django.db import connection
from django.test import Client
from pydantic import Field, SecretStr, create_model

from providers.base import Settings
from providers.glue.settings import GlueSettings
from providers.hive.settings import HiveSettings
from providers.iceberg.provider import IcebergSettings
from providers.jdbc.settings import JdbcSettings
from tests.demo import PASSWORD

NAMES = (
    "s3.secret-access-key", "s3.session-token", "jdbc-password", "gravitino.bypass.db.passwd", "clientSecret",
    "http.bearer", "adls.account-key", "auth.header", "header.Authorization", "ssl.private_key",
    "keyPassphrase", "azure.connection-string", "gcs.oauth2.token", "fs.azure.sas.box.acme", "ssh_key",
    "hdfs.kerberos_ticket", "write.encryption-key", "tls.pem", "cert.key", "db.hmac",
)  # fmt: skip
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
AROUND = 24  # characters shown on each side of a leak


@dataclass(frozen=True)
class Canary:
    """A secret property: `sung` is the part of its value that nobody may ever read."""

    key: str
    value: str
    sung: str

    def spellings(self) -> dict[str, str]:
        """What is searched for, in lower case, and how it is spelled there; base64 begins at any of three places."""
        raw = self.sung.encode()
        found = {
            "plain": self.sung,
            "in a URL": quote(self.sung, safe=""),
            "in a form": quote_plus(self.sung),
            "in JSON": json.dumps(self.sung)[1:-1],
            "in HTML": html.escape(self.sung),
            "in Python": repr(self.sung)[1:-1],
            "in hex": raw.hex(),
        }
        for skipped in range(3):
            whole = base64.b64encode(b"\0" * skipped + raw).decode().rstrip("=")
            # What its neighbours would change is left out.
            begins, ends = (0, 2, 3)[skipped], len(whole) - (0 if (len(raw) + skipped) % 3 == 0 else 1)
            found[f"in base64 +{skipped}"] = whole[begins:ends]
            found[f"in base64url +{skipped}"] = whole[begins:ends].replace("+", "-").replace("/", "_")
        return {text.lower(): spelling for spelling, text in reversed(found.items())}


def canaries(seed: int) -> list[Canary]:
    """Fifty: ten declared secret, twenty by their names, five of each form."""
    random = Random(seed)

    def song(length: int, alphabet: str = ALPHABET) -> str:
        return "".join(random.choices(alphabet, k=length))

    found = [Canary(key, sung, sung) for key in DECLARED for sung in [song(20)]]
    found += [Canary(key, sung, sung) for key in NAMES for sung in [f'{song(12)}/+ &"<é{song(12)}']]
    for number in range(5):
        password, body, access_key = song(20), song(64), f"AKIA{song(16, ALPHABET[:26] + '0123456789')}"
        jwt = ".".join(["eyJhbGciOiJIUzI1NiJ9", f"eyJ{song(40)}", song(43)])
        pem = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"
        found += [
            Canary(f"endpoint-{number}", f"https://sales:{password}@flights.example/{number}", password),
            Canary(f"certificate-{number}", pem, body),
            Canary(f"bearer-of-{number}", jwt, jwt.rpartition(".")[2]),
            Canary(f"account-{number}", access_key, access_key),
        ]
    return found


DECLARED = tuple(f"dial-{number}" for number in range(10))


def declaring(settings: type[Settings]) -> type[Settings]:
    """A provider's settings, with ten secrets more that only the declaration tells."""
    fields: Any = {key.replace("-", "_"): (SecretStr | None, Field(None, alias=key)) for key in DECLARED}
    return create_model(f"Declaring{settings.__name__}", __base__=settings, **fields)


@dataclass(frozen=True)
class Planting:
    """Where canaries are planted: a provider, its settings, and what else a catalog of it needs."""

    provider: str
    of: str  # the dotted path of its class
    settings: type[Settings]
    properties: dict[str, str] = field(default_factory=dict)


PLANTED_IN = {
    "lakehouse-iceberg": Planting(
        "lakehouse-iceberg", "providers.iceberg.provider.IcebergProvider", declaring(IcebergSettings)
    ),
    # Nobody listens there: what fails to be reached is told without them, too.
    "hive": Planting(
        "hive",
        "providers.hive.provider.HiveProvider",
        declaring(HiveSettings),
        {"metastore.uris": "thrift://127.0.0.1:1"},
    ),
    "glue": Planting(
        "glue",
        "providers.glue.provider.GlueProvider",
        declaring(GlueSettings),
        {"aws-region": "eu-central-1", "aws-glue-endpoint": "http://127.0.0.1:1"},
    ),
    "jdbc-postgresql": Planting(
        "jdbc-postgresql",
        "providers.jdbc.provider.PostgreSQLProvider",
        declaring(JdbcSettings),
        {"jdbc-url": "jdbc:postgresql://127.0.0.1:1/sales", "jdbc-user": "crew", "jdbc-password": "any"},
    ),
}


@dataclass
class World:
    """The metalake demo: `admin` owns it and its catalogs, among which the canaries are spread."""

    planting: Planting
    planted: dict[str, list[Canary]]  # by catalog
    offered: list[Canary]  # given in requests that are refused, or are only a trial
    event_log: str

    @property
    def watched(self) -> list[Canary]:
        return [*(canary for catalog in self.planted.values() for canary in catalog), *self.offered]

    @property
    def fine(self) -> int | None:
        """The status of what works where tables are kept here; elsewhere nobody answers."""
        return None if self.planting.properties else 200

    @property
    def refused(self) -> int | None:
        return None if self.planting.properties else 409

    def registration(self, name: str, given: list[Canary], **changes: Any) -> dict[str, Any]:
        properties = self.planting.properties | {canary.key: canary.value for canary in given}
        return {
            "name": name,
            "type": "relational",
            "provider": self.planting.provider,
            "properties": properties,
        } | changes

    def send(self, method: str, path: str, body: Any = None, *, user: str = "admin", status: int | None = 200) -> str:
        """What a wire answers, headers included; a failure of the server's own fails the test."""
        credential = base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()
        content = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
        headers = {"Authorization": f"Basic {credential}"}
        answer = Client(raise_request_exception=False).generic(
            method, path, content, content_type="application/json", headers=headers, RAW_URI=path
        )
        told = answer.content.decode()
        assert answer.status_code != 500, told
        assert status in (None, answer.status_code), (status, answer.status_code, told)
        return f"{dict(answer.items())} {told}"


Heard = Iterator[tuple[str, str]]
Interface = Callable[[World], Heard]
SURFACES: dict[str, Interface] = {}


def surface(show: Interface) -> Interface:
    SURFACES[show.__name__] = show
    return show


@dataclass(frozen=True)
class Leak:
    where: str
    key: str
    spelling: str
    around: str


def leaks(heard: list[tuple[str, str]], watched: list[Canary]) -> list[Leak]:
    """Every place where a canary is heard, whatever its case."""
    places: dict[str, str] = {}
    for where, text in heard:
        places.setdefault(text.lower(), where)
    everything = "\n".join(places)
    spelled = [(canary, *pair) for canary in watched for pair in canary.spellings().items() if pair[0] in everything]
    return [
        Leak(where, canary.key, spelling, text[max(0, (at := text.index(needle)) - AROUND) : at + AROUND])
        for canary, needle, spelling in spelled
        for text, where in places.items()
        if needle in text
    ]


class Listening(logging.Handler):
    """All that is logged, at any level: messages, arguments, tracebacks and extra fields."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.heard: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        lines = [record.getMessage()]
        if record.name != "django.db.backends":  # whose fields say the message again
            lines += [repr(record.args), repr(vars(record))]
            if record.exc_info:
                lines += traceback.format_exception(*record.exc_info)
        self.heard.append((f"log {record.name}", "\n".join(lines)))


def dump() -> Heard:
    """Every row of every table."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            for row in cursor.fetchall():
                yield (
                    f"table {table}",
                    " ".join(value.decode("latin-1") if isinstance(value, bytes) else str(value) for value in row),
                )
