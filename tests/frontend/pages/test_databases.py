"""Databases on the pages: the form that registers one, and what a table's and a view's page show of theirs."""

from __future__ import annotations

import re
from dataclasses import replace

import psycopg
import pytest
from django.test import Client

from catalogs.models import Catalog
from catalogs.services import browsing
from metalake.lineage import Address
from providers import circuit_breaker
from tests.demo import actor
from tests.frontend.conftest import find
from tests.frontend.pages import test_table_forms as table_forms
from tests.frontend.pages.test_catalogs import error_at, new, send
from tests.mariadb import MariaDB
from tests.providers.flat import FlatMemoryProvider

CANARY = "canary-51d8a2"
POSTGRESQL = """
CREATE TABLE customers (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email varchar(200) NOT NULL UNIQUE,
    state varchar(20) NOT NULL DEFAULT 'it''s open', since timestamptz DEFAULT now(), day date);
CREATE UNIQUE INDEX by_day ON customers (day, state);
CREATE TABLE orders (id bigint, day date) PARTITION BY RANGE (day);
CREATE MATERIALIZED VIEW busy AS SELECT id, email FROM customers WHERE state = 'busy';
"""


def typed(url: str, **more: str) -> dict[str, str]:
    """What was typed into the form of a database."""
    login = {"property-jdbc-user": "postgres", "property-jdbc-password": CANARY}
    body = {"name": "sales", "comment": "Orders", "provider": "jdbc-postgresql", "others": "", "act": "keep"}
    return body | login | {"property-jdbc-url": f"jdbc:postgresql://{url.rpartition('@')[2]}"} | more


@pytest.fixture
def sales(admin: Client, ids: dict[str, int], postgres_url: str) -> dict[str, int]:
    """The ids of what is in the catalog `sales`, by name."""
    circuit_breaker.forget_all()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(POSTGRESQL)
    status, page, _ = send(admin, new(ids), typed(postgres_url))
    assert (status, CANARY in page) == (200, False)
    return below("public") | {"sales": Catalog.objects.get(name="sales").pk}


def below(schema: str) -> dict[str, int]:
    """The ids of what is in a schema of the catalog `sales`, by name."""
    catalog = Address(metalake="demo", catalog="sales")
    browsing.level_below(actor("admin"), find(catalog), None, None)  # which imports its schemas
    level = browsing.level_below(actor("admin"), find(replace(catalog, schema=(schema,))), None, None)
    return {item.name: item.id for item in level.children}


def shown(client: Client, path: str) -> str:
    """The text of a page, its lines and spaces as one space each."""
    answer = client.get(path)
    assert answer.status_code == 200, path
    page = answer.content.decode()
    assert CANARY not in page
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_the_form_groups_what_providers_declare(admin: Client, ids: dict[str, int]) -> None:
    page = admin.get(new(ids), {"provider": "jdbc-postgresql"}).content.decode()
    titles = re.findall(r'<h2 id="group-\d+">([^<]+)</h2>', page)
    assert titles == ["Connection", "Freshness", "Pool", "Schemas", "More"]
    order = re.findall(r'name="property-([\w.-]+)"', page)
    assert order[:3] == ["jdbc-url", "jdbc-database", "jdbc-user"] and order[-1:] == ["nested-namespaces"]
    vaulted = admin.get(new(ids), {"provider": "memory-flat"}).content.decode()
    assert f'<h2 id="group-1">{FlatMemoryProvider.label}</h2>' in vaulted, "what no group names"


