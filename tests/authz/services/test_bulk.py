"""Many users or groups in one request: each succeeds or fails by itself, and the reply says which and why."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
import yaml
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from authz.models import AuditEntry, Group, Member, PolicyEpoch
from authz.services import bulk, people
from authz.services.bulk import NewUser
from authz.services.snapshot_changes import GroupUser
from metalake.errors import Forbidden, OutcomeUnknown, ProviderUnavailable
from metalake.models import Metalake
from tests.authz.small_world import Wire, World
from tests.parts import reference

USERS, GROUPS = "bulk/metalakes/acme/users", "bulk/metalakes/acme/groups"


def users_of(world: World) -> list[str]:
    return [person.name for person in people.list_users(world.olga, "acme")]


def groups_of(world: World) -> list[str]:
    return [person.name for person in people.list_groups(world.olga, "acme")]


def state() -> tuple[Any, ...]:
    """All that these requests may change."""
    return (
        sorted(Member.objects.values_list("user__username", flat=True)),
        sorted(Group.objects.values_list("name", flat=True)),
        AuditEntry.objects.exclude(event="access.refused").count(),
        PolicyEpoch.objects.get().value,
    )


def test_users_are_added_each_by_itself(world: World, wire: Wire) -> None:
    users = [
        {"name": "anna", "externalId": "ext-anna"},
        {"name": "mia"},
        {"name": "pilot:7"},
        {"name": "berta", "enabled": False},
        {"name": "anna"},
    ]
    status, reply = wire("POST", f"{USERS}/add", {"users": users})
    assert (status, reply["code"]) == (200, 0)
    assert [(user["name"], user.get("externalId"), user["enabled"], user["roles"]) for user in reply["users"]] == [
        ("anna", "ext-anna", True, []),
        ("berta", None, False, []),
    ]
    failures = [(failure["index"], failure["name"], failure["code"], failure["type"]) for failure in reply["errors"]]
    assert failures == [
        (1, "mia", 1004, "UserAlreadyExistsException"),
        (2, "pilot:7", 1001, "IllegalArgumentException"),
        (4, "anna", 1004, "UserAlreadyExistsException"),
    ]
    assert reply["errors"][0]["message"] == "User mia already exists."
    assert reply["summary"] == {"total": 5, "succeeded": 2, "failed": 3}
    assert users_of(world) == ["anna", "berta", "mia", "nils", "olga"]
    assert [entry.full_name for entry in world.events("user.added")] == ["anna", "berta"]
    assert world.actor("anna").is_member(world.acme.id) and not world.actor("berta").is_member(world.acme.id)


def test_users_are_removed_each_by_itself(world: World, wire: Wire) -> None:
    world.give("mia", "use_catalog@lake")
    world.own("mia", world.t)
    status, reply = wire("POST", f"{USERS}/remove", {"names": ["mia", "ghost", "olga", "nils"]})
    assert (status, reply["names"]) == (200, ["mia", "nils"])
    failures = [(failure["index"], failure["name"], failure["code"], failure["type"]) for failure in reply["errors"]]
    assert failures == [
        (1, "ghost", 1003, "NoSuchUserException"),
        (2, "olga", 1001, "IllegalArgumentException"),
    ]
    assert reply["errors"][0]["message"] == "User ghost does not exist."
    assert reply["summary"] == {"total": 4, "succeeded": 2, "failed": 2}
    assert users_of(world) == ["olga"]
    mia = world.mia
    assert (mia.is_member(world.acme.id), mia.roles) == (False, ())
    world.t.refresh_from_db()
    assert world.t.owner_user == world.users["olga"]


def test_groups_are_added_and_removed_each_by_itself(world: World, wire: Wire) -> None:
    world.group("pilots", "mia")
    added = [{"name": "crew", "externalId": "x-1"}, {"name": "pilots"}, {"name": " crew"}]
    status, reply = wire("POST", f"{GROUPS}/add/", {"groups": added})
    assert (status, [(group["name"], group["externalId"]) for group in reply["groups"]]) == (200, [("crew", "x-1")])
    assert [(failure["index"], failure["type"]) for failure in reply["errors"]] == [
        (1, "GroupAlreadyExistsException"),
        (2, "IllegalArgumentException"),
    ]
    assert reply["summary"] == {"total": 3, "succeeded": 1, "failed": 2}
    status, reply = wire("POST", f"{GROUPS}/remove", {"names": ["nobody", "pilots", "crew"]})
    assert (status, reply["names"]) == (200, ["pilots", "crew"])
    (failure,) = reply["errors"]
    assert failure == {
        "index": 0,
        "name": "nobody",
        "code": 1003,
        "type": "NoSuchGroupException",
        "message": "Group nobody does not exist.",
    }
    assert groups_of(world) == [] and not GroupUser.objects.exists()


def test_a_hundred_at_once(world: World, wire: Wire) -> None:
    names = [f"user{number:03}" for number in range(100)]
    status, reply = wire("POST", f"{USERS}/add", {"users": [{"name": name} for name in names]})
    assert (status, reply["summary"]) == (200, {"total": 100, "succeeded": 100, "failed": 0})
    assert len(world.events("user.added")) == 100
    status, reply = wire("POST", f"{USERS}/remove", {"names": names})
    assert (status, reply["names"], reply["errors"]) == (200, names, [])
    assert users_of(world) == ["mia", "nils", "olga"]


@pytest.mark.store
@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        (f"{USERS}/add", {}, "users: is required"),
        (f"{USERS}/add", {"users": []}, "users: must have 1 or more items"),
        (f"{USERS}/add", {"users": None}, "users: "),
        (f"{USERS}/add", {"users": [{"name": f"u{n}"} for n in range(101)]}, "users: must have 100 items or fewer"),
        (f"{USERS}/add", {"users": [{"name": "anna"}, {"externalId": "x"}]}, "users[1].name: is required"),
        (f"{USERS}/add", {"users": [{"name": "anna"}, "berta"]}, "users[1]: must be an object"),
        (f"{USERS}/add", {"users": [{"name": "anna"}, {"name": 7}]}, "users[1].name: "),
        (f"{USERS}/add", {"users": [{"name": "anna", "enabled": "yes"}]}, "users[0].enabled: "),
        (f"{USERS}/add", {"users": [{"name": "anna", "externalId": "x" * 256}]}, "users[0].externalId: "),
        (f"{USERS}/add", {"users": [{"name": "anna", "roles": ["r"]}]}, "users[0]: unknown field 'roles'"),
        (f"{USERS}/add", {"users": [{"name": "anna"}], "force": True}, "body: unknown field 'force'"),
        (f"{USERS}/add", {"users": [{"name": "anna"}, {"name": "a\x00"}]}, "NUL"),
        (f"{USERS}/add", [{"name": "anna"}], "body: must be an object"),
        (f"{USERS}/add", {"names": ["anna"]}, "users: is required"),
        (f"{USERS}/remove", {"names": []}, "names: must have 1 or more items"),
        (f"{USERS}/remove", {"names": [f"u{n}" for n in range(101)]}, "names: must have 100 items or fewer"),
        (f"{USERS}/remove", {"names": ["mia", 7]}, "names[1]: "),
        (f"{USERS}/remove", {"names": ["mia", "nils", "mia"]}, "names: 'mia' is named twice; name it once"),
        (f"{USERS}/remove", {"users": ["mia"]}, "names: is required"),
        (f"{GROUPS}/add", {"groups": [{"name": "crew"}, {}]}, "groups[1].name: is required"),
        (f"{GROUPS}/add", {"groups": [{"name": "crew", "enabled": True}]}, "groups[0]: unknown field 'enabled'"),
        (f"{GROUPS}/add", {"groups": [{"name": "crew", "externalId": "x" * 256}]}, "groups[0].externalId: "),
        (f"{GROUPS}/add", {"groups": [{"name": f"g{n}"} for n in range(101)]}, "groups: must have 100 items or fewer"),
        (f"{GROUPS}/remove", {"names": ["pilots", "pilots"]}, "names: 'pilots' is named twice; name it once"),
    ],
)
def test_a_body_that_is_wrong_anywhere_does_nothing(world: World, wire: Wire, path: str, body: Any, said: str) -> None:
    world.group("pilots", "mia")
    before = state()
    status, reply = wire("POST", path, body)
    assert (status, reply["code"], reply["type"]) == (400, 1001, "IllegalArgumentException")
    assert said in reply["message"]
    assert state() == before


REQUESTS = [
    (f"{USERS}/add", {"users": [{"name": "anna"}]}, "manage_users"),
    (f"{USERS}/remove", {"names": ["nils"]}, "manage_users"),
    (f"{GROUPS}/add", {"groups": [{"name": "crew"}]}, "manage_groups"),
    (f"{GROUPS}/remove", {"names": ["pilots"]}, "manage_groups"),
]


@pytest.mark.parametrize(("path", "body", "right"), REQUESTS)
def test_it_takes_the_right_to_manage_them(world: World, wire: Wire, path: str, body: Any, right: str) -> None:
    world.group("pilots", "nils")
    other = {"manage_users": "manage_groups", "manage_groups": "manage_users"}[right]
    world.give("mia", f"{other}@acme")
    before = state()
    status, reply = wire("POST", path, body, user="mia")
    assert (status, reply["code"], reply["type"]) == (403, 1008, "ForbiddenException")
    assert state() == before
    world.give("mia", f"{right}@acme")
    status, reply = wire("POST", path, body, user="mia")
    assert (status, reply["summary"]) == (200, {"total": 1, "succeeded": 1, "failed": 0})


@pytest.mark.parametrize(("path", "body", "right"), REQUESTS)
def test_a_hidden_metalake_is_answered_like_a_missing_one(
    world: World, wire: Wire, path: str, body: Any, right: str
) -> None:
    world.group("pilots", "nils")
    before = state()
    told = []
    for name in ("acme", "nowhere"):
        status, reply = wire("POST", path.replace("acme", name), body, user="sam")
        told.append((status, reply["code"], reply["type"], reply["message"].replace(name, "*")))
    assert told[0] == told[1] == (404, 1003, "NoSuchMetalakeException", "Metalake * does not exist.")
    assert state() == before


@pytest.mark.parametrize(("path", "body", "right"), REQUESTS)
def test_nothing_happens_in_a_disabled_metalake(world: World, wire: Wire, path: str, body: Any, right: str) -> None:
    world.group("pilots", "nils")
    Metalake.objects.update(enabled=False)
    before = state()
    status, reply = wire("POST", path, body)
    assert (status, reply["code"], reply["type"]) == (409, 1009, "MetalakeNotInUseException")
    assert state() == before


def test_who_removes_themselves_removes_nobody_after(world: World, wire: Wire) -> None:
    world.give("mia", "manage_users@acme")
    status, reply = wire("POST", f"{USERS}/remove", {"names": ["mia", "nils"]}, user="mia")
    assert (status, reply["names"]) == (200, ["mia"])
    assert [(failure["name"], failure["type"]) for failure in reply["errors"]] == [("nils", "NoSuchMetalakeException")]
    assert users_of(world) == ["nils", "olga"]


def test_a_group_whose_deny_the_caller_may_not_lift_stays(world: World, wire: Wire) -> None:
    world.give("mia", "manage_groups@acme")
    world.group("pilots", "nils")
    denied = world.give("nils", "deny use_catalog@lake")
    world.group("crew")
    wire("PUT", "metalakes/acme/permissions/groups/pilots/grant", {"roleNames": [denied]})
    status, reply = wire("POST", f"{GROUPS}/remove", {"names": ["pilots", "crew"]}, user="mia")
    assert (status, reply["names"]) == (200, ["crew"])
    assert [(failure["name"], failure["code"]) for failure in reply["errors"]] == [("pilots", 1008)]
    assert groups_of(world) == ["pilots"]


def test_names_with_a_percent_sign_are_told_without_it(world: World, wire: Wire) -> None:
    _, reply = wire("POST", f"{USERS}/remove", {"names": ["50%s"]})
    (failure,) = reply["errors"]
    assert failure["name"] == "50%s" and "%" not in failure["message"]


def test_a_database_that_does_not_answer_is_waited_for_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def add_user(actor: object, metalake: str, name: str, *rest: object) -> str:
        asked.append(name)
        if name == "berta":
            raise OutcomeUnknown("Look before writing again.")
        if name == "cora":
            raise ProviderUnavailable("The database is not available; try again.")
        return name

    monkeypatch.setattr(people, "add_user", add_user)
    outcome = bulk.add_users(world.olga, "acme", [NewUser(name) for name in ("anna", "berta", "cora", "dora", "emma")])
    assert (len(outcome.done), asked) == (1, ["anna", "berta", "cora"])
    assert [(failure.index, failure.name, type(failure.error)) for failure in outcome.failures] == [
        (1, "berta", OutcomeUnknown),
        (2, "cora", ProviderUnavailable),
        (3, "dora", ProviderUnavailable),
        (4, "emma", ProviderUnavailable),
    ]


def test_the_services_ask_the_right_even_for_nothing(world: World) -> None:
    for act in (bulk.add_users, bulk.remove_users, bulk.add_groups, bulk.remove_groups):
        with pytest.raises(Forbidden):
            act(world.mia, "acme", [])


# The public description of the wire

FOLDER = "gravitino-openapi"


@pytest.fixture(scope="module")
def public() -> dict[str, Any]:
    return document("bulk.yaml")


def document(name: str) -> dict[str, Any]:
    parsed = yaml.safe_load(reference(f"{FOLDER}/{name}").read_bytes())
    # Status codes are numbers in YAML, and dates in examples are dates.
    return orjson.loads(orjson.dumps(parsed, option=orjson.OPT_NON_STR_KEYS))


def validate(reply: dict[str, Any], schema: str) -> None:
    names = ("bulk.yaml", "users.yaml", "openapi.yaml")
    resources = [(f"http://wire/{name}", Resource.from_contents(document(name), DRAFT202012)) for name in names]
    registry: Registry[Any] = Registry().with_resources(resources)
    pointer = {"$ref": f"http://wire/bulk.yaml#/components/schemas/{schema}"}
    Draft202012Validator(pointer, registry=registry).validate(reply)


def test_replies_are_those_of_the_public_description(world: World, wire: Wire, public: dict[str, Any]) -> None:
    examples = public["components"]["examples"]
    assert {"/bulk/metalakes/{metalake}/users/add", "/bulk/metalakes/{metalake}/users/remove"} <= set(public["paths"])
    people.add_user(world.olga, "acme", "bob")
    status, reply = wire("POST", f"{USERS}/add", examples["BulkUserAddRequest"]["value"])
    validate(reply, "BulkUserResponse")
    told = examples["BulkUserResponse"]["value"]
    assert (status, reply["summary"]) == (200, told["summary"])
    assert [user | {"audit": 0} for user in reply["users"]] == [user | {"audit": 0} for user in told["users"]]
    assert [failure | {"message": 0} for failure in reply["errors"]] == [
        failure | {"message": 0} for failure in told["errors"]
    ]
    status, reply = wire("POST", f"{USERS}/remove", examples["BulkRemoveRequest"]["value"])
    validate(reply, "BulkRemoveResponse")
    told = examples["BulkRemoveResponse"]["value"]
    assert (status, reply["names"], reply["summary"]) == (200, told["names"], told["summary"])
    assert [failure | {"message": 0} for failure in reply["errors"]] == [
        failure | {"message": 0} for failure in told["errors"]
    ]
