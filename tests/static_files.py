"""The static files, looked for once in a process of the suite: each test client makes the middleware anew."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


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