@pytest.mark.parametrize("part", [True, False])
def test_what_is_wrong_with_an_address_is_said_at_its_field(admin: Client, ids: dict[str, int], part: bool) -> None:
    for url, reason in (
        ("jdbc:oracle:thin:@db", "write jdbc:postgresql://host:port/database"),
        ("jdbc:postgresql://db:99999/sales", "its port is not a number"),
        ("jdbc:postgresql://169.254.169.254/sales", "cloud metadata address"),
        ("jdbc:postgresql://10.1.2.3/sales", "METALAKE_REMOTE_ALLOW"),
        (f"jdbc:postgresql://db/sales?password={CANARY}", "the properties jdbc-user and jdbc-password"),
        ("jdbc:postgresql://db/sales?socketFactory=x", "those that choose TLS are ssl, sslmode"),
        ("jdbc:postgresql://db", "jdbc-database"),
    ):
        status, page, _ = send(admin, new(ids), typed("") | {"property-jdbc-url": url}, part=part)
        field = "property-jdbc-database" if url.endswith("//db") else "property-jdbc-url"
        assert (status, CANARY in page) == (422, False)
        assert reason in error_at(page, field), url
        assert part or 'value="postgres"' in page, "what was typed stays"
    assert not Catalog.objects.filter(name="sales").exists()


def test_tables_show_keys_and_defaults_and_views_their_sql(admin: Client, sales: dict[str, int]) -> None:
    overview = shown(admin, f"/objects/{sales['customers']}")
    assert "Keys 3 Name Type Columns customers_pkey Primary key id" in overview
    assert "by_day Unique index day , state customers_email_key Unique key email" in overview
    columns = shown(admin, f"/objects/{sales['customers']}/columns")
    assert "Name Type Default Comment id long required auto-increment" in columns
    assert "state varchar(20) required &#x27;it&#x27;&#x27;s open&#x27;" in columns
    assert "since timestamp_tz current_timestamp()" in columns
    assert "Default" not in shown(admin, f"/objects/{sales['orders']}/columns")
    facts = shown(admin, f"/objects/{sales['orders']}")
    assert "Keys" not in facts and "kind partitioned table partitioned-by RANGE (day)" in facts
    view = shown(admin, f"/objects/{sales['busy']}")
    assert "Security mode none" in view and "Written by postgresql materialized" in view
    assert "postgresql Copy SELECT id, email FROM public" in shown(admin, f"/objects/{sales['busy']}/dialects")


def test_the_tables_of_mariadb_name_their_engine(admin: Client, ids: dict[str, int], mariadb: MariaDB) -> None:
    circuit_breaker.forget_all()
    database = mariadb.create_database()
    mariadb.execute(
        f"CREATE TABLE {database}.items (id int PRIMARY KEY, code varchar(9) DEFAULT 'none')",
        f"CREATE VIEW {database}.codes AS SELECT code FROM {database}.items",
    )
    properties = {f"property-{name}": value for name, value in mariadb.properties().items()}
    properties["property-jdbc-url"] += "?sslMode=DISABLED"
    assert send(admin, new(ids), typed("", provider="jdbc-mysql") | properties)[0] == 200
    ids = below(database)
    page = shown(admin, f"/objects/{ids['items']}")
    assert "PRIMARY Primary key id" in page and "engine InnoDB" in page
    view = shown(admin, f"/objects/{ids['codes']}/columns")
    assert "code varchar(9)" in view and "Default" not in view, "a view's columns have none"


def test_a_table_is_made_and_changed_in_its_database(admin: Client, sales: dict[str, int], postgres_url: str) -> None:
    schema = find(Address(metalake="demo", catalog="sales", schema=("public",)))
    path = f"/objects/{schema.id}/tables/new"
    page = admin.get(path).content.decode()
    assert "Tables of a database are made plain here" in page and 'name="partitioning-' not in page
    body = table_forms.typed("visits", [table_forms.column("id", required="on"), table_forms.column("what", "jsonb")])
    answer = admin.post(path, body)
    assert answer.status_code == 302, answer.content.decode()
    change = f"{answer['Location']}/columns/change"
    assert "adds columns at the end and moves none" in admin.get(change).content.decode()
    columns = table_forms.opened(admin, change) | {"columns-1-name": "details", "act": "apply"}
    assert admin.post(change, columns).status_code == 302
    with psycopg.connect(postgres_url) as connection:
        rows = connection.execute("SELECT details FROM visits").description
    assert rows and rows[0].type_display == "jsonb"
