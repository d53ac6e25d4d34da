"""Accounts in a browser: signed in by the form once, and by that session's cookie from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import requests

from tests.servers import MetalakeServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

COOKIE = "sessionid"
_sessions: dict[tuple[str, str], str] = {}
"""The session of an account, by the URL of its server and its name; it may have ended since."""


def sign_in(page: Page, server: MetalakeServer, name: str = "admin", password: str | None = None) -> None:
    """Open the first page as this account."""
    if session := _sessions.get((server.url, name)):
        page.context.add_cookies([{"name": COOKIE, "value": session, "url": server.url}])
    page.goto(f"{server.url}/")
    if page.url.endswith("/login"):
        _by_form(page, name, password or server.admin_password)
        page.wait_for_url(f"{server.url}/")
        (session,) = (cookie["value"] for cookie in page.context.cookies() if cookie["name"] == COOKIE)
        _sessions[server.url, name] = session


def _by_form(page: Page, name: str, password: str) -> None:
    page.wait_for_selector("input[name=username]:focus")
    page.keyboard.type(name)
    page.keyboard.press("Tab")
    page.keyboard.type(password)
    page.keyboard.press("Enter")


def accept(server: MetalakeServer, name: str, path: str, password: str) -> None:
    """Set a first password by the path of an invitation, which signs the person in."""
    with requests.Session() as person:
        person.get(f"{server.url}{path}", timeout=30).raise_for_status()
        given = {"password": password, "again": password, "csrfmiddlewaretoken": person.cookies["csrftoken"]}
        person.post(f"{server.url}{path}", given, timeout=30).raise_for_status()
        _sessions[server.url, name] = person.cookies[COOKIE]
