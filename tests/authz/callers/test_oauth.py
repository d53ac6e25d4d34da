"""Tokens of an OAuth issuer: a real one on this machine, real keys, and every way a token can be wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from authz.actor import NOBODY
from authz.callers import oauth
from authz.callers.identity import authenticate, issue_token
from authz.models import User
from authz.services import grants, owners, people, roles
from metalake.errors import Unauthenticated
from metalake.kinds import Kind
from tests.authz.issuer import (
    AUDIENCE,
    FAR,
    Issuer,
    believe,
    both_wires,
    claims,
    good,
    keys,
    public_jwk,
    rsa_key,
    signed,
)
from tests.authz.small_world import World
from tests.authz.wrong_tokens import WRONG
from tests.cases import each


@pytest.fixture(scope="module")
def shared_issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    yield issuer
    issuer.close()


@pytest.fixture
def own_issuer() -> Iterator[Issuer]:
    """For tests that change what it answers."""
    issuer = Issuer()
    yield issuer
    issuer.close()


@pytest.fixture
def issuer(shared_issuer: Issuer, settings: Any) -> Issuer:
    believe(settings, shared_issuer)
    return shared_issuer


# Good ones


@pytest.mark.parametrize("kid", ["rsa", "only-rs384", "p256", "p384", "ed"])
def test_a_token_of_each_kind_of_key_names_its_user(issuer: Issuer, kid: str) -> None:
    assert oauth.read(good(issuer, kid)) == ("mia", ())


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512"])
def test_a_key_that_names_no_algorithm_signs_with_any_of_its_kind(issuer: Issuer, algorithm: str) -> None:
    token = jwt.encode(claims(issuer), keys()["rsa"][0], algorithm, headers={"kid": "rsa"})
    assert oauth.read(token).user == "mia"


@pytest.mark.parametrize(
    "changed",
    [
        {"aud": ["account", AUDIENCE]},
        {"iat": ...},
        {"groups": None},
        {"groups": []},
        {"_claim_names": {"roles": "src1"}},
    ],
)
def test_claims_that_are_fine(issuer: Issuer, changed: dict[str, Any]) -> None:
    assert oauth.read(good(issuer, **changed)) == ("mia", ())


def test_clocks_may_differ_a_little(issuer: Issuer) -> None:
    now = time.time()
    for moments in ({"exp": now - 5}, {"nbf": now + 5}, {"iat": now + 5}, {"exp": int(now) + FAR}):
        assert oauth.read(good(issuer, **moments)).user == "mia"


def test_claims_of_other_names(issuer: Issuer, settings: Any) -> None:
    settings.METALAKE_OAUTH_USER_CLAIM = "preferred_username"
    settings.METALAKE_OAUTH_GROUPS_CLAIM = "teams"
    token = good(issuer, sub="f3a1", preferred_username="mia", teams=["crew"], groups=["admins"])
    assert oauth.read(token) == ("mia", ("crew",))
    with pytest.raises(Unauthenticated, match="claim preferred_username"):
        oauth.read(good(issuer, sub="mia"))


def test_one_group_may_come_as_a_string(issuer: Issuer) -> None:
    assert oauth.read(good(issuer, groups="crew")).groups == ("crew",)
    assert oauth.read(good(issuer, groups=["crew", "pilots", "a\0b"])).groups == ("crew", "pilots")


def test_of_two_issuers_each_has_its_own_keys(issuer: Issuer, own_issuer: Issuer, settings: Any) -> None:
    settings.METALAKE_OAUTH_ISSUERS = {issuer.url: "", own_issuer.url: ""}
    own_issuer.publish(public_jwk("rsa", rsa_key("theirs")))
    theirs = signed(claims(own_issuer), private=rsa_key("theirs"))
    assert oauth.read(theirs).user == oauth.read(good(issuer)).user == "mia"
    with pytest.raises(Unauthenticated):
        oauth.read(signed(claims(issuer), private=rsa_key("theirs")))
    with pytest.raises(Unauthenticated):
        oauth.read(good(own_issuer))


def test_keys_in_a_file(own_issuer: Issuer, settings: Any, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(own_issuer.pages["/realms/acme/keys"][2])
    believe(settings, own_issuer, jwks=str(file))
    assert oauth.read(good(own_issuer)).user == "mia"
    assert own_issuer.asked == []


# Bad ones


@each("make", WRONG.values())
def test_a_wrong_token_is_refused(issuer: Issuer, make: Callable[[Issuer], str]) -> None:
    """On both wires, each in its own shape, without telling the token, and without asking the database."""
    token = make(issuer)
    with pytest.raises(Unauthenticated):
        authenticate(f"Bearer {token}")
    (native, native_body), (iceberg, iceberg_body) = both_wires(token)
    assert (native, native_body["code"], native_body["type"]) == (401, 1011, "UnauthorizedException")
    assert (iceberg, iceberg_body["error"]["code"], iceberg_body["error"]["type"]) == (
        401,
        401,
        "NotAuthorizedException",
    )
    for message in (native_body["message"], iceberg_body["error"]["message"]):
        assert message and not any(part in message for part in token.split(".") if len(part) > 9)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"exp": 0}, "has expired"),
        ({"nbf": 10**10}, "is not valid yet"),
        ({"aud": "other"}, "is meant for another audience"),
        ({"exp": ...}, "lacks the claim exp"),
        ({"aud": ...}, "lacks the claim aud"),
        ({"iss": "https://issuer.example"}, "not of an issuer that this server trusts"),
        ({"sub": ...}, "claim sub is not a user name"),
        ({"groups": 7}, "claim groups is not a list of group names"),
    ],
)
def test_a_refusal_says_why(issuer: Issuer, changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Unauthenticated, match=sentence):
        oauth.read(good(issuer, **changed))


def test_a_refusal_says_what_is_wrong_with_the_key(issuer: Issuer) -> None:
    for kid, sentence in ((..., "does not name its key"), ("unknown", "key that its issuer does not publish")):
        with pytest.raises(Unauthenticated, match=sentence):
            oauth.read(signed(claims(issuer), kid=kid))


def test_there_are_enough_wrong_tokens() -> None:
    assert len(WRONG) >= 200


# Who it is, and what their groups bring


@pytest.mark.store
def test_the_account_of_that_name_calls(world: World, issuer: Issuer) -> None:
    actor = authenticate(f"Bearer {good(issuer)}")
    assert (actor.id, actor.name, actor.claimed) == (world.users["mia"].pk, "mia", ())
    assert not actor.service_admin


@pytest.mark.store
def test_a_name_without_an_account_is_nobody(world: World, issuer: Issuer) -> None:
    world.group("crew", "nils")
    actor = authenticate(f"Bearer {good(issuer, sub='stranger', groups=['crew'])}")
    assert (actor.id, actor.name, actor.claimed) == (NOBODY, "stranger", ())
    assert not actor.is_member(world.acme.pk)


@pytest.mark.store
def test_a_disabled_account_is_out_at_once(world: World, issuer: Issuer) -> None:
    token = good(issuer)
    assert authenticate(f"Bearer {token}").name == "mia"
    User.objects.filter(username="mia").update(is_active=False)
    with pytest.raises(Unauthenticated, match="disabled"):
        authenticate(f"Bearer {token}")


@pytest.mark.store
def test_personal_tokens_and_passwords_stay(world: World, issuer: Issuer, wire: Any, settings: Any) -> None:
    secret = f"Bearer {issue_token(world.users['mia'], 'laptop')}"
    assert wire("GET", "authn/me", authorization=secret)[1]["principal"] == "mia"
    assert wire("GET", "authn/me", user="nils")[1]["principal"] == "nils"
    assert wire("GET", "authn/me", authorization=f"bearer  {good(issuer)} ")[1]["principal"] == "mia"
    settings.METALAKE_AUTHENTICATORS = ("oauth",)
    assert wire("GET", "authn/me", authorization=secret)[0] == 401
    settings.METALAKE_AUTHENTICATORS = ("basic", "token")
    assert wire("GET", "authn/me", authorization=f"Bearer {good(issuer)}")[0] == 401


@pytest.mark.store
def test_an_issuer_vouches_for_a_guest_and_ends_what_the_invitation_gave(
    world: World, issuer: Issuer, wire: Any
) -> None:
    User.objects.filter(username="mia").update(guest_of=world.acme.id)
    kept = issue_token(world.users["mia"], "kept")
    assert wire("GET", "authn/me", user="mia")[0] == 200
    assert wire("GET", "authn/me", authorization=f"Bearer {good(issuer)}")[1]["principal"] == "mia"
    account = User.objects.get(username="mia")
    assert (account.guest_of, account.has_usable_password()) == (None, False)
    assert wire("GET", "authn/me", user="mia")[0] == wire("GET", "authn/me", authorization=f"Bearer {kept}")[0] == 401


def test_such_a_token_makes_no_personal_token(world: World, issuer: Issuer, wire: Any) -> None:
    assert wire("POST", "tokens", {"name": "laptop"}, authorization=f"Bearer {good(issuer)}")[0] == 403


@pytest.fixture
def travellers(world: World) -> World:
    """The group `crew` may read lake, `guests` is denied what is in A:B, and nobody is in either by store."""
    world.group("crew")
    world.group("guests")
    for name in ("readers", "closed"):
        roles.create_role(world.olga, "acme", name)
    for privilege in ("use_catalog", "use_schema", "select_table"):
        grants.grant_privileges(world.olga, "acme", "readers", Kind.CATALOG, "lake", [(privilege, "allow")])
    grants.grant_privileges(world.olga, "acme", "closed", Kind.SCHEMA, "lake.A:B", [("select_table", "deny")])
    roles.assign_roles(world.olga, "acme", "group", "crew", ["readers"])
    roles.assign_roles(world.olga, "acme", "group", "guests", ["closed"])
    return world


OWNER_OF_T = "metalakes/acme/owners/table/lake.A%3AB.t"


def reads_t(wire: Any, issuer: Issuer, user: str = "mia", *, groups: Any = ...) -> int:
    """The status of asking for something of lake.A:B.t, which asks to load it."""
    return wire("GET", OWNER_OF_T, authorization=f"Bearer {good(issuer, sub=user, groups=groups)}")[0]


@pytest.mark.store
def test_a_claimed_group_brings_its_roles(travellers: World, issuer: Issuer, wire: Any) -> None:
    assert reads_t(wire, issuer) == 404
    assert reads_t(wire, issuer, groups=["crew"]) == 200
    assert reads_t(wire, issuer, groups="crew") == 200
    assert reads_t(wire, issuer, groups=["Crew", "crew ", "/crew", "nowhere"]) == 404
    assert reads_t(wire, issuer) == 404  # for that request alone


@pytest.mark.store
def test_a_claimed_group_brings_its_deny(travellers: World, issuer: Issuer, wire: Any) -> None:
    travellers.give("mia", "use_catalog@lake", "use_schema@lake", "select_table@lake")
    assert reads_t(wire, issuer) == 200
    assert reads_t(wire, issuer, groups=["guests"]) == 404
    assert reads_t(wire, issuer, groups=["crew", "guests"]) == 404


@pytest.mark.store
def test_a_claimed_group_joins_the_stored_ones(travellers: World, issuer: Issuer, wire: Any) -> None:
    people.set_group_users(travellers.olga, "acme", "guests", add=["mia"])
    assert reads_t(wire, issuer, groups=["crew"]) == 404
    people.set_group_users(travellers.olga, "acme", "guests", remove=["mia"])
    assert reads_t(wire, issuer, groups=["crew"]) == 200


@pytest.mark.store
def test_what_a_claimed_group_owns_is_the_callers(travellers: World, issuer: Issuer, wire: Any) -> None:
    travellers.give("mia", "use_catalog@lake", "use_schema@lake")
    owners.set_owner(travellers.olga, "acme", Kind.TABLE, "lake.A:B.t", "crew", "group")
    assert reads_t(wire, issuer) == 404
    assert reads_t(wire, issuer, groups=["guests", "crew"]) == 200


@pytest.mark.store
def test_a_claim_makes_nobody_a_member(travellers: World, issuer: Issuer, wire: Any) -> None:
    for user in ("sam", "stranger"):
        assert reads_t(wire, issuer, user, groups=["crew"]) == 404


@pytest.mark.store
def test_a_namesake_in_another_metalake_brings_nothing(travellers: World, issuer: Issuer, wire: Any) -> None:
    travellers.metalake("other", "nils")
    people.add_group(travellers.actor("nils"), "other", "pilots")
    roles.create_role(travellers.actor("nils"), "other", "readers")
    roles.assign_roles(travellers.actor("nils"), "other", "group", "pilots", ["readers"])
    assert reads_t(wire, issuer, groups=["pilots"]) == 404
    assert reads_t(wire, issuer, groups=["pilots", "crew"]) == 200


@pytest.mark.store
def test_a_role_by_claim_may_be_made_the_active_one(travellers: World, issuer: Issuer) -> None:
    bearer = f"Bearer {good(issuer, groups=['crew'])}"
    assert authenticate(bearer, "readers", "acme").active == authenticate(bearer).roles


@pytest.mark.store
def test_identity_takes_one_statement_and_claimed_groups_one_more(travellers: World, issuer: Issuer) -> None:
    def statements(**changed: Any) -> int:
        token = good(issuer, **changed)
        with CaptureQueriesContext(connection) as asked:
            authenticate(f"Bearer {token}")
        return len(asked)

    statements()
    assert statements() == 1
    assert statements(groups=["crew", "guests"]) == 2
    assert statements(sub="stranger", groups=["crew"]) == 1
