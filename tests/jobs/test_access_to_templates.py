"""Questions about rights on job templates, and plans of them, are answered as those on every other object."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from django.utils import timezone

from metalake.kinds import Kind
from tests.catalogs.callers import Caller
from tests.demo import give
from tests.jobs.bodies import TEMPLATES, shell
from tests.jobs.conftest import Write

pytestmark = pytest.mark.store
ACCESS = "metalakes/demo/access"
ON = "job_template/say"


@pytest.fixture
def granted(admin: Caller, mia: Caller, program: Write) -> str:
    """Mia may use the template by the role `users`; a moment before it was so."""
    admin.post(TEMPLATES, shell(program()))
    before = quote(timezone.now().isoformat(), safe="")
    give("mia", Kind.JOB_TEMPLATE, "say", "use_job_template", role="users")
    return before


def test_questions_now_and_in_the_past(admin: Caller, mia: Caller, granted: str) -> None:
    why = f"{ACCESS}/explain?user=mia&privilege=use_job_template&type=job_template&fullName=say"
    assert admin.get(why)["explanation"]["allowed"] is True
    assert admin.get(f"{why}&asOf={granted}")["explanation"]["allowed"] is False
    operation = f"{ACCESS}/explain?user=mia&operation=alter_job_template&type=job_template&fullName=say"
    assert admin.get(operation)["explanation"]["allowed"] is False
    listed = str(admin.get(f"{ACCESS}/objects/{ON}").body)
    assert "mia" in listed
    assert "mia" not in str(admin.get(f"{ACCESS}/objects/{ON}?asOf={granted}").body)
    for path in ("changes", "grantable", "ways", "moments", f"compared?from={granted}"):
        answer = admin.get(f"{ACCESS}/objects/{ON}/{path}")
        assert answer.status == 200, (path, answer.body)
    assert "use_job_template" in str(admin.get(f"{ACCESS}/objects/{ON}/grantable").body)
    assert "users" in str(admin.get(f"{ACCESS}/objects/{ON}/ways").body)
    assert "users" in str(admin.get(f"{ACCESS}/objects/{ON}/moments").body)
    for path in ("users/mia", "roles/users", "users/mia/children", "export"):
        assert admin.get(f"{ACCESS}/{path}").status == 200, path
    assert mia.get(f"{ACCESS}/objects/{ON}").status == 403
    assert admin.get("metalakes/demo/search?q=say").status == 200


def test_grants_as_code(admin: Caller, mia: Caller, granted: str) -> None:
    exported = admin.get(f"{ACCESS}/export")["access"]
    assert "job_template" in str(exported)
    same = admin.post(f"{ACCESS}/plan", exported)["plan"]
    assert not same.get("changes"), same
    for role in exported["roles"]:
        role["grants"] = [each for each in role["grants"] if "job_template" not in str(each)]
    plan = admin.post(f"{ACCESS}/plan", exported)["plan"]
    assert "use_job_template" in str(plan)
    assert admin.post(f"{ACCESS}/apply", {"token": plan["token"]}).status == 200
    assert mia.get(f"{TEMPLATES}/say").status == 404


def test_a_proposal(admin: Caller, mia: Caller, granted: str) -> None:
    """It needs no use of a catalog on the way."""
    admin.delete("metalakes/demo/roles/users")
    entries = [{"name": "use_job_template", "condition": "allow"}]
    wish = {"users": ["mia"], "type": "job_template", "fullName": "say", "privileges": entries}
    proposal = admin.post(f"{ACCESS}/proposals", wish)["proposal"]
    assert admin.post(f"{ACCESS}/apply", {"token": proposal["plan"]["token"]}).status == 200
    assert mia.get(f"{TEMPLATES}/say").status == 200
