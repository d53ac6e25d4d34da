"""The first admin's password: held to the same rule as everybody's, where one is given."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from authz.models import User
from metalake.models import Securable

pytestmark = [pytest.mark.store, pytest.mark.django_db]


@pytest.mark.parametrize(
    ("given", "why"), [("hunter2", "at least 12 characters"), ("elevenchars", "12"), ("qwerty123456", "too common")]
)
def test_a_weak_password_of_the_first_admin_is_refused(monkeypatch: pytest.MonkeyPatch, given: str, why: str) -> None:
    monkeypatch.setenv("METALAKE_ADMIN_PASSWORD", given)
    with pytest.raises(CommandError) as refused:
        call_command("bootstrap")
    assert "METALAKE_ADMIN_PASSWORD" in str(refused.value) and why in str(refused.value)
    assert given not in str(refused.value)
    assert not User.objects.exists() and not Securable.objects.exists()


def test_the_password_of_a_store_that_has_accounts_is_nobody_s_business(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALAKE_ADMIN_PASSWORD", "correct horse battery")
    said = io.StringIO()
    call_command("bootstrap", stdout=said)
    monkeypatch.setenv("METALAKE_ADMIN_PASSWORD", "admin")
    call_command("bootstrap", stdout=said)
    assert User.objects.get().check_password("correct horse battery")
    assert "correct horse" not in said.getvalue()
