"""Where the keys of an issuer come from: new and withdrawn ones, issuers that fail, and settings that are refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from authz.callers import oauth
from metalake import settings as server_settings
from metalake.errors import ProviderUnavailable, Unauthenticated
from tests.authz.issuer import Issuer, believe, both_wires, claims, good, keys, public_jwk, rsa_key, signed


@pytest.fixture
def changing(settings: Any) -> Iterator[Issuer]:
    """An issuer of the test's own, whose answers it changes."""
    issuer = Issuer()
    believe(settings, issuer)
    yield issuer
    issuer.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the time to wait had passed."""
    for name in ("READ_AGAIN_AFTER", "TRY_AGAIN_AFTER"):
        monkeypatch.setattr(oauth, name, 0)


def rotated(issuer: Issuer) -> str:
    """A token by a key that was published just now, in place of the others."""
    issuer.publish(public_jwk("new", rsa_key("new")))
    return signed(claims(issuer), private=rsa_key("new"), kid="new")


def test_a_new_key_is_read_when_it_is_first_named_but_not_at_once_again(changing: Issuer, request: Any) -> None:
    oauth.read(good(changing))
    token = rotated(changing)
    with pytest.raises(Unauthenticated, match="does not publish"):
        oauth.read(token)
    request.getfixturevalue("impatient")
    assert oauth.read(token).user == "mia"


def test_a_withdrawn_key_goes(changing: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    old = good(changing)
    oauth.read(old)
    rotated(changing)
    assert oauth.read(old).user == "mia"
    monkeypatch.setattr(oauth, "KEYS_MAX_AGE", 0)
    with pytest.raises(Unauthenticated, match="does not publish"):
        oauth.read(old)


def test_known_keys_outlive_their_issuer(changing: Issuer, monkeypatch: pytest.MonkeyPatch, impatient: None) -> None:
    token = good(changing)
    oauth.read(token)
    changing.close()
    monkeypatch.setattr(oauth, "KEYS_MAX_AGE", 0)
    assert oauth.read(token).user == "mia"
    with pytest.raises(ProviderUnavailable):
        oauth.read(signed(claims(changing), kid="unknown"))


def page(path: str, body: Any, status: int = 200) -> Callable[[Issuer], None]:
    return lambda issuer: issuer.answer(path, body, status)


def ours() -> bytes:
    return json.dumps({"keys": [public_jwk("rsa", keys()["rsa"][0])]}).encode()


DISCOVERY = ".well-known/openid-configuration"
BROKEN: dict[str, Callable[[Issuer], None]] = {
    "down": lambda issuer: issuer.close(),
    "no discovery": page(DISCOVERY, {}, 404),
    "discovery fails": page(DISCOVERY, {}, 500),
    "discovery is not JSON": page(DISCOVERY, b"<html>"),
    "discovery is a list": page(DISCOVERY, []),
    "discovery is nested deep": page(DISCOVERY, b"[" * 100_000),
    "another issuer": lambda issuer: issuer.describe(issuer=f"{issuer.url}/"),
    "no jwks_uri": lambda issuer: issuer.describe(jwks_uri=None),
    "a file": lambda issuer: issuer.describe(jwks_uri="file:///etc/passwd"),
    "a path": lambda issuer: issuer.describe(jwks_uri="/etc/passwd"),
    "no URL": lambda issuer: issuer.describe(jwks_uri="https://[::"),
    "plain http elsewhere": lambda issuer: issuer.describe(
        jwks_uri=issuer.url.replace("127.0.0.1", "localhost") + "/keys"
    ),
    "a space in it": lambda issuer: issuer.describe(jwks_uri=f"{issuer.url}/ke ys"),
    "keys are elsewhere": lambda issuer: issuer.answer("keys", b"", 302, Location=f"{issuer.url}/moved"),
    "keys fail": page("keys", {}, 503),
    "keys are not JSON": page("keys", b"{"),
    "keys are no list": page("keys", {"keys": {}}),
    "there are no keys": page("keys", {}),
    "keys take too much": lambda issuer: issuer.answer("keys", ours() + b" " * oauth.MAX_DOCUMENT),
}


@pytest.mark.parametrize("breaks", BROKEN.values(), ids=BROKEN)
def test_an_issuer_whose_keys_cannot_be_read_is_a_failure_and_no_refusal(
    changing: Issuer, breaks: Callable[[Issuer], None], impatient: None
) -> None:
    changing.answer("moved", ours())
    token = good(changing)
    breaks(changing)
    (native, native_body), (iceberg, iceberg_body) = both_wires(token)
    assert (native, native_body["code"]) == (502, 1007)
    assert iceberg == 503
    assert "keys of its issuer cannot be read" in native_body["message"]
    assert "127.0.0" not in f"{native_body}{iceberg_body}"


def test_an_issuer_that_comes_back_is_asked_again(changing: Issuer, impatient: None) -> None:
    pages = dict(changing.pages)
    changing.pages.clear()
    with pytest.raises(ProviderUnavailable):
        oauth.read(good(changing))
    changing.pages.update(pages)
    assert oauth.read(good(changing)).user == "mia"


def test_callers_that_come_together_ask_for_the_keys_once(changing: Issuer) -> None:
    token = good(changing)
    threads = [threading.Thread(target=oauth.read, args=[token]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(changing.asked) == 2


def test_wrong_tokens_make_the_issuer_busy_once(changing: Issuer) -> None:
    oauth.read(good(changing))
    first = list(changing.asked)
    for kid in range(50):
        with pytest.raises(Unauthenticated):
            oauth.read(signed(claims(changing), kid=f"unknown-{kid}"))
    assert changing.asked == first


# Settings


@pytest.mark.parametrize(
    ("issuers", "jwks", "audience", "sentence"),
    [
        ([], [], "metalake", "needs METALAKE_OAUTH_ISSUER"),
        (["https://a.example"], [], "", "and METALAKE_OAUTH_AUDIENCE"),
        (["http://a.example"], [], "metalake", "METALAKE_OAUTH_ISSUER: http://a.example must begin with https"),
        (["a.example"], [], "metalake", "METALAKE_OAUTH_ISSUER"),
        (["https://"], [], "metalake", "METALAKE_OAUTH_ISSUER"),
        (["https://[::"], [], "metalake", "METALAKE_OAUTH_ISSUER"),
        (
            ["https://a.example"],
            ["http://a.example/keys"],
            "metalake",
            "METALAKE_OAUTH_JWKS: http://a.example/keys",
        ),
        (["https://a.example"], ["ftp://a.example/keys"], "metalake", "METALAKE_OAUTH_JWKS"),
        (["https://a.example"], ["/nowhere/keys.json"], "metalake", "there is no file /nowhere/keys.json"),
        (
            ["https://a.example", "https://b.example"],
            ["https://a.example/keys"],
            "metalake",
            "one JWKS for each issuer",
        ),
    ],
)
def test_a_bad_setting_is_refused(
    issuers: list[str], jwks: list[str], audience: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_settings, "METALAKE_OAUTH_AUDIENCE", (audience,) if audience else ())
    with pytest.raises(ImproperlyConfigured, match=sentence.replace(".", r"\.")):
        server_settings.pinned_issuers(issuers, jwks)


def test_good_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(server_settings, "METALAKE_OAUTH_AUDIENCE", ("metalake",))
    file = tmp_path / "keys.json"
    file.write_text("{}")
    pinned = server_settings.pinned_issuers
    assert pinned(["https://a.example", "http://[::1]:8080/b"], []) == {
        "https://a.example": "",
        "http://[::1]:8080/b": "",
    }
    assert pinned(["urn:acme"], [str(file)]) == {"urn:acme": str(file)}
    assert pinned(["x"], ["http://localhost:8080/keys"]) == {"x": "http://localhost:8080/keys"}


def test_without_oauth_nothing_is_pinned() -> None:
    assert server_settings.METALAKE_OAUTH_ISSUERS == {}
