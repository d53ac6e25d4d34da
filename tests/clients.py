"""Test clients come at once: what a server makes at its start, each of them would else make for itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

MIDDLEWARE = ("_middleware_chain", "_view_middleware", "_template_response_middleware", "_exception_middleware")


@pytest.fixture(scope="session", autouse=True)
def middleware_is_made_once() -> Iterator[None]:
    """All clients of a process share it, as all requests to a server do, until a setting is changed."""
    from django.core.signals import setting_changed
    from django.test.client import ClientHandler

    load = ClientHandler.load_middleware
    made: dict[str, Any] = {}

    def load_middleware(handler: ClientHandler, is_async: bool = False) -> None:
        if not made:
            load(handler, is_async)
            made.update((name, getattr(handler, name)) for name in MIDDLEWARE)
        vars(handler).update(made)

    def forget(**_: Any) -> None:
        made.clear()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientHandler, "load_middleware", load_middleware)
        setting_changed.connect(forget)
        yield
        setting_changed.disconnect(forget)


@pytest.fixture(scope="session", autouse=True)
def static_files_are_found_once() -> Iterator[None]:
    """A server looks for them once at its start. For a client that asks one thing it is nine tenths of the time."""
    from whitenoise.middleware import WhiteNoiseMiddleware

    look = WhiteNoiseMiddleware.add_files_from_finders
    found: dict[str, object] = {}

    def add_files(middleware: WhiteNoiseMiddleware) -> None:
        if not found:
            look(middleware)
            found.update(middleware.files)
        middleware.files.update(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", add_files)
        yield
