"""A server below a path of a proxy, which takes that path away or leaves it: clients of both wires, and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import requests
from gravitino import GravitinoAdminClient, GravitinoClient
from gravitino.api.catalog import Catalog
from gravitino.auth.basic_auth_provider import BasicAuthProvider
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema

from tests.frontend import signed_in
from tests.metalake_client.gcli import Gcli
from tests.names import own_name
from tests.recording import running_recorder
from tests.servers import MetalakeServer, running_metalake

if TYPE_CHECKING:
    from playwright.sync_api import Page, Response

pytestmark = pytest.mark.server
PREFIX = "/tools/metalake"
PASSWORD = "a long enough password"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetalakeServer]:
    with running_metalake(tmp_path_factory.mktemp("metalake"), METALAKE_PATH_PREFIX=PREFIX) as server:
        yield server


@pytest.fixture(scope="module", params=[PREFIX, ""], ids=["taken away", "left"])
def url(request: pytest.FixtureRequest, server: MetalakeServer) -> Iterator[str]:
    """Where the server is found behind the proxy."""
    with running_recorder(server.url, takes_away=request.param) as proxy:
        yield proxy.url + PREFIX


@pytest.fixture(scope="module")
def metalake(url: str, server: MetalakeServer) -> str:
    """Made by Gravitino's client, with the table lake.a.t by PyIceberg."""
    name, login = own_name("behind"), BasicAuthProvider("admin", server.admin_password)
    admin = GravitinoAdminClient(url, auth_data_provider=login)
    admin.create_metalake(name, "", {})
    client = GravitinoClient(url, name, auth_data_provider=login)
    client.add_user(f"ana-{name}")
    made = client.create_catalog("lake", Catalog.Type.RELATIONAL, "lakehouse-iceberg", "", {})
    assert [made.name()] == client.list_catalogs()
    basic = {"type": "basic", "basic": {"username": "admin", "password": server.admin_password}}
    lake = RestCatalog("lake", uri=f"{url}/iceberg/{name}", warehouse="lake", auth=basic)  # type: ignore[arg-type]
    for namespace in (("a",), ("a", "in/side")):
        lake.create_namespace(namespace)
    lake.create_table(("a", "t"), Schema())
    assert lake.list_namespaces("a") == [("a", "in/side")] and lake.load_table(("a", "t")).name() == ("a", "t")
    return name


def test_clients_and_files_of_engines(
    url: str,
    metalake: str,
    server: MetalakeServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    login = {"URL": f"{url}/", "METALAKE": metalake, "USER": "admin", "PASSWORD": server.admin_password}
    for name, value in {**login, "PROFILES": str(tmp_path / "none")}.items():
        monkeypatch.setenv(f"METALAKE_{name}", value)
    gcli = Gcli(capsys)
    assert [each["name"] for each in gcli.json("catalog", "list")] == ["lake"]
    gcli.ok("engine", "config", "pyiceberg", "--folder", str(tmp_path))
    assert f"{url}/iceberg/{metalake}" in (tmp_path / ".pyiceberg.yaml").read_text()
    described = requests.get(f"{url}/api/schema/?format=json", timeout=30).json()
    assert described["servers"] == [{"url": PREFIX}]
    for path, is_ok in (("/health", True), ("//health", False), ("x/health", False)):
        assert requests.get(url + path, timeout=30).ok is is_ok, path


@pytest.mark.parametrize("url", [PREFIX], indirect=True, ids=["taken away"])
def test_a_browser_stays_below_it(url: str, metalake: str, server: MetalakeServer, page: Page) -> None:
    went: list[Response] = []
    page.on("response", lambda answer: went.append(answer))
    page.goto(f"{url}/tokens")
    assert page.url == f"{url}/login?next={PREFIX.replace('/', '%2F')}%2Ftokens"
    signed_in._by_form(page, "admin", server.admin_password)
    page.wait_for_url(f"{url}/tokens")
    assert {cookie["path"] for cookie in page.context.cookies()} == {PREFIX}
    page.locator("a.brand").click()
    page.get_by_role("searchbox").fill("lake.a")
    page.locator("#palette-results a", has_text="schema").first.click()
    page.get_by_role("link", name="Grant", exact=True).click()
    page.locator("#grant-more").fill(f"ana-{metalake}")
    page.wait_for_selector("#grant-apply:enabled")
    page.get_by_role("button", name="Apply").click()
    toast = page.locator(".toast", has_text="may read")
    toast.get_by_role("button", name="Undo").click()
    page.locator(".toast", has_text="Undone").wait_for()
    for path in ("/admin/", "/api/schema/ui/"):
        page.goto(url + path)
    for each in went:
        assert each.status < 400 and urlsplit(each.url).path.startswith(f"{PREFIX}/"), (each.status, each.url)


def test_an_invitation_leads_back(url: str, metalake: str, server: MetalakeServer) -> None:
    admin = requests.Session()
    admin.auth = ("admin", server.admin_password)
    made = admin.post(f"{url}/api/metalakes/{metalake}/users/{own_name('ina')}/invitation", timeout=30).json()
    with requests.Session() as person:
        form = url + made["invitation"]["path"]
        assert person.get(form, timeout=30).ok
        given = {"password": PASSWORD, "again": PASSWORD, "csrfmiddlewaretoken": person.cookies["csrftoken"]}
        assert person.post(form, given, timeout=30).url == f"{url}/"
