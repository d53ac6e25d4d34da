"""Personal tokens: shown once, good on the wire, one's own alone, gone once revoked."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.utils import timezone

from authz.callers import token_uses
from authz.models import Token, User
from tests.frontend.conftest import sign_in


def issue(client: Client, name: str = "spark", days: str = "30"):
    return client.post("/tokens", {"name": name, "days": days})


def secret_in(page: str) -> list[str]:
    return re.findall(r"mlk_[\w-]{20,}", page)


def works(secret: str) -> bool:
    answer = Client().get("/api/metalakes", headers={"Authorization": f"Bearer {secret}"})
    return answer.status_code == 200


def test_it_works(rita: Client) -> None:
    assert "You have none" in rita.get("/tokens").content.decode()
    answer = issue(rita)
    (secret,) = secret_in(answer.content.decode())
    assert "no-store" in answer.headers["Cache-Control"]
    assert works(secret)
    assert not secret_in(rita.get("/tokens").content.decode()), "never again"
    row = Token.objects.get()
    assert row.user.username == "rita"
    assert row.expires_at and 29 <= (row.expires_at - row.created_at).days <= 30
    rita.post(f"/tokens/{row.pk}/revoke")
    assert not works(secret)
    assert rita.post(f"/tokens/{row.pk}/revoke").status_code == 404


def test_a_token_dies_with_its_account(rita: Client) -> None:
    (secret,) = secret_in(issue(rita).content.decode())
    User.objects.filter(username="rita").update(is_active=False)
    assert not works(secret)


def test_others_have_no_such_token(rita: Client, otto: Client) -> None:
    issue(rita)
    assert "spark" not in otto.get("/tokens").content.decode()
    assert otto.post(f"/tokens/{Token.objects.get().pk}/revoke").status_code == 404
    assert Token.objects.get().revoked_at is None


@pytest.mark.store
@pytest.mark.parametrize(
    ("name", "days"), [("", "30"), (" ", "30"), ("x" * 129, "30"), ("a\x00b", "30"), ("spark", "31"), ("spark", "-1")]
)
def test_what_is_wrong_is_said_beside_the_form(rita: Client, name: str, days: str) -> None:
    answer = issue(rita, name, days)
    assert answer.status_code == 400
    assert 'class="error"' in answer.content.decode()
    assert not Token.objects.exists()


def test_two_tokens_cannot_have_one_name(rita: Client) -> None:
    issue(rita)
    assert issue(rita).status_code == 400
    assert Token.objects.count() == 1


@pytest.mark.store
def test_a_hostile_name_is_text(rita: Client) -> None:
    page = issue(rita, "<img src=x onerror=alert(1)>").content.decode()
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page


def test_a_part_is_the_list_alone(rita: Client) -> None:
    answer = rita.post("/tokens", {"name": "a", "days": ""}, headers={"HX-Request": "true"})
    assert "<html" not in answer.content.decode()
    assert secret_in(answer.content.decode()), "beside those that are shown already"
    refused = rita.post("/tokens", {"name": "a", "days": ""}, headers={"HX-Request": "true"})
    assert refused.status_code == 400 and "secret" not in refused.content.decode()
    assert sign_in("rita").post(f"/tokens/{Token.objects.get().pk}/revoke").headers["Location"] == "/tokens"


@pytest.mark.parametrize("id", ["0", "9" * 19, "9" * 40])
def test_an_id_that_cannot_be_is_missing(rita: Client, id: str) -> None:
    assert rita.post(f"/tokens/{id}/revoke").status_code == 404


def test_a_refused_form_leaves_the_new_secret_on_the_page(rita: Client, otto: Client) -> None:
    (secret,) = secret_in(issue(rita).content.decode())
    again = {"name": "spark", "days": "30", "shown": secret}
    answer = rita.post("/tokens", again)
    assert answer.status_code == 400 and secret_in(answer.content.decode()) == [secret]
    assert not secret_in(otto.post("/tokens", again | {"name": ""}).content.decode()), "it is not theirs"
    rita.post(f"/tokens/{Token.objects.get(user__username='rita').pk}/revoke")
    assert not secret_in(rita.post("/tokens", again | {"name": ""}).content.decode()), "it is good no more"


def test_the_last_use_is_listed(rita: Client) -> None:
    (secret,) = secret_in(issue(rita).content.decode())
    assert "none on record" in rita.get("/tokens").content.decode()
    assert works(secret)
    token_uses.store()
    page = rita.get("/tokens").content.decode()
    assert "none on record" not in page and f'<time datetime="{timezone.now():%Y-%m-%dT%H}' in page
