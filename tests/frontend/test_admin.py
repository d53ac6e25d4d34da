"""The operators' pages: everything can be read by staff alone, and little can be done."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.contrib import admin as django_admin
from django.contrib.auth.models import Group as GuardianGroup
from django.db import connection
from django.db.models import Model
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from access.plans import plan
from access.plans.desired import Wanted, WantedRole
from authz import facts as history
from authz.callers.identity import issue_token
from authz.models import (
    AccessRequest,
    AccessReview,
    AuditEntry,
    Dormancy,
    Grant,
    PolicyChange,
    Token,
    Use,
    UseCaller,
    UseObject,
    UseQuestion,
    User,
    UseWriter,
)
from authz.services import invitations, people
from catalogs.lookup import by_id
from catalogs.models import HarvestedPart, Intent, Reservation, ReservedPlace, Tombstone
from catalogs.services import schemas
from formats.native.view_definition import Representation, ViewDefinition
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.models import Differing, Metalake, Outbox, Shared
from outside import refresh
from providers import circuit_breaker
from server import operators
from tests.demo import PASSWORD, actor, give
from tests.frontend.conftest import add_outside, add_schema, add_stuck_intent, find, sign_in
from tests.frontend.test_weight import files_of, sent
from tests.providers.world import World
from views_mgmt import versions
from views_mgmt.models import View, ViewFinding, ViewRead

OURS = ("metalake", "authz", "catalogs", "views_mgmt")
# The record of use has too many rows for a page, which the admin cannot make for a key of several columns either.
MODELS = [model for model in apps.get_models() if model._meta.app_label in OURS and model is not Use]
CHANGED_BY_SERVICES = [model for model in MODELS if model is not User]


def url(model: type[Model], page: str = "changelist", *args: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


@pytest.fixture
def full(ids: dict[str, int], world: World) -> dict[str, int]:
    """The small world, with at least one row of every model."""
    people.add_group(actor("admin"), "demo", "auditors")
    people.set_group_users(actor("admin"), "demo", "auditors", add=["mia"])
    issue_token(User.objects.get(username="rita"), "spark")
    invitations.add_person(actor("admin"), "demo", "newcomer")
    plan.plan(actor("admin"), "demo", Wanted("demo", None, [WantedRole("", "auditor", None, None, [])]))
    history.seal()
    station = add_outside(world, **{"cache-ttl": "60"})
    schemas.list_schemas(actor("admin"), Address(metalake="demo", catalog="station"))
    run = refresh.carry_on(refresh.begin(station.id, here=True).pk)
    assert run is not None
    HarvestedPart.objects.create(run=run, schema="flights", name="t0", seen=3)
    add_stuck_intent(station)
    ReservedPlace.objects.create(location="s3://lake/t", kind="table", full_name="a.b.c", of_metalake=1, of_catalog=2)
    Tombstone.objects.create(in_catalog_id=station.id, kind="table", full_name="a.b.c", securable_id=1, owner="admin")
    add_view(ids["eu"])
    Shared.objects.create(name="event log", value="kept")
    Differing.objects.create(process="node-2 7", work="events", reason="There is no log.", seen_at=timezone.now())
    UseCaller.objects.create(user_id=1, claimed=[], active=None, digest="0" * 64)
    UseObject.objects.create(object_id=1, metalake_id=1)
    UseQuestion.objects.create(operation="load_table", outcome="allowed", wire="iceberg", engine="java")
    about = {"complete_until": timezone.now(), "at": timezone.now(), "by": "admin", "days": 30}
    none = {"object_count": 0, "people_count": 0, "objects_unused": [], "people_unused": []}
    Dormancy.objects.create(metalake=Metalake.objects.get(name="demo"), **about, **none)
    of_review = {"as_of": timezone.now(), "place": 1, "findings": []}
    counts = {"unused_count": 0, "redundant_count": 0, "shadowed_count": 0}
    AccessReview.objects.create(metalake=Metalake.objects.get(name="demo"), **about, **of_review, **counts)
    UseWriter.objects.create(process="node-2 7", written_until=timezone.now())
    asked = {"object_id": 1, "kind": "table", "full_name": "a.b.c", "privileges": [], "ends_at": timezone.now()}
    AccessRequest.objects.create(metalake=Metalake.objects.get(name="demo"), user_id=actor("mia").id, **asked)
    return ids


def add_view(schema_id: int) -> None:
    """A view that is a metadata file, with one version."""
    schema = by_id(schema_id)
    assert schema is not None
    row = View.made(
        Kind.VIEW,
        "revenue",
        schema,
        creator="admin",
        owner_user_id=actor("admin").id,
        metadata_location="s3://lake/revenue/metadata/0.json",
        uuid=uuid4(),
    )
    row.save(force_insert=True)
    view = by_id(row.pk)
    assert view is not None
    versions.add(view, ViewDefinition(representations=(Representation(dialect="spark", sql="SELECT 1"),)), "admin")
    ViewFinding.objects.create(
        view_id=view.id, metalake_id=view.metalake.id, version=1, engine="Spark", at=timezone.now(), by="admin",
        dialects=[], is_broken=False,
    )  # fmt: skip
    ViewRead.objects.create(
        view_id=view.id, metalake_id=view.metalake.id, key="0", catalog="lake", schema="eu", name="sales",
        dialects=["spark"], columns=[],
    )  # fmt: skip


@pytest.fixture
def clerk(full: dict[str, int]) -> Client:
    """Staff, though no superuser."""
    User.objects.create_user("clerk", PASSWORD, is_staff=True)
    return sign_in("clerk")


def test_every_model_has_its_page_and_guardians_have_none() -> None:
    registered = set(django_admin.site._registry)
    assert set(MODELS) <= registered
    assert GuardianGroup not in registered
    assert not [model for model in registered if model._meta.app_label in ("guardian", "auth")]


@pytest.mark.store
def test_every_page_answers(clerk: Client, subtests: pytest.Subtests) -> None:
    for model in MODELS:
        with subtests.test(model._meta.label):
            row = model._default_manager.order_by("-pk").first()
            assert row is not None, "the world lacks one"
            for path in (url(model), url(model, "change", row.pk)):
                answer = clerk.get(path)
                assert answer.status_code == 200, answer.content[:500]
                assert "Content-Security-Policy" in answer.headers
            if django_admin.site._registry[model].search_fields:
                assert clerk.get(url(model), {"q": "' OR 1=1 --"}).status_code == 200
                for sought in ("sales", "12", "no such thing", "\\", "%"):
                    searched(model, sought)


def searched(model: type[Model], sought: str) -> list[object]:
    """What the list of a search has, not drawn: drawing takes most of a page's time, and is the same for any search."""
    request = RequestFactory().get(url(model), {"q": sought})
    request.user = User.objects.get(username="clerk")
    return list(django_admin.site._registry[model].get_changelist_instance(request).result_list)


