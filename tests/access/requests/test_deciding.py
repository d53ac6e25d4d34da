"""Deciding about requests: by whoever may grant that there, with a plan, once; it ends as a timed grant does."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from access.plans import apply as applying
from access.plans import plan
from access.plans import undo as undoing
from access.requests import deciding
from access.requests.asking import withdraw
from access.requests.deciding import OpenRequest, approve, decline, load, open_requests, propose
from authz.models import AccessRequest, Grant
from authz.operations import use_of
from authz.policy import permits
from authz.services import people
from metalake.errors import Conflict, Invalid, NotFound
from metalake.kinds import Kind
from metalake.models import Securable
from metalake.privileges import Privilege
from tests.access.requests.test_asking import MODIFY, at, reader, wish
from tests.authz.plan_files import change
from tests.authz.small_world import World

__all__ = ["reader"]
DAY = timedelta(days=1)


def grant_it(world: World, one: OpenRequest, user: str = "olga") -> str:
    """Approve as asked; the token of the plan."""
    proposal = propose(world.actor(user), one, one.row.ends_at)
    assert proposal.planned and proposal.planned.token
    approve(world.actor(user), one, one.row.ends_at, proposal.planned.token)
    return proposal.planned.token


def may(world: World, user: str, privilege: Privilege = MODIFY) -> bool:
    return permits(world.actor(user), use_of(privilege, Kind.TABLE), at(world.t))


@pytest.mark.store
def test_what_is_approved_is_a_timed_grant_with_its_reason_and_an_undo(reader: World) -> None:
    row = wish(reader, reader.t)
    (one,) = open_requests(reader.olga)
    assert (one.who, one.privileges, one.on.id, one.is_member) == ("mia", [MODIFY], reader.t.id, True)
    token = grant_it(reader, one)
    assert may(reader, "mia")
    granted = Grant.objects.get(permission__codename="modify_table")
    assert granted.ends_at == row.ends_at
    row.refresh_from_db()
    assert (row.state, row.decided_by) == ("approved", "olga")
    (made,) = reader.events("role.created")[-1:]
    assert made.details["requestedBy"] == "mia" and made.details["purpose"] == row.purpose
    assert [entry.details["user"] for entry in reader.events("access.request_approved")] == ["mia"]
    assert open_requests(reader.olga) == []
    inverse = undoing.plan_undo(reader.olga, "acme", token)
    applying.apply_plan(reader.olga, "acme", inverse.token)
    assert not may(reader, "mia")


@pytest.mark.store
def test_who_may_grant_all_of_it_there_or_above_sees_and_decides_it(reader: World) -> None:
    row, high = wish(reader, reader.t), wish(reader, reader.ab, Privilege.MANAGE_GRANTS)
    reader.give("nils", "use_catalog@lake", "use_schema@lake", "manage_grants@lake.A")
    for user, seen in (("olga", [row, high]), ("nils", [row]), ("mia", [])):
        assert [one.row for one in open_requests(reader.actor(user))] == seen, user
    for user, id in (("nils", high.pk), ("mia", row.pk), ("olga", 10_000)):
        with pytest.raises(NotFound, match="There is no such request"):
            load(reader.actor(user), "acme", id)
        with pytest.raises(NotFound, match="There is no such request"):
            decline(reader.actor(user), "acme", id, "no")
    reader.own("mia", reader.t)
    assert [one.row for one in open_requests(reader.mia)] == []
    with pytest.raises(NotFound):  # nobody decides their own
        load(reader.mia, "acme", row.pk)


def test_an_object_that_moved_is_shown_by_the_name_of_today(reader: World) -> None:
    """The name that it was asked by may name a schema that those who decide do not see, or another object by now."""
    row = wish(reader, reader.t)
    home = reader.schema("open")
    reader.t.place_under(home)
    reader.t.save()
    reader.give("nils", "use_catalog@lake", "use_schema@lake.open", "manage_grants@lake.open")
    (one,) = open_requests(reader.actor("nils"))
    assert (one.row, one.path) == (row, "lake.open.t")
    decline(reader.actor("nils"), "acme", row.pk, "no")
    assert [entry.full_name for entry in reader.events("access.request_declined")] == ["lake.open.t"]


def test_a_request_is_decided_once(reader: World) -> None:
    row = wish(reader, reader.t)
    one = load(reader.olga, "acme", row.pk)
    proposal = propose(reader.olga, one, row.ends_at)
    assert proposal.planned and proposal.planned.token
    with pytest.raises(Invalid, match="Say why"):
        decline(reader.olga, "acme", row.pk, "  ")
    decline(reader.olga, "acme", row.pk, "Ask again after the audit.")
    for late in (
        lambda: approve(reader.olga, one, one.row.ends_at, proposal.planned.token),
        lambda: decline(reader.olga, "acme", row.pk, "no"),
        lambda: withdraw(reader.mia, "acme", row.pk),
    ):
        with pytest.raises(Conflict, match="declined by olga"):
            late()
    assert not may(reader, "mia")
    row.refresh_from_db()
    assert (row.state, row.reason) == ("declined", "Ask again after the audit.")
    assert "after the audit" in str(reader.events("access.request_declined")[0].details)


def test_a_plan_of_something_else_approves_nothing(reader: World) -> None:
    """What is applied is what was asked: not another plan of one's own, nor that of another request."""
    first, second = wish(reader, reader.t), wish(reader, reader.ab, Privilege.CREATE_TABLE)
    of_first = load(reader.olga, "acme", first.pk)
    proposal = propose(reader.olga, of_first, first.ends_at)
    assert proposal.planned and proposal.planned.token
    other = plan.plan_changes(reader.olga, "acme", [change("createRole", "secret")])
    for one, token in ((load(reader.olga, "acme", second.pk), proposal.planned.token), (of_first, other.token or "")):
        with pytest.raises(Conflict, match="not of this request"):
            approve(reader.olga, one, one.row.ends_at, token)
    assert not may(reader, "mia") and not reader.events("access.request_approved")
    assert set(AccessRequest.objects.values_list("state", flat=True)) == {"open"}


