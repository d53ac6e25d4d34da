"""The first admin's password: held to the same rule as everybody's, where one is given."""

from __future__ import annotations

import io
from typing import Any

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


@pytest.mark.parametrize("authenticators", [("simple",), ("basic", "token"), ("oauth",)])
@pytest.mark.parametrize("named", [{"anonymous"}, {"alice", "bob"}, set()])
def test_an_empty_store_is_filled_whoever_makes_metalakes(
    settings: Any, named: set[str], authenticators: tuple[str, ...]
) -> None:
    settings.METALAKE_SERVICE_ADMINS, settings.METALAKE_AUTHENTICATORS = frozenset(named), authenticators
    said = io.StringIO()
    call_command("bootstrap", stdout=said)
    assert [user.username for user in User.objects.all()] == ["admin"]
    assert set(Securable.objects.values_list("name", "owner_user__username")) == {("demo", "admin"), ("lake", "admin")}
    assert (", ".join(sorted(named)) or "names nobody") in said.getvalue()
    has_hint = "createsuperuser" in said.getvalue()
    assert has_hint == (bool(named) and authenticators != ("simple",)), "accounts are made by hand elsewhere"


def test_the_usual_first_start_says_nothing_of_it(settings: Any) -> None:
    said = io.StringIO()
    call_command("bootstrap", stdout=said)
    assert "METALAKE_SERVICE_ADMINS" not in said.getvalue()
