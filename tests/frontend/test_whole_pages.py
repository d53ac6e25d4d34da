"""Every page in a real browser: no violation of accessibility in light and dark, no dialog, no report of the policy.

What the pages show has names and texts that look like markup. The fixtures fail on a dialog and on a complaint.
"""

from __future__ import annotations

import gzip
import urllib.request
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.frontend import hostile
from tests.frontend.axe import FRAME, violations
from tests.frontend.screens import ADDRESSES, PARTS, address
from tests.frontend.shop import Shop, made_shop, sign_in
from tests.servers import MetalakeServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

SCREENS = [route for route in ADDRESSES if route not in PARTS]
ROLE = "hostile"
HEAVIEST = 100_000  # bytes that the first load of a page may take, with all its files
HEAVIEST_OBJECT = 40_000
IN_DARK = ("components", "objects/<int:object_id>/access", "objects/<int:object_id>/grant", "tokens")
"""Pages whose colours are looked at in dark every day; the long run does so on all."""
OF_ONE_TEXT = [
    path
    for route, path in ADDRESSES.items()
    if route in SCREENS and any(part in path for part in ("{table}", "{view}", "{user}"))
]
OF_VIEWS = [path for path in OF_ONE_TEXT if "{view}" in path]
TYPED = (
    "/login?next={text}",
    "/search?q={text}",
    "/?after={text}&kind=metalake",
    "/objects/{table}/change?what=comment&comment={text}&was={text}",
    "/objects/{table}/change?what=rename&name={text}",
    "/objects/{table}/access?q={text}&privilege={text}&asOf={text}",
    "/objects/{table}/access?by=role&q={text}",
    "/objects/{table}/columns?q={text}",
    "/objects/{table}/columns?after={text}",
    "/objects/{table}/history?before={text}",
    "/objects/{view}/dialects/change?dialect={text}&sql={text}",
    "/objects/{view}/versions?before={text}",
    "/objects/{view}/versions/compare?before={text}&after={text}",
    "/objects/{schema}/views/new?name={text}&dialect={text}&sql={text}&mode={text}",
    "/objects/{schema}/tables/new?name={text}&format={text}&columns-TOTAL_FORMS=1&columns-0-name={text}&properties={text}",
    "/objects/{table}/access/changes?asOf={text}",
    "/objects/{table}/access/compare?from={text}&to={text}",
    "/objects/{table}/why?user={text}&privilege={text}&asOf={text}",
    "/objects/{schema}/grant?principal=user:{text}&principal=group:{text}&more={text}&privilege={text}&role={text}",
    "/objects/{schema}/revoke?role={text}&privilege={text}",
    "/objects/{schema}/see-as?user={text}",
    "/search?q=why {text} {text}",
    "/metalakes/{metalake}/matrix?people={text}&objects={text}&privilege={text}&asOf={text}",
    "/metalakes/{metalake}/people?q={text}",
    "/metalakes/{metalake}/people/compare?one={text}&other=group:{text}",
    "/metalakes/{metalake}/people?sort=groups&q={text}&after={text}",
    "/metalakes/{metalake}/people?sort=roles&q={text}",
    "/metalakes/{metalake}/people?sort={text}",
    "/metalakes/{metalake}/people/roles/{role}/edit?open={text}&objects={text}&q={text}&more={text}&holders={text}",
    "/metalakes/{metalake}/people/roles/{role}/edit?part=1&on-1=catalog%20shop&starts-1={text}&pick={text}&into={text}",
    "/metalakes/{metalake}/plan?text={text}",
    "/metalakes/{metalake}/plan/present?on={text}",
    "/metalakes/{metalake}/catalogs/new?provider={text}",
    "/invitations/{text}",
    "/{text}",
)
"""Addresses with what somebody typed, or was sent."""
TEXTS = ":is(input:not([type=hidden], [type=checkbox], [type=radio], [type=number], [type=datetime-local]), textarea)"
FORMS = "texts => new Set([...document.querySelectorAll(`main form ${texts}`)].map(field => field.form)).size"
SEND = """
([texts, number, text]) => {
  const fields = [...document.querySelectorAll(`main form ${texts}`)];
  const form = [...new Set(fields.map(field => field.form))][number];
  for (const field of fields.filter(field => field.form === form)) field.value = text;
  form.noValidate = true;
  form.requestSubmit();
}
"""


@pytest.fixture(scope="module")
def shop(metalake_server: MetalakeServer) -> Iterator[Shop]:
    """With people, a role and tokens of hostile names; the first hostile table has all texts of every day."""
    shop = made_shop(metalake_server)
    shop.add_hostile_people(ROLE, *hostile.SOME)
    tokens = shop.add_tokens(*hostile.SOME)
    yield shop
    shop.revoke_tokens(*tokens)


def ids_of(shop: Shop, text: str) -> dict[str, int]:
    ids, name = shop.ids(), hostile.as_name(text)
    return {
        "metalake": ids[shop.metalake],
        "catalog": ids["shop"],
        "schema": ids[f"schema {name}"],
        "table": ids[f"table {name}"],
        "view": ids[f"view view {name}"],
        "role": ids[f"role {ROLE}"],
        "user": shop.id_of("authz_user", name),
        "group": shop.id_of("authz_group", name),
    }


def problems_of(
    desk: Page, shop: Shop, in_dark: Collection[str], but_for: tuple[str, ...] = ()
) -> dict[str, list[str]]:
    """What axe finds, by address; the first page is looked at whole."""
    ids, problems, seen = ids_of(shop, hostile.SOME[0]), {}, 0
    for route, path in [*((route, address(route, ids)) for route in SCREENS), ("", "/nowhere")]:
        answer = desk.goto(f"{shop.server.url}{path}")
        if answer and answer.status == 405:  # a form is sent there, and nothing else
            continue
        if "{table}" in ADDRESSES.get(route, ""):
            assert hostile.as_name(hostile.SOME[0]) in desk.locator("main").inner_text(), path
        if wrong := violations(desk, in_dark=route in in_dark, but_for=but_for if seen else ()):
            problems[path] = wrong
        seen += 1
    assert seen > 20
    return problems


