"""Registering and changing a catalog: a form of whatever the provider declares, and no secret on the way back."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from pydantic import Field, SecretStr

from catalogs import vault
from catalogs.models import Catalog
from catalogs.secrets import MASK
from catalogs.services import browsing, nesting
from metalake.kinds import Kind
from outside import refresh
from providers import registry
from tests.demo import actor, give
from tests.frontend.conftest import add_outside, add_stuck_intent, sign_in
from tests.providers.flat import FlatMemoryProvider
from tests.providers.memory import MemorySettings
from tests.providers.world import World

Ids = dict[str, int]
CANARY = "canary-7f3e91"


class VaultedSettings(MemorySettings):
    key: SecretStr = Field(alias="station-key", description="What opens the station.")
    spare: SecretStr | None = Field(None, alias="station-spare-key")
    depth: int = Field(3, alias="station-depth", ge=1, le=9)


class VaultedProvider(FlatMemoryProvider):
    label = "Vaulted station"
    settings = VaultedSettings  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def vaulted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.PROVIDERS, "vaulted", f"{__name__}:VaultedProvider")


def new(ids: Ids) -> str:
    return f"/metalakes/{ids['demo']}/catalogs/new"


def fields(world: World, **more: str) -> dict[str, str]:
    typed = {"name": "station", "comment": "", "property-world": str(world.path), "others": "", "act": "keep"}
    return typed | {key.replace("_", "-"): value for key, value in more.items()}


def vault_fields(world: World, **more: str) -> dict[str, str]:
    return fields(world, provider="vaulted", **{"property_station_key": CANARY} | more)


def send(client: Client, path: str, body: dict[str, Any], *, part: bool = True) -> tuple[int, str, str]:
    """Status, page, and where it leads."""
    answer = client.post(path, body, headers={"HX-Request": "true"} if part else {})
    return answer.status_code, answer.content.decode(), answer.headers.get("HX-Redirect") or answer.get("Location", "")


def error_at(page: str, field: str) -> str:
    found = re.search(rf'id="id_{re.escape(field)}-error"[^>]*>([^<]*)<', page)
    assert found, f"{field} has no place for what is wrong"
    return found[1]


def settings_of(name: str) -> str:
    return f"/catalogs/{Catalog.objects.get(name=name).pk}/settings"


def save(client: Client, path: str, body: dict[str, str]) -> tuple[int, str, str]:
    """Send a form that was just opened."""
    opened = re.search(r'name="version" value="(\d+)"', client.get(path).content.decode())
    assert opened
    return send(client, path, {"version": opened[1]} | body)


# Registering


def test_every_provider_can_be_chosen(admin: Client, ids: Ids) -> None:
    page = admin.get(new(ids)).content.decode()
    for name in registry.PROVIDERS:
        assert f"?provider={name}" in page
        form = admin.get(new(ids), {"provider": name})
        assert form.status_code == 200
        for declared in registry.provider_class(name).settings.declared():
            is_synonym = declared == "table-format-filter"  # of table-type-filter
            assert (f'name="property-{declared}"' in form.content.decode()) is not is_synonym
    unknown = admin.get(new(ids), {"provider": "<script>"})
    assert unknown.status_code == 400
    assert "no provider of that name" in unknown.content.decode()


def test_a_field_is_what_its_property_is(admin: Client, ids: Ids) -> None:
    page = admin.get(new(ids), {"provider": "vaulted"}).content.decode()
    inputs = dict(re.findall(r'<(?:input|select)[^>]*?name="property-([\w-]+)"([^>]*)>', page))
    by_name = {name: type_ for type_, name in re.findall(r'<input type="(\w+)" name="property-([\w-]+)"', page)}
    assert set(inputs) == set(VaultedSettings.declared())
    assert by_name["station-key"] == "password"
    assert by_name["station-depth"] == "number"
    assert 'placeholder="3"' in inputs["station-depth"] and 'min="1"' in inputs["station-depth"]
    assert "What opens the station." in page
    assert "no (default)" in page
    assert re.search(r'<label for="id_property-station-key">station-key <span class="must">', page)
    assert page.index('name="property-station-key"') < page.index('name="property-cache-ttl"'), "required ones first"


def test_a_catalog_is_registered(admin: Client, ids: Ids, world: World) -> None:
    body = vault_fields(world, property_cache_ttl="60", comment="Weather", others="owner-team = met\n\nregion=eu=west")
    status, page, leads_to = send(admin, new(ids), body)
    row = Catalog.objects.get(name="station")
    assert (status, leads_to) == (200, f"/objects/{row.pk}")
    assert CANARY not in page
    assert (row.provider, row.comment) == ("vaulted", "Weather")
    assert vault.properties_of(row.pk) == {
        "world": str(world.path), "cache-ttl": "60", "station-key": CANARY, "owner-team": "met", "region": "eu=west",
    }  # fmt: skip
    assert CANARY not in admin.get(leads_to).content.decode()
    assert admin.post(new(ids), vault_fields(world, name="second")).status_code == 302, "and without htmx"


def test_what_is_wrong_is_said_at_its_field(admin: Client, ids: Ids, world: World) -> None:
    def wrong(field: str, **more: str) -> str:
        status, page, _ = send(admin, new(ids), vault_fields(world, **more))
        assert status == 422
        assert CANARY not in page
        return error_at(page, field)

    assert "required" in wrong("property-world", property_world="")
    assert "required" in wrong("name", name="")
    assert "cannot be a catalog name" in wrong("name", name="no way!")
    assert "greater than or equal to 60" in wrong("property-refresh-interval", property_refresh_interval="5")
    assert "Select a valid choice" in wrong("property-nested-namespaces", property_nested_namespaces="perhaps")
    assert "did you mean &#x27;cache-ttl&#x27;" in wrong("others", others="cache_ttl=5")
    assert "Line 2 is not of the form" in wrong("others", others="a=b\nc")
    assert "a second time" in wrong("others", others="a=b\na=c")
    assert "has a field of its own" in wrong("others", others="world=x")
    assert "already exists" in wrong("name", name="lake")
    assert "stands for a secret" in wrong("property-station-key", property_station_key=MASK)
    assert not Catalog.objects.filter(parent_id=ids["demo"]).exclude(name="lake").exists()


def test_a_connection_is_tried_before_anything_is_kept(admin: Client, ids: Ids, world: World) -> None:
    status, page, _ = send(admin, new(ids), vault_fields(world, act="test", name=""))
    assert (status, "The connection works." in page) == (200, True), "a name is not needed for that"
    world.fail("test_connection", "down", "denied")
    for said in ("Memory refused the connection.", "Memory knows no such key."):
        status, page, _ = send(admin, new(ids), vault_fields(world, act="test"))
        assert (status, said in page) == (422, True)
        assert CANARY not in page
    assert Catalog.objects.count() == 1
    assert world.calls("test_connection") == 3


@pytest.mark.parametrize("part", [True, False])
def test_no_secret_comes_back(admin: Client, ids: Ids, world: World, part: bool) -> None:
    """Whatever is wrong with the rest, what is left of it is kept."""
    hidden = {"others": f"owner-team=met\ns3.secret-access-key={CANARY}", "property_station_spare_key": CANARY}
    for more in ({"name": ""}, {"act": "test"}, {"property_cache_ttl": "-1"}):
        world.fail("test_connection", "down")
        status, page, _ = send(admin, new(ids), vault_fields(world, **hidden, **more), part=part)
        assert status == 422
        assert CANARY not in page
        if not part:
            assert f'value="{world.path}"' in page
            assert "owner-team=met" in page
            assert page.count("Type it again") == 3
        world.heal()


def test_a_password_in_an_address_does_not_come_back_either(admin: Client, ids: Ids, world: World) -> None:
    body = vault_fields(world, name="", property_world=f"https://clerk:{CANARY}@station.example/world")
    _, page, _ = send(admin, new(ids), body, part=False)
    assert CANARY not in page
    assert "Type it again" in error_at(page, "property-world")


def test_a_message_that_quotes_a_secret_is_hushed(
    admin: Client, ids: Ids, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: object) -> None:
        from metalake.errors import ProviderUnavailable

        raise ProviderUnavailable(f"Nobody knows the key {CANARY}.", kind="catalog")

    monkeypatch.setattr(VaultedProvider, "test_connection", refuse)
    _, page, _ = send(admin, new(ids), vault_fields(world, act="test"))
    assert f"Nobody knows the key {MASK}." in page


def test_registering_tries_the_connection_and_can_do_without(admin: Client, ids: Ids, world: World) -> None:
    world.fail("test_connection", "down", "denied")
    for said in ("Memory refused the connection.", "Memory knows no such key."):
        status, page, _ = send(admin, new(ids), vault_fields(world))
        assert (status, said in page, CANARY in page) == (422, True, False)
        assert 'name="act" value="anyway"' in page
    assert not Catalog.objects.filter(name="station").exists()
    assert "anyway" not in send(admin, new(ids), vault_fields(world, name="no way!"))[1], (
        "that is no connection's fault"
    )
    calls = world.calls("test_connection")
    status, _, leads_to = send(admin, new(ids), vault_fields(world, act="anyway"))
    assert (status, world.calls("test_connection")) == (200, calls)
    assert "Catalog station is registered.</p>" in admin.get(leads_to).content.decode()
    leads_to = send(admin, new(ids), vault_fields(world, name="second"))[2]
    assert "Catalog second is registered. The connection works." in admin.get(leads_to).content.decode()


def test_rare_properties_are_folded_and_durations_are_in_words(admin: Client, ids: Ids, world: World) -> None:
    page = admin.get(new(ids), {"provider": "jdbc-postgresql"}).content.decode()
    assert page.index("Connection</h2>") < page.index("Freshness</h2>") < page.index('<details class="fold"><summary>')
    assert page.index('<details class="fold">') < page.index("Pool</h2>")
    assert "Where the system is" in page
    assert '<option value="900">every 15 minutes</option>' in page and "only on demand (default)" in page
    assert '<option value="30">' not in page.partition('name="property-refresh-interval"')[2].partition("</select>")[0]
    body = vault_fields(world, property_refresh_interval="5400", property_cache_ttl="61", others="a=b")
    assert send(admin, new(ids), body)[0] == 200
    page = admin.get(settings_of("station")).content.decode()
    assert '<option value="5400" selected>every 90 minutes</option>' in page, "any other value is one more choice"
    assert '<option value="61" selected>for 61 seconds</option>' in page
    assert '<details class="fold" open>' in page, "something is filled in"
    _, page, _ = send(admin, new(ids), vault_fields(world, property_cache_ttl="99999999"), part=False)
    assert '<option value="99999999" selected>' in page and "less than or equal to" in page


# The list


def test_the_list_of_catalogs_has_their_health_and_sorts(admin: Client, ids: Ids, world: World) -> None:
    station, other = add_outside(world), add_outside(World(world.path.with_name("2.json")), "annex")
    refresh.carry_on(refresh.begin(other.id, here=True).pk)
    add_stuck_intent(station)
    path = f"/objects/{ids['demo']}"

    def names(page: str) -> list[str]:
        below = page.partition('id="below"')[2]
        return re.findall(r'rowheader".*?>([a-z]+)</a>', below)

    page = admin.get(path).content.decode()
    assert names(page) == ["annex", "lake", "station"]
    assert "Flat memory" in page and "Apache Iceberg" in page
    assert "1 stuck write" in page and "never compared" in page and "compared <local-time>" in page
    assert names(admin.get(path, {"order": "-name"}).content.decode()) == ["station", "lake", "annex"]
    page = admin.get(path, {"order": "health"}).content.decode()
    assert names(page) == ["station", "annex", "lake"], "what needs somebody comes first"
    assert 'aria-sort="ascending"><a class="sorts" href="' in page and "?order=-health" in page
    assert names(admin.get(path, {"order": "'><script>"}).content.decode()) == ["annex", "lake", "station"]
    give("rita", Kind.CATALOG, "station", "use_catalog", role="passenger")
    page = sign_in("rita").get(path).content.decode()
    assert "Flat memory" in page and "stuck" not in page and "compared" not in page, "health is for who may refresh"


def test_a_part_of_a_long_list_does_not_sort(admin: Client, ids: Ids, world: World, monkeypatch: Any) -> None:
    add_outside(world)
    monkeypatch.setattr(browsing, "LEVEL_LIMIT", 1)
    page = admin.get(f"/objects/{ids['demo']}", {"order": "-name"}).content.decode()
    assert "aria-sort" not in page and "Apache Iceberg" in page


# Who may


@pytest.mark.store
def test_only_who_may_create_catalogs_registers_them(ids: Ids, world: World) -> None:
    rita, otto = sign_in("rita"), sign_in("otto")
    assert "Register a catalog" not in rita.get(f"/objects/{ids['demo']}").content.decode()
    assert rita.get(new(ids)).status_code == 403
    assert rita.post(new(ids), fields(world, provider="memory-flat")).status_code == 403
    assert otto.get(new(ids)).status_code == 404
    nowhere = f"/metalakes/{ids['lake']}/catalogs/new"
    assert sign_in("admin").get(nowhere).status_code == 404, "a catalog holds no catalogs"
    give("rita", Kind.METALAKE, "demo", "create_catalog", role="registrar")
    assert "Register a catalog" in rita.get(f"/objects/{ids['demo']}").content.decode()
    status, _, leads_to = send(rita, new(ids), fields(world, provider="memory-flat"))
    assert (status, leads_to) == (200, f"/objects/{Catalog.objects.get(name='station').pk}")


def test_only_owners_change_a_catalog(ids: Ids, world: World) -> None:
    found = add_outside(world)
    rita, otto = sign_in("rita"), sign_in("otto")
    for path in (f"/catalogs/{found.id}/settings", f"/catalogs/{found.id}/nesting"):
        assert otto.get(path).status_code == 404
        assert rita.get(path).status_code == 404, "she does not see it"
        assert rita.get(path.replace(str(found.id), str(ids["lake"]))).status_code == 403, "this one she sees"
        assert sign_in("admin").get(path).status_code == 200
    assert rita.post(f"/catalogs/{ids['lake']}/settings", fields(world)).status_code == 403


# Changing


def test_secrets_stay_when_left_alone(admin: Client, ids: Ids, world: World) -> None:
    send(admin, new(ids), vault_fields(world, property_station_spare_key="spare-1", others=f"db.password={CANARY}"))
    row = Catalog.objects.get(name="station")
    page = admin.get(settings_of("station")).content.decode()
    assert CANARY not in page and "spare-1" not in page
    assert f'placeholder="{MASK} (kept when left empty)"' in page
    assert f"db.password={MASK}" in page
    wrong = send(admin, settings_of("station"), {"name": ""})[1]
    parts = set(re.findall(r'id="([^"]+)" hx-swap-oob', wrong))
    assert "id_remove-station-spare-key-error" in parts and parts <= set(re.findall(r'\bid="([^"]+)"', page))
    body = fields(world, comment="Weather", property_station_depth="5", others=f"db.password={MASK}")
    assert save(admin, settings_of("station"), body | {"property-station-key": ""})[0] == 200
    kept = vault.properties_of(row.pk)
    assert (kept["station-key"], kept["station-spare-key"], kept["db.password"]) == (CANARY, "spare-1", CANARY)
    assert kept["station-depth"] == "5"
    row.refresh_from_db()
    assert row.comment == "Weather"
    changed = body | {"property-station-key": "fresh-key", "remove-station-spare-key": "on", "others": ""}
    assert save(admin, settings_of("station"), changed)[0] == 200
    assert vault.properties_of(row.pk) == {"world": str(world.path), "station-key": "fresh-key", "station-depth": "5"}


def test_a_catalog_is_renamed_and_its_connection_tried(admin: Client, ids: Ids, world: World) -> None:
    found = add_outside(world)
    path = f"/catalogs/{found.id}/settings"
    world.fail("test_connection", "down")
    status, page, _ = save(admin, path, fields(world, act="test", name="post"))
    assert (status, "refused the connection" in page) == (422, True)
    assert Catalog.objects.filter(name="station").exists(), "trying keeps nothing"
    assert save(admin, path, fields(world, name="post"))[0] == 200
    assert Catalog.objects.get(name="post").pk == found.id
    assert "already exists" in error_at(save(admin, path, fields(world, name="lake"))[1], "name")


def test_what_cannot_change_is_fixed_and_says_why(admin: Client, ids: Ids) -> None:
    page = admin.get(f"/catalogs/{ids['lake']}/settings").content.decode()
    assert re.search(r'name="property-warehouse"[^>]*disabled', page)
    assert "tables are in it already" in page


# Schemas inside schemas


def test_conflicts_are_shown_before_a_catalog_becomes_nested(admin: Client, ids: Ids, world: World) -> None:
    found = add_outside(world)
    for name in ("sales:emea", "Sales", "sales", "sales_x001f_apac"):
        world.put_schema(name)
    refresh.carry_on(refresh.begin(found.id, here=True).pk)
    path = f"/catalogs/{found.id}/nesting"
    wanted = {"property-nested-namespaces": "true"}
    page = admin.get(path, wanted, headers={"HX-Request": "true"}).content.decode()
    for said in (
        "Schema sales:emea contains &#x27;:&#x27;",
        "Schema sales_x001f_apac would be read as sales:apac.",
        "Sales and sales would be one schema.",
    ):
        assert said in page
    assert "weather" not in page
    calm = admin.get(path, {"property-nested-namespaces": "false"}, headers={"HX-Request": "true"})
    assert "note" not in calm.content.decode()
    body = fields(world, property_nested_namespaces="true")
    status, page, _ = save(admin, f"/catalogs/{found.id}/settings", body)
    assert status == 422
    assert "sales:emea" in error_at(page, "property-nested-namespaces")
    assert not Catalog.objects.get(pk=found.id).nested
    for name in ("sales:emea", "Sales", "sales_x001f_apac"):
        world.drop(name)
    Catalog.objects.get(pk=found.id).schemas.update(create_time="2020-01-01T00:00:00Z")
    refresh.carry_on(refresh.begin(found.id, here=True).pk)
    assert "Nothing stands in the way" in admin.get(path).content.decode()
    assert save(admin, f"/catalogs/{found.id}/settings", body)[0] == 200
    assert Catalog.objects.get(pk=found.id).nested


def test_a_silent_system_is_told_as_the_reason(admin: Client, ids: Ids, world: World) -> None:
    found = add_outside(world)
    world.fail("list_schemas", "denied")
    checked = nesting.check(actor("admin"), found)
    assert "must say first which schemas it has" in checked.note and "no such key" in checked.note
    world.fail("list_schemas", "denied")
    page = admin.get(f"/catalogs/{found.id}/nesting").content.decode()
    assert "must say first" in page and "Nothing stands in the way" not in page