def test_a_plan_that_moved_is_shown_again_and_still_answers_the_request(reader: World) -> None:
    row = wish(reader, reader.t)
    one = load(reader.olga, "acme", row.pk)
    proposal = propose(reader.olga, one, row.ends_at)
    assert proposal.planned and proposal.planned.token
    reader.give("mia", "select_table@lake")
    reader.give("mia", "deny modify_table@lake.A")
    with pytest.raises(applying.Moved) as moved:
        approve(reader.olga, one, one.row.ends_at, proposal.planned.token)
    assert moved.value.planned and moved.value.planned.token
    approve(reader.olga, one, one.row.ends_at, moved.value.planned.token)
    row.refresh_from_db()
    assert row.state == "approved"


def test_what_was_granted_meanwhile_is_only_closed(reader: World) -> None:
    row = wish(reader, reader.t)
    reader.give("mia", "modify_table@lake.A")
    one = load(reader.olga, "acme", row.pk)
    proposal = propose(reader.olga, one, row.ends_at)
    assert (proposal.planned, proposal.reason) == (None, "All of it is effective already.")
    approve(reader.olga, one, one.row.ends_at, "")
    row.refresh_from_db()
    assert row.state == "approved" and len(reader.events("access.request_approved")) == 1


def test_a_former_member_gets_nothing_and_what_is_gone_cannot_be_decided(reader: World) -> None:
    reader.give("mia", "select_table@lake.A")
    gone = reader.table("gone")
    row, other = wish(reader, gone), wish(reader, reader.ab, Privilege.CREATE_TABLE)
    one = load(reader.olga, "acme", row.pk)
    with pytest.raises(Invalid, match="end that was asked for is past"):
        propose(reader.olga, one, timezone.now() - DAY)
    Securable.objects.filter(pk=gone.id).delete()
    assert [each.row for each in open_requests(reader.olga)] == [other]
    with pytest.raises(NotFound, match="no such request"):
        load(reader.olga, "acme", row.pk)
    people.remove_user(reader.olga, "acme", "mia")
    (left,) = open_requests(reader.olga)
    assert not left.is_member
    with pytest.raises(Invalid, match="mia is no member of metalake acme any more"):
        propose(reader.olga, left, other.ends_at)
    decline(reader.olga, "acme", other.pk, "She left.")


def test_whoever_may_grant_but_not_assign_is_told_whom_to_ask(reader: World) -> None:
    row = wish(reader, reader.t)
    reader.give("nils", "use_catalog@lake", "use_schema@lake", "manage_grants@lake.A")
    nils = reader.actor("nils")
    one = load(nils, "acme", row.pk)
    proposal = propose(nils, one, row.ends_at)
    assert proposal.planned is None and proposal.asks
    with pytest.raises(Invalid, match="You may not do all of it"):
        approve(nils, one, row.ends_at, "")


def test_open_requests_cost_the_same_however_many(reader: World, django_assert_num_queries: object) -> None:
    olga = reader.olga
    with django_assert_num_queries(1):  # type: ignore[operator]
        assert deciding.open_requests(olga) == []
    reader.give("mia", "select_table@lake.A")
    for n in range(5):
        wish(reader, reader.table(f"t{n}"))
    olga = reader.olga
    with django_assert_num_queries(3):  # type: ignore[operator]
        assert len(deciding.open_requests(olga, reader.acme.id)) == 5
