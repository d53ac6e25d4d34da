"""A server whose system catalog lies where the Spark of the suite may write, and jobs that run in that Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from metalake_client.rest import Client
from tests.names import own_name
from tests.servers import ADMIN_PASSWORD, MetalakeServer, running_metalake
from tests.spark import Spark


class Lab:
    """A metalake of its own with a system catalog, its owner `admin`, and the tokens of a job."""

    def __init__(self, server: MetalakeServer, spark: Spark) -> None:
        self.server, self.spark, self.metalake = server, spark, own_name("m")
        self._ids: dict[str, str] = {}
        self.admin = Client(server.url, user="admin", password=ADMIN_PASSWORD)
        self.admin.call("POST", "metalakes", body={"name": self.metalake})
        self.system: dict[str, Any] = self.call("POST", "system")["system"]
        self.token = self.token_of("admin")
        self.system_token = self.token_of(self.system["principal"])

    def call(self, method: str, *path: str, body: Any = None, **query: str) -> Any:
        """What the owner of the metalake is answered below it."""
        return self.admin.call(method, "metalakes", self.metalake, *path, body=body, query=query)

    def token_of(self, user: str) -> str:
        token = self.admin.call("POST", "tokens", body={"name": own_name("t"), "user": user})["token"]
        secret: str = token["secret"]
        self._ids[secret] = str(token["id"])
        return secret

    def revoke(self, which: str) -> str:
        """Revoke `token` or `system_token`, and issue another; the secret of the former."""
        secret: str = getattr(self, which)
        Client(self.server.url, token=secret).call("DELETE", "tokens", self._ids[secret])
        setattr(self, which, self.token_of("admin" if which == "token" else self.system["principal"]))
        return secret

    @property
    def environment(self) -> dict[str, str]:
        return {
            "METALAKE_URL": self.server.url,
            "METALAKE_METALAKE": self.metalake,
            "METALAKE_TOKEN": self.token,
            "METALAKE_SYSTEM_TOKEN": self.system_token,
        }

    def python(self, code: str, timeout: float = 120) -> str:
        """What a program prints that runs beside Spark."""
        output: str = self.spark.call("python", code, self.environment, timeout=timeout)
        return output

    def run(self, module: str, *arguments: str, before: str = "") -> tuple[int, str]:
        """Run a job to its end: its exit code and what it printed on both streams; `before` is code that runs first."""
        printed = self.python(
            "import contextlib, io, json, sys\n"
            f"{before}\n"
            f"from {module} import main\n"
            "output = io.StringIO()\n"
            "with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):\n"
            f"    code = main({list(arguments)!r})\n"
            "print(json.dumps([code, output.getvalue()]))"
        )
        code, output = json.loads(printed)
        return code, output

    def rows(self, query: str) -> list[dict[str, Any]]:
        """What a query answers the owner, in which a table is `system.schema.name`."""
        printed = self.python(
            "import json\nfrom pipelines.job import Job\n"
            f"rows = Job.from_environment().session().sql({query!r}).collect()\n"
            "print(json.dumps([row.asDict(recursive=True) for row in rows], default=str))"
        )
        rows: list[dict[str, Any]] = json.loads(printed)
        return rows

    def refs(self, schema: str, table: str) -> set[str]:
        """The branches of a result table."""
        path = ("system", "namespaces", schema, "tables", table)
        metadata = self.admin.call_iceberg("GET", self.metalake, *path)["metadata"]
        return {*metadata.get("refs", {})}


@pytest.fixture(scope="session")
def lab_server(tmp_path_factory: pytest.TempPathFactory, iceberg_spark: Spark) -> Iterator[MetalakeServer]:
    warehouse = iceberg_spark.folder / own_name("system")
    with running_metalake(tmp_path_factory.mktemp("metalake"), METALAKE_WAREHOUSE=str(warehouse)) as server:
        yield server


@pytest.fixture
def lab(lab_server: MetalakeServer, iceberg_spark: Spark) -> Lab:
    return Lab(lab_server, iceberg_spark)