@pytest.mark.timeout(300)
def test_every_page_is_accessible_and_hostile_text_does_nothing(desk: Page, shop: Shop) -> None:
    assert problems_of(desk, shop, IN_DARK, but_for=FRAME) == {}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_axe_finds_nothing_in_dark_and_on_a_phone(desk: Page, shop: Shop) -> None:
    assert problems_of(desk, shop, SCREENS) == {}
    desk.set_viewport_size({"width": 390, "height": 800})
    assert problems_of(desk, shop, SCREENS) == {}


def test_the_sign_in_is_accessible(page: Page, shop: Shop) -> None:
    page.goto(f"{shop.server.url}/login")
    assert violations(page) == []


def test_a_form_outlives_a_new_sign_in_of_another_tab(desk: Page, shop: Shop) -> None:
    desk.goto(f"{shop.server.url}/tokens")
    desk.get_by_label("Name").fill("kept while away")
    other = desk.context.new_page()
    other.goto(f"{shop.server.url}/")
    other.get_by_role("button", name="Your account").click()
    other.get_by_role("button", name="Sign out").click()
    other.wait_for_url("**/login")
    trouble = desk.locator("#trouble")
    desk.get_by_role("button", name="Issue").click()
    trouble.get_by_text("You are signed out").wait_for()
    sign_in(other, shop)
    desk.get_by_role("button", name="Issue").click()
    trouble.get_by_text("You signed in anew meanwhile, as admin").wait_for()
    assert desk.get_by_label("Name").input_value() == "kept while away"
    desk.get_by_role("button", name="Issue").click()
    desk.get_by_label("The new token").wait_for()
    assert trouble.inner_text() == ""
    desk.get_by_label("Revoke kept while away", exact=True).click()
    desk.get_by_role("button", name="Yes, revoke kept while away").click()


def open_all(desk: Page, shop: Shop, ids: dict[str, int], paths: Iterable[str], text: str = "") -> None:
    for path in paths:
        desk.goto(f"{shop.server.url}{path.format(**ids, text=quote(text, safe=''))}")


def test_what_stands_in_an_address_does_nothing(desk: Page, shop: Shop) -> None:
    open_all(desk, shop, ids_of(shop, hostile.SOME[0]), TYPED, " ".join(hostile.SOME))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_no_hostile_text_does_anything_anywhere(desk: Page, shop: Shop) -> None:
    rest = sorted(set(hostile.ALL) - set(hostile.SOME))
    shop.add_hostile_people("more_of_them", *rest)
    shop.add_hostile("All of them", *hostile.ALL)
    made = shop.ids()
    ids = ids_of(shop, hostile.SOME[0]) | {"table": made["table All of them"], "view": made["view view All of them"]}
    open_all(desk, shop, ids, [ADDRESSES[route] for route in SCREENS])
    open_all(desk, shop, ids | {"view": made["view view 1 All of them"]}, OF_VIEWS)
    for text in rest:
        shop.add_hostile(text)
        open_all(desk, shop, ids_of(shop, text), OF_ONE_TEXT)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(4))
def test_what_is_typed_into_a_form_does_nothing(desk: Page, shop: Shop, part: int) -> None:
    """A quarter of the texts at once, in every field of every form."""
    text = " ".join(hostile.ALL[part::4])
    ids, sent = ids_of(shop, hostile.SOME[0]), 0
    open_all(desk, shop, ids, TYPED, text)
    for route in SCREENS:
        url = f"{shop.server.url}{address(route, ids)}"
        desk.goto(url)
        for number in range(desk.evaluate(FORMS, TEXTS)):
            desk.goto(url)
            desk.evaluate(SEND, [TEXTS, number, text])
            desk.wait_for_load_state("networkidle")
            sent += 1
    assert sent > 20


def test_a_first_load_is_light(desk: Page, shop: Shop) -> None:
    sizes: dict[str, int] = {}
    session = desk.context.new_cdp_session(desk)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    urls: dict[str, str] = {}
    session.on("Network.requestWillBeSent", lambda event: urls.update({event["requestId"]: event["request"]["url"]}))
    session.on(
        "Network.loadingFinished",
        lambda event: sizes.update(  # what the page before had asked for may still come in
            {urls[event["requestId"]]: int(event["encodedDataLength"])} if event["requestId"] in urls else {}
        ),
    )
    path = f"{shop.server.url}/objects/{shop.ids()['sales']}"
    desk.goto(path, wait_until="networkidle")
    assert sizes[path] < HEAVIEST_OBJECT
    assert sum(sizes.values()) < HEAVIEST, sizes
    assert all(url.startswith(shop.server.url) for url in sizes)


def test_files_have_their_checksum_in_their_names_and_are_kept_for_a_year(desk: Page, shop: Shop) -> None:
    hrefs = desk.evaluate(
        "[...document.querySelectorAll('link[rel=stylesheet], script[src]')].map(e => e.href || e.src)"
    )
    assert len(hrefs) > 4
    for href in hrefs:
        request = urllib.request.Request(href, headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert int(answer.headers["Cache-Control"].split("max-age=")[1].split(",")[0]) >= 365 * 86400, href
            assert "immutable" in answer.headers["Cache-Control"]
            assert answer.headers["Content-Encoding"] == "gzip"
            assert gzip.decompress(answer.read())
