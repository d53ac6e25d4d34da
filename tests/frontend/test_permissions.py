"""Pages and the operators' admin ask `user.has_perm`: what the backend answers is what they do."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from authz.backends import PolicyBackend
from authz.models import User
from tests.demo import PASSWORD
from tests.frontend.conftest import sign_in

pytestmark = pytest.mark.store

Ids = dict[str, int]


class Asked:
    """Stands in front of the backend: notes the questions, and says no to those it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.questions: set[tuple[str, str]] = set()
        self.refused: set[str] = set()
        own = PolicyBackend.has_perm

        def has_perm(backend: PolicyBackend, user: Any, perm: str, obj: Any = None) -> bool:
            self.questions.add((user.username, perm))
            return perm not in self.refused and own(backend, user, perm, obj)

        monkeypatch.setattr(PolicyBackend, "has_perm", has_perm)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


@pytest.mark.parametrize("perm, name", [("authz.create_catalog", "demo"), ("authz.alter_catalog", "lake")])
def test_a_page_asks_for_its_operation(ids: Ids, asked: Asked, perm: str, name: str) -> None:
    admin = sign_in("admin")
    form = f"/metalakes/{ids[name]}/catalogs/new" if name == "demo" else f"/catalogs/{ids[name]}/settings"
    shown = f"/objects/{ids[name]}"
    assert admin.get(form).status_code == 200
    assert form in admin.get(shown).content.decode()
    assert ("admin", perm) in asked.questions
    asked.refused.add(perm)
    assert admin.get(form).status_code == 403
    assert form not in admin.get(shown).content.decode()


def test_the_operators_pages_ask_too(ids: Ids, asked: Asked) -> None:
    User.objects.create_user("clerk", PASSWORD, is_staff=True)
    clerk, grants = sign_in("clerk"), reverse("admin:authz_grant_changelist")
    assert clerk.get(grants).status_code == 200
    assert ("clerk", "metalake.see_pages") in asked.questions
    asked.refused.add("metalake.see_pages")
    assert clerk.get(grants).status_code == 403