@pytest.mark.store
def test_search_finds(clerk: Client) -> None:
    def found(model: type[Model], sought: str) -> int:
        shown = clerk.get(url(model), {"q": sought}).context["cl"].result_list
        assert list(shown) == searched(model, sought)
        return len(shown)

    assert found(User, "rita") == 1
    assert found(apps.get_model("catalogs.Table"), "sales") == 1
    assert found(apps.get_model("catalogs.Table"), "no such") == 0
    assert found(Grant, "select_table") == 1
    assert found(AuditEntry, "lake.orders:eu") >= 1


def test_what_services_change_cannot_be_changed_here(full: dict[str, int], subtests: pytest.Subtests) -> None:
    admin = sign_in("admin")
    for model in CHANGED_BY_SERVICES:
        with subtests.test(model._meta.label):
            row = model._default_manager.order_by("-pk").first()
            assert row is not None
            before = model._default_manager.filter(pk=row.pk).values().get()
            assert admin.get(url(model, "add")).status_code == 403
            for path in (url(model, "add"), url(model, "change", row.pk), url(model, "delete", row.pk)):
                assert admin.post(path, {"name": "changed", "effect": "allow", "post": "yes"}).status_code == 403
            admin.post(url(model), {"action": "delete_selected", "_selected_action": row.pk, "post": "yes"})
            assert model._default_manager.filter(pk=row.pk).values().get() == before


def test_only_staff_may_enter(ids: dict[str, int]) -> None:
    for client in (Client(), sign_in("rita")):
        answer = client.get("/admin/")
        assert answer.status_code == 302
        assert answer.headers["Location"].startswith("/admin/login/")


def test_no_page_is_open_to_others(full: dict[str, int]) -> None:
    rita = sign_in("rita")
    for model in MODELS:
        row = model._default_manager.order_by("-pk").first()
        assert row is not None
        for path in (url(model), url(model, "change", row.pk), url(model, "delete", row.pk)):
            assert rita.get(path).status_code == 302, path


