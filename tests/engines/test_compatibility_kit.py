"""Iceberg's own compatibility kit of REST catalogs, against a server with authorization on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.catalogs.racing import Client
from tests.confined import confined
from tests.jars import cache, jars, needs_jars, only_one, pyspark_jars
from tests.parts import needs
from tests.servers import REPOSITORY, MetalakeServer, StartMetalake

TABLES, VIEWS = (f"org.apache.iceberg.rest.RESTCompatibilityKit{part}CatalogTests" for part in ("", "View"))
CASES, CASES_OF_VIEWS = 106, 51
# What docs/decisions/metadata-in-memory.md says why.
DOCUMENTED = {"testLoadTableWithMissingMetadataFile"}
# What the kit itself never asks of a REST catalog: empty namespaces, nested ones, slashes in names, one is disabled.
NEVER_RUN = {
    "createAndDropEmptyNamespace", "createTableInUniqueLocation", "listNamespacesWithEmptyNamespace",
    "listTablesInEmptyNamespace", "namespacePropertiesOnEmptyNamespace", "testDropNamespaceWithNestedNamespace",
    "testListNestedNamespaces", "testNamespaceWithSlash", "testTableNameWithSlash",
}  # fmt: skip
HADOOP = ("hadoop-client-*", "avro-1*", "jackson-[acd]*-2*", "RoaringBitmap-*", "slf4j-api-*", "commons-*")


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Path]:
    """A folder of the test's own, which the kit reaches as the places that it asks for: `file:/tmp/<namespace>`."""
    for part in ("java", "spark", "confinement"):
        needs(part)
    needs_jars("iceberg-kit")
    folder = tmp_path / "kit-places"
    links = {Path("/tmp", name): folder / name for name in ("ns", "newdb")}
    with only_one(cache() / "iceberg-kit.lock"):
        for link, target in links.items():
            if link.is_symlink() and link.readlink().parent.name == folder.name:
                link.unlink()  # of a run that was killed
            target.mkdir(parents=True)
            link.symlink_to(target)
        yield folder
        for link in links:
            link.unlink()


def catalog_of_its_own(server: MetalakeServer, places: Path, *others: Path) -> str:
    """The catalog `kit`, all that its owner has in the metalake; a personal token of his."""
    admin = Client(server.url)

    def call(method: str, path: str, body: Mapping[str, object]) -> dict[str, dict[str, str]]:
        answer = admin.send(method, f"/api/{path}", body)
        assert answer.status == 200, answer
        return answer.body

    asked_for = ",".join(place.as_uri() for place in (*places.iterdir(), *others))
    properties = {"warehouse": (places / "lake").as_uri(), "allowed-locations": asked_for}
    kit = {"name": "kit", "type": "relational", "provider": "lakehouse-iceberg", "properties": properties}
    call("POST", "metalakes/demo/users", {"name": "kim"})
    call("POST", "metalakes/demo/catalogs", kit)
    call("PUT", "metalakes/demo/owners/catalog/kit", {"name": "kim", "type": "USER"})
    return call("POST", "tokens", {"name": "kit", "user": "kim"})["token"]["secret"]


def run_kit(folder: Path, asked: str, **properties: str) -> dict[str, str]:
    """What each case came to: `passed`, `failed: <why>` or `skipped`. It can change files below the folder alone."""
    of_spark = [str(jar) for pattern in HADOOP for jar in sorted(pyspark_jars().glob(f"{pattern}.jar"))]
    classes = os.pathsep.join([*map(str, jars("iceberg-kit")), *of_spark])
    settings = {f"-D{name}={value}" for name, value in properties.items()}
    program = ["java", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx512m", f"-Djava.io.tmpdir={folder}", *settings]
    suite = ["--select-class", asked, "--config", "rck.local=false", "--reports-dir", str(folder), "--details", "none"]
    command = [*program, "-cp", classes, "org.junit.platform.console.ConsoleLauncher", "execute", *suite]
    # It writes beside the server into the same folders, so it is of the same user.
    alone = confined([folder], *command, as_user=False)
    ended = subprocess.run(alone, cwd=folder, capture_output=True, text=True, timeout=500, check=False)
    reports = list(folder.glob("TEST-*jupiter.xml"))
    assert reports, ended.stdout[-5_000:] + ended.stderr[-5_000:]
    return {
        f"{case.get('name')}": _outcome(case)
        for report in reports
        for case in ElementTree.parse(report).iter("testcase")
    }


def _outcome(case: ElementTree.Element) -> str:
    for problem in (*case.iter("failure"), *case.iter("error")):
        return f"failed: {problem.text:.1000}"
    return "skipped" if case.find("skipped") is not None else "passed"


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("overrides", ["true", "false"])
def test_no_case_fails_but_the_documented_one(
    start_metalake: StartMetalake, tmp_path: Path, places: Path, overrides: str
) -> None:
    """Whether the server may put tables elsewhere than the kit asks, or is held to the places."""
    server = start_metalake(METALAKE_FILE_LOCATIONS=str(places))
    token = catalog_of_its_own(server, places)
    flags = dict.fromkeys(("rck.requires-namespace-create", "rck.supports-names-with-dot"), "true")
    flags["rck.overrides-requested-location"] = overrides
    wire = {"uri": f"{server.url}/iceberg/demo", "warehouse": "kit", "token": token}
    found = run_kit(tmp_path, TABLES, **wire, **flags)
    assert len(found) == CASES
    failed = {name.partition("(")[0]: how for name, how in found.items() if how.startswith("failed")}
    assert failed.keys() == DOCUMENTED, failed
    assert {name.partition("(")[0] for name, how in found.items() if how == "skipped"} == NEVER_RUN


@pytest.mark.long
@pytest.mark.timeout(600)
def test_no_case_of_views_fails(start_metalake: StartMetalake, tmp_path: Path, places: Path) -> None:
    server = start_metalake(METALAKE_FILE_LOCATIONS=f"{places},{tmp_path}")
    token = catalog_of_its_own(server, places, tmp_path)
    flags = dict.fromkeys(("rck.requires-namespace-create", "rck.supports-names-with-dot"), "true")
    wire = {"uri": f"{server.url}/iceberg/demo", "warehouse": "kit", "token": token}
    found = run_kit(tmp_path, VIEWS, **wire, **flags)
    assert len(found) == CASES_OF_VIEWS
    assert {name: how for name, how in found.items() if how.startswith("failed")} == {}


def test_the_documented_case_is_documented() -> None:
    said = (REPOSITORY / "docs/decisions/metadata-in-memory.md").read_text()
    assert all(f"`{name}`" in said for name in DOCUMENTED)
