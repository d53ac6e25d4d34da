"""Asking for access on the pages: from a refusal to a timed grant, by one who asks and one who decides."""

from __future__ import annotations

import base64
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from authz.models import AccessRequest, Grant
from authz.services import people
from metalake.kinds import Kind
from tests.demo import PASSWORD, actor, give
from tests.frontend import hostile

PURPOSE = "The report of the quarter"


def asked(client: Client, table: int, **more: object) -> int:
    """Ask for modify_table; the status of the reply."""
    sent = {"privilege": "modify_table", "purpose": PURPOSE, "ends": "week"} | more
    return client.post(f"/objects/{table}/request", sent).status_code


def text(answer: object) -> str:
    return re.sub(r"\s+", " ", answer.content.decode())  # type: ignore[attr-defined]


def token_of(page: str) -> str:
    (token,) = re.findall(r'name="token" value="([^"]+)"', page)
    return token


def test_a_refusal_leads_to_the_form_filled_in(rita: Client, ids: dict[str, int]) -> None:
    refused = rita.get(f"/objects/{ids['eu']}/views/new")
    assert refused.status_code == 403
    (link,) = re.findall(r'href="(/objects/\d+/request\?for=\w+)"', refused.content.decode())
    assert link == f"/objects/{ids['eu']}/request?for=create_view"
    ticked = re.findall(r'value="(\w+)"[^>]* checked', rita.get(link).content.decode())
    assert ticked == ["create_view"]
    part = rita.get(f"/objects/{ids['eu']}/views/new", headers={"HX-Request": "true"}).content.decode()
    assert link in part and "Ask for access" in part


def test_a_hidden_object_and_a_missing_one_have_the_same_reply_and_no_link(
    rita: Client, otto: Client, ids: dict[str, int]
) -> None:
    for client in (rita, otto):
        for path in ("", "/request", "/request?for=load_schema"):
            hidden, missing = (client.get(f"/objects/{id}{path}") for id in (ids["payroll"], 10_000_000))
            assert hidden.status_code == missing.status_code == 404
            bodies = {re.sub(r'name="csrf\w+" value="\w+"', "", one.content.decode()) for one in (hidden, missing)}
            assert len(bodies) == 1
            assert "/request?" not in hidden.content.decode()
        sent = {"privilege": "use_schema", "purpose": "x", "ends": "day"}
        answers = [client.post(f"/objects/{id}/request", sent) for id in (ids["payroll"], 10_000_000)]
        assert [one.status_code for one in answers] == [404, 404]
    assert not AccessRequest.objects.exists()


def call(user: str, path: str, body: dict[str, object] | None = None) -> tuple[int, str]:
    """Status and body of a request of either wire."""
    key = base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()
    method, sent = ("GET", "") if body is None else ("POST", json.dumps(body))
    headers = {"Authorization": f"Basic {key}"}
    answer = Client().generic(method, path, sent, "application/json", headers=headers, RAW_URI=path)
    return answer.status_code, answer.content.decode()


def test_over_the_wires_a_403_has_the_link_and_a_404_never(ids: dict[str, int], settings: Any) -> None:
    schema = {"native": "/api/metalakes/demo/catalogs/lake/schemas", "iceberg": "/iceberg/demo/v1/lake/namespaces"}
    refused: dict[str, tuple[str, dict[str, object]]] = {
        "native": (f"{schema['native']}/orders%3Aeu/tables", {"name": "t", "columns": []}),
        "iceberg": (
            f"{schema['iceberg']}/orders%1Feu/tables",
            {"name": "t", "schema": {"type": "struct", "fields": []}},
        ),
    }
    before = {wire: call("rita", *asked) for wire, asked in refused.items()}
    misses = [f"{schema[wire]}/{name}" for wire in schema for name in ("payroll", "absent")]
    hidden = [call("rita", path) for path in misses]
    settings.METALAKE_PUBLIC_URL = "https://lake.example.com"
    link = f"https://lake.example.com/objects/{ids['eu']}/request?for=create_table"
    for wire, asked in refused.items():
        status, body = call("rita", *asked)
        assert (status, before[wire][0]) == (403, 403)
        assert link in body and body.replace(f" To ask for it: {link}", "") == before[wire][1], wire
    assert [call("rita", path) for path in misses] == hidden and {status for status, _ in hidden} == {404}
    for one, other in (hidden[:2], hidden[2:]):
        assert one[1].replace("payroll", "absent") == other[1]


def test_why_offers_to_ask_for_oneself_where_a_grant_is_enough(
    rita: Client, admin: Client, ids: dict[str, int]
) -> None:
    why = f"/objects/{ids['sales']}/why?privilege=modify_table"
    link = f"/objects/{ids['sales']}/request?privilege=modify_table"
    assert link in rita.get(why).content.decode()
    assert link not in admin.get(f"{why}&user=rita").content.decode()
    give("rita", Kind.TABLE, "lake.orders:eu.sales", "deny modify_table")
    assert link not in rita.get(why).content.decode()
    assert "No grant alone is enough. Lift the DENY" in text(rita.get(link))