def test_staff_who_are_no_superusers_change_nothing(clerk: Client) -> None:
    account = User.objects.get(username="clerk")
    assert clerk.get(url(User, "add")).status_code == 403
    assert clerk.post(url(User, "change", account.pk), {"is_superuser": "on"}).status_code == 403
    assert clerk.post(f"/admin/authz/user/{account.pk}/password/", {"password1": "x" * 20}).status_code == 403
    token = Token.objects.get()
    clerk.post(url(Token), {"action": "revoke", "_selected_action": token.pk})
    token.refresh_from_db()
    account.refresh_from_db()
    assert token.revoked_at is None
    assert not account.is_superuser


def new_account(admin: Client, name: str):
    passwords = {"password1": PASSWORD, "password2": PASSWORD}
    return admin.post(url(User, "add"), {"username": name, "usable_password": "true", **passwords})


@pytest.mark.store
def test_an_account_is_made_and_can_sign_in(admin: Client) -> None:
    assert new_account(admin, "nora").status_code == 302
    assert sign_in("nora").get("/").status_code == 200
    entry = AuditEntry.objects.get(event="account.created")
    assert (entry.actor, entry.full_name) == ("admin", "nora")
    for wrong in ("a:b", "nora", " ", "a\x00b"):
        assert new_account(admin, wrong).status_code == 200, "the form again, with what is wrong"
    assert User.objects.filter(username__startswith="nora").count() == 1


@pytest.mark.store
def test_a_disabled_account_is_out_at_once(admin: Client, rita: Client) -> None:
    account = User.objects.get(username="rita")
    token = issue_token(account, "spark")
    bearer = {"Authorization": f"Bearer {token}"}
    assert rita.get("/").status_code == 200
    assert Client().get("/api/metalakes", headers=bearer).status_code == 200
    saved = admin.post(url(User, "change", account.pk), {"username": "root"})  # no box is ticked
    assert saved.status_code == 302
    assert rita.get("/").status_code == 302
    assert Client().get("/api/metalakes", headers=bearer).status_code == 401
    account.refresh_from_db()
    assert account.username == "rita", "names never change"
    assert AuditEntry.objects.get(event="account.altered").details == {"changed": ["Is active"]}


@pytest.mark.store
def test_a_password_is_set_and_ends_the_sessions(admin: Client, rita: Client) -> None:
    account = User.objects.get(username="rita")
    fresh = "a quite different phrase"
    body = {"password1": fresh, "password2": fresh, "usable_password": "true"}
    assert admin.post(f"/admin/authz/user/{account.pk}/password/", body).status_code == 302
    assert rita.get("/").status_code == 302
    assert Client().login(username="rita", password=fresh)
    assert AuditEntry.objects.filter(event="account.altered", full_name="rita").count() == 1
    assert fresh not in str(AuditEntry.objects.values_list("details", flat=True))


@pytest.mark.store
def test_tokens_end_with_a_password_unless_the_box_is_ticked(admin: Client, rita: Client) -> None:
    account = User.objects.get(username="rita")
    form = admin.get(f"/admin/authz/user/{account.pk}/password/").content.decode()
    assert 'name="keep_tokens"' in form and "Keep the personal tokens" in form
    for number, kept in enumerate([{"keep_tokens": "on"}, {}]):
        issue_token(account, f"spark{number}")
        fresh = f"a quite different phrase {number}"
        body = {"password1": fresh, "password2": fresh, "usable_password": "true"} | kept
        assert admin.post(f"/admin/authz/user/{account.pk}/password/", body).status_code == 302
        assert account.tokens.filter(revoked_at=None).count() == (1 if kept else 0)
    entries = AuditEntry.objects.filter(event="account.password_set").order_by("id")
    assert [(entry.actor, entry.details["endedTokens"]) for entry in entries] == [("admin", 0), ("admin", 2)]


@pytest.mark.store
def test_ones_own_password_ends_ones_own_tokens(admin: Client) -> None:
    account = User.objects.get(username="admin")
    issue_token(account, "spark")
    fresh = "a quite different phrase"
    body = {"old_password": PASSWORD, "new_password1": fresh, "new_password2": fresh}
    assert admin.post("/admin/password_change/", body).status_code == 302
    assert not account.tokens.filter(revoked_at=None).exists()
    assert AuditEntry.objects.get(event="account.password_set").actor == "admin"
    assert Client().post("/admin/password_change/", body).headers["Location"].startswith("/admin/login/")


