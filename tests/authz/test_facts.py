"""The history: what was true at a moment, who made it so, and that nobody can change it unseen."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from importlib import import_module
from io import StringIO

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.models import F
from django.utils import timezone

from access.explain.queries import Place, who_reaches
from access.history.current import Now, State
from access.history.past import Past
from authz import facts as history
from authz import snapshot
from authz.actor import Actor
from authz.models import Fact, User
from authz.services import grants, owners, people, roles
from catalogs.services import catalogs, schemas, tables
from catalogs.services.alterations import Alteration
from catalogs.table_stores import TableDraft
from metalake.errors import Invalid, NotFound
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.privileges import Effect, Privilege
from tests.authz.history import FLIGHTS, History, now
from tests.authz.small_world import kind_at
from tests.iceberg_rest.world import COLUMNS

pytestmark = pytest.mark.store


def test_a_right_is_there_between_its_grant_and_its_revoke(past: History) -> None:
    before = now()
    roles.assign_roles(past.olga, "acme", "user", "mia", ["readers"])
    during = now()
    past.revoke(FLIGHTS, "use_schema")
    after = now()
    assert [past.loads("mia", moment) for moment in (before, during, after, None)] == [False, True, False, False]
    assert not past.loads("nils", during)


def test_denies_groups_and_memberships_have_their_times(past: History) -> None:
    people.add_group(past.olga, "acme", "analysts")
    roles.assign_roles(past.olga, "acme", "group", "analysts", ["readers"])
    people.set_group_users(past.olga, "acme", "analysts", add=["nils"])
    in_group = now()
    past.grant("acme", "use_schema", "deny")
    denied = now()
    past.revoke("acme", "use_schema", "deny")
    people.remove_user(past.olga, "acme", "nils")
    removed = now()
    people.add_user(past.olga, "acme", "nils")
    again = now()
    moments = (in_group, denied, removed, again)
    assert [past.loads("nils", moment) for moment in moments] == [True, False, False, False]
    assert past.at(in_group).groups() == past.at(again).groups()
    people.remove_group(past.olga, "acme", "analysts")
    assert list(past.at(again).groups().values()) == ["analysts"]
    assert past.at(now()).groups() == {}


def test_an_owner_of_then_is_no_owner_of_now(past: History) -> None:
    past.grant("lake", "use_catalog")
    roles.assign_roles(past.olga, "acme", "user", "mia", ["readers"])
    past.revoke(FLIGHTS, "use_schema")
    owners.set_owner(past.olga, "acme", Kind.SCHEMA, FLIGHTS, "mia", "user")
    owned = now()
    people.remove_user(past.olga, "acme", "mia")
    assert past.loads("mia", owned)
    assert not past.loads("mia", now())
    then, today = (past.at(moment).locate(Kind.SCHEMA, FLIGHTS).nodes[-1] for moment in (owned, None))
    assert then.owner_user_id != today.owner_user_id == past.olga.id


def test_objects_are_found_by_the_names_they_had(past: History) -> None:
    before = now()
    catalogs.alter_catalog(past.olga, "acme", "lake", Alteration(new_name="ocean"))
    schemas.drop_schema(past.olga, Address(metalake="acme", catalog="ocean", schema="flights:raw"))
    after = now()
    assert past.at(before).locate(Kind.SCHEMA, "lake.flights:raw").name == "raw"
    assert past.at(after).locate(Kind.CATALOG, "ocean").id == past.at(before).locate(Kind.CATALOG, "lake").id
    for moment, missing in ((after, "lake"), (before, "ocean"), (after, "ocean.flights:raw")):
        with pytest.raises(NotFound):
            past.at(moment).locate(kind_at(missing), missing)


def test_an_object_of_today_is_the_same_one_under_its_former_names(past: History) -> None:
    before = now()
    catalogs.alter_catalog(past.olga, "acme", "lake", Alteration(new_name="ocean"))
    table = Address(metalake="acme", catalog="ocean", schema="flights", leaf="t")
    tables.create_table(past.olga, table, TableDraft(COLUMNS, None, None, {}))
    made = now()
    tables.rename_table(past.olga, table, Address(metalake="acme", catalog="ocean", schema="flights:raw", leaf="u"))
    today = past.at(None).locate(Kind.TABLE, "ocean.flights:raw.u")
    assert past.at(None).same(today) is today
    assert past.at(made).same(today) == past.at(made).locate(Kind.TABLE, "ocean.flights.t")
    assert [node.name for node in past.at(before).same(today.above()).nodes] == ["acme", "lake", "flights", "raw"]
    assert past.at(before).same(today.top) == today.top
    with pytest.raises(NotFound, match=re.escape("Table ocean.flights:raw.u does not exist")):
        past.at(before).same(today)


def test_a_name_on_the_wire_is_that_of_the_moment(past: History) -> None:
    before = now()
    catalogs.alter_catalog(past.olga, "acme", "lake", Alteration(new_name="ocean"))
    of_then, of_today = Place(Kind.CATALOG, "lake"), Place(Kind.CATALOG, "ocean")
    assert who_reaches(past.olga, "acme", of_then, before, None, "")[0].name == "lake"
    for place, moment in ((of_today, before), (of_then, None)):
        with pytest.raises(NotFound):
            who_reaches(past.olga, "acme", place, moment, None, "")


def test_a_schema_and_a_table_of_one_name_are_told_apart(past: History) -> None:
    table = Address(metalake="acme", catalog="lake", schema="flights", leaf="raw")
    tables.create_table(past.olga, table, TableDraft(COLUMNS, None, None, {}))
    then = past.at(now())
    asked = {Kind.SCHEMA: "lake.flights:raw", Kind.TABLE: "lake.flights.raw"}
    assert [then.locate(kind, name).kind for kind, name in asked.items()] == list(asked)


def test_a_name_made_again_is_another_object(past: History) -> None:
    roles.assign_roles(past.olga, "acme", "user", "mia", ["readers"])
    first = now()
    schemas.drop_schema(past.olga, Address(metalake="acme", catalog="lake", schema="flights:raw"))
    schemas.drop_schema(past.olga, Address(metalake="acme", catalog="lake", schema="flights"))
    gap = now()
    schemas.create_schema(past.olga, Address(metalake="acme", catalog="lake", schema="flights"), None, {})
    second = now()
    assert past.loads("mia", first)
    assert not past.loads("mia", second)
    with pytest.raises(NotFound):
        past.at(gap).locate(Kind.SCHEMA, FLIGHTS)


def test_a_dropped_role_gives_nothing_from_then_on(past: History) -> None:
    roles.assign_roles(past.olga, "acme", "user", "mia", ["readers"])
    held = now()
    roles.drop_role(past.olga, "acme", "readers")
    dropped = now()
    assert past.loads("mia", held)
    assert not past.loads("mia", dropped)
    assert (list(past.at(held).roles().values()), past.at(dropped).roles()) == (["readers"], {})


def test_who_granted_it_is_told(past: History) -> None:
    moment = now()
    past.revoke(FLIGHTS, "use_schema")
    state = past.at(moment)
    found = state.locate(Kind.SCHEMA, FLIGHTS)
    (row,) = state.grants([found.id])
    assert (row.privilege, row.effect, row.grantor) == (Privilege.USE_SCHEMA, Effect.ALLOW, "olga")
    assert past.at(None).grants([found.id]) == []


def test_the_past_of_now_is_now(past: History) -> None:
    """Replaying the history gives what the tables hold."""
    people.add_group(past.olga, "acme", "analysts")
    people.set_group_users(past.olga, "acme", "analysts", add=["mia", "nils"])
    roles.assign_roles(past.olga, "acme", "group", "analysts", ["readers"])
    past.grant("acme", "manage_users", "deny")
    ends = timezone.now() + timedelta(days=1)
    grants.grant_privileges(
        past.olga, "acme", "readers", Kind.CATALOG, "lake", [("create_schema", "allow", None, ends)]
    )
    assert_same(past)


def assert_same(past: History) -> None:
    then, today = past.at(now()), past.at(None)
    assert isinstance(then, Past)
    assert isinstance(today, Now)
    for question in (State.members, State.roles, State.groups):
        assert getattr(then, question.__name__)() == getattr(today, question.__name__)()
    assert list(then.walk(then.top)) == list(today.walk(today.top))
    ids = [placed.id for placed in today.walk(today.top)]
    assert sorted(then.grants(ids)) == sorted(today.grants(ids))
    old, new = then.policy_on(), today.policy_on()
    for table in ("members", "user_roles", "user_groups", "group_roles", "grants", "timed"):
        filled = [{key: value for key, value in getattr(held, table).items() if value} for held in (old, new)]
        assert filled[0] == filled[1], table


def test_a_store_from_before_the_history_begins_with_what_is_true(past: History) -> None:
    people.add_group(past.olga, "acme", "analysts")
    people.set_group_users(past.olga, "acme", "analysts", add=["mia"])
    roles.assign_roles(past.olga, "acme", "group", "analysts", ["readers"])
    roles.assign_roles(past.olga, "acme", "user", "nils", ["readers"])
    Fact.objects.all().delete()
    import_module("authz.migrations.0004_history_begins").begin(apps, None)
    assert_same(past)
    assert past.loads("nils", now())
    history.seal()
    assert history.verify() is None


def test_moments_without_a_history_are_refused(past: History) -> None:
    begun = Fact.objects.order_by("id")[0].at
    with pytest.raises(Invalid, match="begins at"):
        past.at(begun - timedelta(seconds=1))
    with pytest.raises(Invalid, match="lies ahead"):
        past.at(timezone.now() + timedelta(hours=1))


# The chain


def test_an_untouched_history_is_proven_so(past: History) -> None:
    history.seal()
    exported = history.head()
    assert exported.position == Fact.objects.count() > 5
    past.grant("lake", "create_schema")
    history.seal()
    assert history.head().position == exported.position + 1
    assert history.verify() is None
    assert history.verify(exported) is None


@pytest.mark.parametrize("field", ["actor", "at", "state", "about", "holder", "name", "topic", "event", "metalake_id"])
def test_a_changed_fact_is_named(past: History, field: str) -> None:
    history.seal()
    victim = Fact.objects.filter(topic="grants").order_by("id")[0]
    other = {"at": datetime(2020, 1, 1, tzinfo=UTC), "state": [], "about": 1, "holder": 1, "metalake_id": 1}
    Fact.objects.filter(pk=victim.pk).update(**{field: other.get(field, "someone")})
    broken = history.verify()
    assert broken is not None
    assert broken.position == victim.position
    assert f"fact {victim.pk} " in broken.says


def test_what_was_taken_out_or_put_in_is_named(past: History) -> None:
    history.seal()
    exported = history.head()
    middle = Fact.objects.get(position=4)
    middle.delete()
    assert history.verify() == history.Broken(4, "the fact of position 4 is missing")
    # The others moved up, by one who has no key.
    for place in Fact.objects.filter(position__gt=4).order_by("position").values_list("position", flat=True):
        Fact.objects.filter(position=place).update(position=F("position") - 1)
    for head in (None, exported):
        broken = history.verify(head)
        assert broken is not None
        assert broken.position == 4


def test_the_newest_facts_cannot_be_cut_off_behind_an_exported_head(past: History) -> None:
    history.seal()
    exported = history.head()
    Fact.objects.get(position=exported.position).delete()
    assert history.verify() is None
    broken = history.verify(exported)
    assert broken is not None
    assert "missing" in broken.says


def test_a_fact_written_by_hand_is_found(past: History) -> None:
    history.seal()
    forged = Fact.objects.filter(topic="grants").order_by("id")[0]
    forged.pk, forged.position, forged.actor = None, None, "nobody"
    forged.save(force_insert=True)
    history.seal()
    broken = history.verify()
    assert broken is not None
    assert f"fact {forged.pk} " in broken.says


def test_the_command_says_it_and_what_to_do_next(past: History) -> None:
    out, wrong = StringIO(), StringIO()
    call_command("verify_history", stdout=out)
    head = next(line.removeprefix("Head: ") for line in out.getvalue().splitlines() if line.startswith("Head: "))
    call_command("verify_history", since=head, stdout=out)
    Fact.objects.filter(topic="members").update(actor="mallory")
    with pytest.raises(SystemExit, match="1"):
        call_command("verify_history", since=head, stdout=out, stderr=wrong)
    assert "tampered with" in wrong.getvalue()
    assert "mallory" in wrong.getvalue()


@pytest.mark.django_db(transaction=True)
def test_sealers_of_several_nodes_make_one_chain(django_user_model: type[User]) -> None:
    snapshot.begin()
    user = django_user_model.objects.create_superuser("olga", "a long enough password")
    snapshot.forget()
    History(Actor(user.pk, "olga", snapshot.latest(), service_admin=True))
    first = Fact.objects.order_by("id").first()
    assert first is not None

    def seal_while_others_write(number: int) -> None:
        try:
            for place in range(10):
                first.pk, first.position, first.name = None, None, f"{number}-{place}"
                copy = Fact(**{field.attname: getattr(first, field.attname) for field in Fact._meta.concrete_fields})
                copy.mac = history.mac_of(copy)
                copy.save(force_insert=True)
                history.seal()
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(seal_while_others_write, range(4)))
    history.seal()
    assert history.head().position == Fact.objects.count() > 40
    assert history.verify() is None
