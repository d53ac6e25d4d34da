"""The client of the demonstration: what is not the server hears nothing of its caller."""

from __future__ import annotations

import pytest

from pipelines.rest import Client, Refused
from tests.providers.network.conftest import site as site


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_refused(site, status) -> None:
    elsewhere = site({"/api/metalakes": (200, {}, b"{}")})
    first = site({"/api/metalakes": (status, {"Location": f"http://127.0.0.1:{elsewhere.port}/api/metalakes"}, b"")})
    with pytest.raises(Refused, match="is not the server's own address: it redirects"):
        Client(f"http://127.0.0.1:{first.port}", token="t").call("POST", "metalakes", body={"comment": "secret"})
    assert (len(first.asked), elsewhere.asked) == (1, [])
