"""Grants as a file in the browser: previewed by person and object, applied, undone, compared, downloaded."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from authz.services import people, roles
from metalake.bodies import limit_of
from metalake.kinds import Kind
from tests.demo import actor, give
from tests.frontend.conftest import sign_in
from tests.frontend.pages.test_granting import fields, undo_in
from tests.frontend.test_moved_plans import marks

pytestmark = pytest.mark.django_db
Ids = dict[str, int]


def send(client: Client, ids: Ids, text: str, act: str = "preview", status: int = 200, **more: Any) -> str:
    answer = client.post(f"/metalakes/{ids['demo']}/plan", {"text": text, "act": act, **more})
    html = unescape(answer.content.decode())
    assert answer.status_code == status, re.findall(r'role="alert">[^<]+', html)
    return html


def present(client: Client, ids: Ids, on: str = "", status: int = 200) -> Any:
    answer = client.get(f"/metalakes/{ids['demo']}/plan/present", {"on": on})
    assert answer.status_code == status
    return answer


def hidden(html: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" form="file-form" name="(token|shown)" value="([^"]*)">', html))


def wanted(client: Client, ids: Ids) -> str:
    """The present state, but reader may modify and mia holds it, and visitor has nothing."""
    file = present(client, ids).content.decode()
    assert "users: [rita]" in file
    changed = file.replace("[select_table, use_schema]", "[select_table, modify_table, use_schema]")
    changed = changed.replace("users: [rita]", "users: [mia, rita]", 1)
    changed = changed[: changed.index("- name: visitor")] + changed[changed.index("- name: visitor") :].replace(
        "use_catalog", "use_schema"
    )
    assert changed != file
    return changed


def test_the_downloaded_state_is_no_drift_and_a_changed_one_is_applied_and_undone(ids: Ids, admin: Client) -> None:
    answer = present(admin, ids)
    assert answer["Content-Disposition"] == 'attachment; filename="grants-demo.yaml"'
    file = answer.content.decode()
    assert "No drift" in send(admin, ids, file, "drift") and "Nothing to change" in send(admin, ids, file)
    give("mia", Kind.CATALOG, "lake", "use_catalog", role="guests")
    file = present(admin, ids).content.decode()
    text = wanted(admin, ids)
    drift = send(admin, ids, text, "drift")
    assert "is not as the file says" in drift and not hidden(drift)
    shown = send(admin, ids, text)
    by_person = shown[shown.index("By person") : shown.index("By object")]
    assert "mia" in by_person and "rita" in by_person and "modify_table" in by_person
    by_object = shown[shown.index("By object") :]
    assert by_object.index("Roles and who holds them") < by_object.index("lake.orders:eu")
    assert "to role reader" in by_object and "from role visitor" in by_object
    assert text.strip() in shown, "the text is kept"
    answer = admin.post(f"/metalakes/{ids['demo']}/plan", {"text": text, "act": "apply", **hidden(shown)})
    assert answer.status_code == 302
    page = admin.get(answer["Location"]).content.decode()
    assert "The file is applied" in page and "No drift" in send(admin, ids, text, "drift")
    admin.post(*undo_in(page))
    assert "No drift" in send(admin, ids, file, "drift")


def test_a_file_is_uploaded_and_a_list_of_changes_is_planned_as_just_these(ids: Ids, admin: Client) -> None:
    change = {"change": "assign", "role": "reader", "user": "mia"}
    file = SimpleUploadedFile("changes.json", json.dumps({"changes": [change]}).encode())
    shown = send(admin, ids, "not this", file=file)
    assert "1 change<" in shown and "User <strong>mia</strong> gets role reader" in shown and "not this" not in shown


def test_what_moved_is_marked_and_another_text_is_shown_before_it_is_applied(ids: Ids, admin: Client) -> None:
    text = wanted(admin, ids)
    shown = send(admin, ids, text)
    other = send(admin, ids, text.replace("[mia, rita]", "[rita]"), "apply", 422, **hidden(shown))
    assert "was changed after this was shown" in other
    roles.assign_roles(actor("admin"), "demo", "user", "mia", ["reader"])
    again = send(admin, ids, text, "apply", 409, **hidden(shown))
    assert "Rights have changed since you looked" in again and any(line.startswith("gone") for line in marks(again))
    assert (
        admin.post(f"/metalakes/{ids['demo']}/plan", {"text": text, "act": "apply", **hidden(again)}).status_code == 302
    )


@pytest.mark.parametrize(
    ("text", "status", "sentence"),
    [
        ("", 422, "Choose a file, or paste one."),
        ("metalake: demo\nroles: [", 400, "line 3"),
        ('{"metalake": "demo", "roles": [}', 400, "Not JSON: Expecting value (line 1, column 32)"),
        ("metalake: other\nroles: []", 400, "the file is about 'other', not about demo"),
        (
            "metalake: demo\nroles: [{name: a, grants: [{type: table, fullName: x}]}]",
            400,
            "roles[0].grants[0]: ",
        ),
        ("changes: [{change: assign, role: reader, user: nobody}]", 404, "User nobody does not exist"),
        ("changes: [{change: grant, role: reader}]", 400, "changes[0]: privilege: is required to grant"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_the_text_kept(
    ids: Ids, admin: Client, text: str, status: int, sentence: str
) -> None:
    html = send(admin, ids, text, status=status)
    assert sentence in html and f">\n{text}</textarea>" in html


def test_a_large_file_is_refused_with_a_sentence(ids: Ids, admin: Client, settings: Any) -> None:
    settings.METALAKE_MAX_PLAN_BODY = 1024 * 1024
    file = SimpleUploadedFile("all.yaml", b"#" * (1024 * 1024 + 60_000))
    assert "The file has 1.1 MB; up to 1 are read." in send(admin, ids, "kept", status=422, file=file)
    assert "A file of grants may take" in send(admin, ids, "#" * (1024 * 1024 + 1), status=413)
    wrong = SimpleUploadedFile("x.yaml", b"\xff\xfe")
    assert "not UTF-8: byte 0" in send(admin, ids, "kept", status=422, file=wrong)
    assert (
        limit_of(f"/metalakes/{ids['demo']}/plan") > settings.METALAKE_MAX_PLAN_BODY > limit_of("/metalakes/x/plan") / 3
    )


def test_who_may_grant_on_a_part_sees_and_plans_that_part(ids: Ids, admin: Client, rita: Client) -> None:
    page = present(rita, ids, status=403).content.decode()
    assert "rita may not" in page
    assert "Schema lake.payroll does not exist" in present(rita, ids, "lake.payroll", 404).content.decode()
    assert "is no object" in unescape(present(rita, ids, "a.b.c.d", 422).content.decode())
    give("rita", Kind.SCHEMA, "lake.orders:eu", "manage_grants")
    file = present(rita, ids, "lake.orders:eu").content.decode()
    assert "reader" in file and "visitor" not in file and "users" not in file
    assert "No drift" in send(rita, ids, file, "drift")
    shown = send(rita, ids, file.replace("[select_table, use_schema]", "[use_schema]"))
    assert "from role reader" in shown
    people.remove_user(actor("admin"), "demo", "mia")
    assert sign_in("mia").get(f"/metalakes/{ids['demo']}/plan").status_code == 404
    assert fields(shown) == {}