@pytest.mark.store
def test_the_old_password_is_not_guessed_by_whoever_finds_a_session(admin: Client) -> None:
    fresh = "a quite different phrase"
    for guess in range(10):
        body = {"old_password": f"guess {guess}", "new_password1": fresh, "new_password2": fresh}
        assert admin.post("/admin/password_change/", body).status_code == 200
    refused = admin.post("/admin/password_change/", body)
    assert refused.status_code == 429 and int(refused.headers["Retry-After"]) > 0
    assert "Please wait" in refused.content.decode()


def test_no_page_shows_a_secret(clerk: Client, full: dict[str, int]) -> None:
    catalog = clerk.get(url(apps.get_model("catalogs.Catalog"), "change", full["lake"])).content.decode()
    assert "do-not-show-me" not in catalog
    assert "s3.secret-access-key = ******" in catalog
    anything = apps.get_model("metalake.Securable")
    assert "do-not-show-me" not in clerk.get(url(anything, "change", full["lake"])).content.decode()
    token = Token.objects.get()
    assert token.digest not in clerk.get(url(Token, "change", token.pk)).content.decode()


@pytest.mark.store
def test_a_token_is_revoked(admin: Client) -> None:
    secret = issue_token(User.objects.get(username="rita"), "spark")
    token = Token.objects.get()
    assert admin.post(url(Token), {"action": "revoke", "_selected_action": token.pk}).status_code == 302
    answer = Client().get("/api/metalakes", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 401
    assert AuditEntry.objects.get(event="token.revoked").actor == "admin"


@pytest.mark.store
def test_waiting_work_is_tried_again(admin: Client) -> None:
    later = timezone.now() + timedelta(days=1)
    row = Outbox.objects.create(topic="event", payload={}, due_at=later, attempts=7)
    assert admin.post(url(Outbox), {"action": "try_again_now", "_selected_action": row.pk}).status_code == 302
    row.refresh_from_db()
    assert row.due_at <= timezone.now()
    assert row.attempts == 0, "the pauses begin anew"


@pytest.mark.store
def test_lists_cost_the_same_at_any_length_and_count_nothing(clerk: Client, subtests: pytest.Subtests) -> None:
    def asked(model: type[Model]) -> list[str]:
        with CaptureQueriesContext(connection) as asked:
            clerk.get(url(model))
        return [query["sql"] for query in asked]

    labels = ("catalogs.Schema", "metalake.Securable", "authz.Grant", "authz.AuditEntry")
    models = [apps.get_model(label) for label in labels]
    for model in models:  # what is kept from then on is not asked again
        clerk.get(url(model))
    few = {model: asked(model) for model in models}
    for number in range(12):
        add_schema("orders", f"s{number}")
        give(None, "schema", f"lake.orders:s{number}", "use_schema", role=f"role{number}")  # type: ignore[arg-type]
    for model in models:
        with subtests.test(model._meta.label):
            many = asked(model)
            assert len(many) == len(few[model])
            assert not [sql for sql in many if "COUNT(" in sql and model._meta.db_table in sql]


@pytest.mark.store
def test_the_policy_log_is_readable(clerk: Client) -> None:
    newest = PolicyChange.objects.latest("epoch")
    assert str(newest.epoch) in clerk.get(url(PolicyChange)).content.decode()


@pytest.mark.store
def test_stuck_writes_are_decided_by_superusers_alone(clerk: Client, full: dict[str, int]) -> None:
    row = Intent.objects.get()
    page = clerk.get(url(Intent, "change", row.pk)).content.decode()
    assert "create_table: unknown" in page and "never-shown" not in page
    clerk.post(url(Intent), {"action": "give_up", "_selected_action": row.pk})
    row.refresh_from_db()
    assert row.state == Intent.State.STUCK
    admin = sign_in("admin")
    assert admin.post(url(Intent), {"action": "retry", "_selected_action": row.pk}).status_code == 302
    row.refresh_from_db()
    assert (row.state, row.attempts) == (Intent.State.OPEN, 1)
    assert AuditEntry.objects.get(event="intent.retried").actor == "admin"


@pytest.mark.store
def test_a_stuck_write_is_given_up(admin: Client, world: World) -> None:
    row = add_stuck_intent(add_outside(world))
    other = add_stuck_intent(
        find(Address(metalake="demo", catalog="station")), "station.other", state=Intent.State.OPEN
    )
    body = {"action": "give_up", "_selected_action": [row.pk, other.pk]}
    assert admin.post(url(Intent), body).status_code == 302
    row.refresh_from_db()
    other.refresh_from_db()
    assert row.state == Intent.State.RESIDUE, "what it may have left outside stays"
    assert row.error["message"] == "admin gave it up."
    assert other.state == Intent.State.OPEN, "one that is under way is let be"
    assert [each.intent_id for each in Reservation.objects.all()] == [other.pk]
    events = AuditEntry.objects.filter(event__startswith="intent.").values_list("event", flat=True)
    assert sorted(events) == ["intent.aborted", "intent.given_up"]


# The start page


def test_every_model_of_the_admin_is_in_one_group() -> None:
    labels = [label for _, labels in operators.GROUPS for label in labels]
    assert len(labels) == len(set(labels))
    assert set(labels) == {model._meta.label for model in django_admin.site._registry}


def lines(client: Client) -> dict[str, tuple[str, str]]:
    answer = client.get("/admin/")
    assert answer.status_code == 200
    return {line.name: (line.state, line.says) for line in answer.context["lines"]}


@pytest.mark.store
def test_the_start_page_says_how_the_server_is(
    clerk: Client, full: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    Outbox.objects.all().delete()
    first = lines(clerk)
    assert first["Database"][0] == "good"
    assert first["Writes to other systems"] == ("look", "1 stuck, 0 under way")
    assert first["Outbox"] == ("good", "0 waiting, 0 failed before")
    assert first["History"][0] == "look" and "never verified" in first["History"][1]
    assert first["Circuit breakers"][0] == "good"
    assert first["Workers"] == (
        "look",
        "the server does their work: no broker is set; 1 process recording use; "
        "1 leaving work to others, since their settings differ",
    )
    Outbox.objects.create(topic="event", payload={}, due_at=timezone.now() - timedelta(hours=1), attempts=7)
    broken = history.Broken(3, "the fact of position 3 is missing")
    history.record_verification(broken)
    lake = apps.get_model("catalogs.Catalog").objects.get(name="lake").pk
    monkeypatch.setattr(circuit_breaker, "known", lambda: {("system", lake): circuit_breaker.Health(open_until=1.0)})
    then = lines(clerk)
    assert then["Outbox"][0] == "bad" and "1 failed before; the oldest is due since" in then["Outbox"][1]
    assert then["History"][0] == "bad" and "broken at position 3" in then["History"][1]
    assert then["Circuit breakers"] == ("bad", "calls are refused to demo.lake")


def test_workers_and_their_clock_are_asked_where_there_is_a_broker(
    clerk: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.METALAKE_BROKER_URL = "redis://nowhere"
    monkeypatch.setattr(operators.app.control, "ping", lambda timeout: [])
    Differing.objects.all().delete()
    PeriodicTask.objects.update(last_run_at=timezone.now() - timedelta(hours=1))
    first = lines(clerk)
    assert first["Workers"][0] == first["Schedules"][0] == "bad"
    monkeypatch.setattr(operators.app.control, "ping", lambda timeout: [{"worker1": {"ok": "pong"}}])
    every = IntervalSchedule.objects.create(every=1, period="hours")
    PeriodicTask.objects.create(name="ticks", task="t", interval=every, last_run_at=timezone.now())
    then = lines(clerk)
    assert then["Workers"][0] == then["Schedules"][0] == "good" and "1 answer" in then["Workers"][1]


def test_the_start_page_is_small_and_ours(clerk: Client) -> None:
    page = clerk.get("/admin/").content.decode()
    assert "unfold" not in page
    assert sent(clerk, "/admin/") + sum(files_of(clerk, "/admin/").values()) < 300_000
    assert "--color-primary-600: rgb(13, 101, 105)" in clerk.get(url(AuditEntry)).content.decode()


@pytest.mark.store
def test_the_audit_is_filtered_by_date(clerk: Client) -> None:
    AuditEntry.objects.filter(pk=AuditEntry.objects.latest("pk").pk).update(at=timezone.now() - timedelta(days=3650))
    before = timezone.now() - timedelta(days=1)
    asked = {"at_to_0": f"{before:%Y-%m-%d}"}
    rows = list(clerk.get(url(AuditEntry), asked).context["cl"].result_list)
    assert [row.at < before for row in rows] == [True]
    assert clerk.get(url(AuditEntry), {"at_from_0": "nonsense", "at_from_1": "x"}).status_code == 200
