"""A view of several dialects, as Lake Formation makes it in Glue: read, and dropped; what else is asked is refused."""

from __future__ import annotations

from typing import Any

import pytest

from catalogs.models import Intent
from providers import circuit_breaker
from tests.catalogs.callers import Caller
from tests.glue import Glue
from tests.iceberg_rest.world import Caller as IcebergCaller
from tests.providers.glue_catalogs import settings
from tests.views_mgmt.conftest import body, sql, update
from views_mgmt.models import ViewVersion

pytestmark = pytest.mark.django_db(transaction=True)
VIEWS = "metalakes/demo/catalogs/aws/schemas/flights/views"
LATE = f"{VIEWS}/late"
REPRESENTATIONS = [
    {"Dialect": "REDSHIFT", "DialectVersion": "1.0", "ViewOriginalText": "select id from db.flights"},
    {"Dialect": "ATHENA", "DialectVersion": "3", "ViewOriginalText": "select id from flights"},
]


@pytest.fixture
def aws(admin: Caller, glue: Glue) -> Glue:
    """The catalog `aws` with the view flights.late, of Redshift and Athena."""
    circuit_breaker.forget_all()
    glue.create_bucket("lake")
    client = glue.client()
    client.create_database(DatabaseInput={"Name": "flights"})
    late = {
        "Name": "late",
        "TableType": "VIRTUAL_VIEW",
        "StorageDescriptor": {"Columns": [{"Name": "id", "Type": "bigint"}]},
        "ViewDefinition": {"IsProtected": True, "Representations": REPRESENTATIONS},
    }
    client.create_table(DatabaseName="flights", TableInput=late)
    asked = {"name": "aws", "type": "relational", "provider": "glue", "properties": settings(glue)}
    assert admin.post("metalakes/demo/catalogs", asked)["catalog"]["provider"] == "glue"
    return glue


def there(glue: Glue) -> list[dict[str, Any]]:
    tables: list[dict[str, Any]] = glue.client().get_tables(DatabaseName="flights")["TableList"]
    return tables


def test_it_is_read_in_all_its_dialects(aws: Glue, admin: Caller) -> None:
    view = admin.get(LATE)["view"]
    assert [each["dialect"] for each in view["representations"]] == ["redshift", "athena"]
    assert view["version"] == 1 and view["securityMode"] is None
    details = admin.get(f"{VIEWS}?details=true")["views"]
    assert [(each["name"], each["dialects"], each["broken"]) for each in details] == [
        ("late", ["redshift", "athena"], None)
    ]


@pytest.mark.parametrize(
    "change",
    [
        update("updateComment", newComment="later"),
        update("setProperty", property="team", value="ops"),
        update("updateRepresentation", representation=sql("athena", "select 2")),
        update("addRepresentation", representation=sql("spark")),
        update("removeRepresentation", dialect="redshift"),
        update("replaceView", representations=[sql("trino")]),
        update("rename", newName="later"),
    ],
    ids=lambda change: change["@type"],
)
def test_what_alters_it_is_refused_with_what_it_would_take(aws: Glue, admin: Caller, change: dict[str, Any]) -> None:
    assert admin.get(LATE).status == 200
    before = there(aws)
    refused = admin.send("PUT", LATE, {"updates": [change]})
    assert refused.error[::2] == (405, "UnsupportedOperationException") and "Lake Formation" in refused.message
    assert there(aws) == before and not Intent.objects.exists() and ViewVersion.objects.count() == 1


def test_one_of_several_dialects_is_not_made(aws: Glue, admin: Caller) -> None:
    """Nor by a second dialect of a view that has one."""
    refused = admin.send("POST", VIEWS, body("two", sql("trino"), sql("spark")))
    assert refused.status == 400 and "representations[1]" in refused.message and "Lake Formation" in refused.message
    assert admin.send("POST", VIEWS, body("one", sql("spark"))).status == 200
    second = admin.send("PUT", f"{VIEWS}/one", {"updates": [update("addRepresentation", representation=sql("trino"))]})
    assert second.status == 400 and "Lake Formation" in second.message
    assert {one["Name"] for one in there(aws)} == {"late", "one"} and ViewVersion.objects.count() == 1


def test_it_is_dropped(aws: Glue, admin: Caller) -> None:
    iceberg = IcebergCaller("admin", catalog="aws")
    assert iceberg.delete("namespaces/flights/views/late").status == 404, "it is no Iceberg view"
    assert [one["Name"] for one in there(aws)] == ["late"]
    assert admin.delete(LATE)["dropped"] is True
    assert there(aws) == [] and admin.get(LATE).status == 404
    assert Intent.objects.get().state == Intent.State.COMMITTED