def test_from_the_request_to_a_grant_that_ends_and_its_undo(rita: Client, admin: Client, ids: dict[str, int]) -> None:
    assert asked(rita, ids["sales"]) == 302
    row = AccessRequest.objects.get()
    listing = f"/metalakes/{ids['demo']}/access/requests"
    page = f"{listing}/{row.pk}"
    assert PURPOSE in text(admin.get(listing)) and page in text(admin.get(listing))
    assert "Withdraw" in text(rita.get(listing)) and rita.get(page).status_code == 404
    shown = text(admin.get(page))
    assert PURPOSE in shown and "Gained by" in shown and "rita" in shown
    other = admin.post(page, {"act": "approve", "token": token_of(shown), "shown": "asked", "ends": "day"})
    assert "Another end was chosen" in text(other) and not Grant.objects.filter(ends_at__isnull=False).exists()
    done = admin.post(
        page, {"act": "approve", "token": token_of(text(other)), "shown": "day", "ends": "day"}, follow=True
    )
    assert "rita may use modify_table on lake.orders:eu.sales." in text(done) and "/undo?" in text(done)
    (grant,) = Grant.objects.filter(permission__codename="modify_table")
    assert grant.ends_at and grant.ends_at <= timezone.now() + timedelta(days=1)
    assert "approved" in text(rita.get(listing))
    assert admin.get(page).status_code == 409
    history = text(admin.get(f"/objects/{ids['sales']}/history"))
    assert f"asked for modify_table, for this: {PURPOSE}" in history


def test_a_mistake_keeps_the_form_with_a_sentence(rita: Client, admin: Client, ids: dict[str, int]) -> None:
    for sent, says in (
        ({"privilege": []}, "Tick at least one."),
        ({"privilege": "create_schema"}, "create_schema cannot be asked for here."),
        ({"purpose": ""}, "This field is required."),
        ({"ends": "ever"}, "Select a valid choice"),
        ({"privilege": "select_table"}, "You may use select_table on table lake.orders:eu.sales already."),
    ):
        answer = rita.post(
            f"/objects/{ids['sales']}/request", {"privilege": "modify_table", "purpose": PURPOSE, "ends": "week"} | sent
        )
        assert answer.status_code in (400, 422) and says in text(answer), says
        assert PURPOSE in text(answer) or "purpose" in sent
    asked(rita, ids["sales"])
    page = f"/metalakes/{ids['demo']}/access/requests/{AccessRequest.objects.get().pk}"
    refused = admin.post(page, {"act": "decline", "reason": " "})
    assert refused.status_code == 400 and "Say why: the requester reads it." in text(refused)
    assert admin.post(page, {"act": "decline", "reason": "Not now."}).status_code == 302
    assert "Not now." in text(rita.get(f"/metalakes/{ids['demo']}/access/requests"))


def test_what_is_past_or_of_a_former_member_is_said(rita: Client, admin: Client, ids: dict[str, int]) -> None:
    asked(rita, ids["sales"])
    AccessRequest.objects.update(ends_at=timezone.now() - timedelta(days=1))
    page = f"/metalakes/{ids['demo']}/access/requests/{AccessRequest.objects.get().pk}"
    assert "is past: choose another" in text(admin.get(page))
    assert 'value="approve"' in text(admin.post(page, {"act": "preview", "ends": "week"}))
    people.remove_user(actor("admin"), "demo", "rita")
    shown = text(admin.get(page))
    assert "rita is no member of metalake demo any more" in shown and 'value="approve"' not in shown


def test_withdrawing_takes_one_click(rita: Client, admin: Client, ids: dict[str, int]) -> None:
    asked(rita, ids["sales"])
    path = f"/metalakes/{ids['demo']}/access/requests/{AccessRequest.objects.get().pk}/withdraw"
    assert admin.post(path).status_code == 404
    assert "The request is withdrawn." in text(rita.post(path, follow=True))
    assert rita.post(path).status_code == 409


@pytest.mark.parametrize("payload", hostile.SOME)
def test_hostile_texts_stay_texts(rita: Client, admin: Client, ids: dict[str, int], payload: str) -> None:
    assert asked(rita, ids["sales"], purpose=payload) == 302
    listing = f"/metalakes/{ids['demo']}/access/requests"
    page = f"{listing}/{AccessRequest.objects.get().pk}"
    assert payload not in admin.get(listing).content.decode() + admin.get(page).content.decode()
    assert payload not in admin.post(page, {"act": "decline", "reason": payload * 99}).content.decode()
    admin.post(page, {"act": "decline", "reason": payload})
    assert payload not in rita.get(listing).content.decode()
