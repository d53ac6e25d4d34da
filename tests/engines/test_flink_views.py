"""Views in Flink's form, as a real Flink with its Hive catalog and a real metastore read and write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from formats.hive.tables import HiveTable
from formats.hive.views.reader import read
from providers import circuit_breaker
from tests.catalogs.callers import Caller
from tests.flink import Flink, FlinkError
from tests.formats.hive.views.samples import flink_1_20
from tests.formats.hive.views.test_reader import array, column, struct
from tests.hms import HiveMetastore
from tests.views_mgmt.conftest import admin, body, sql, update

__all__ = ["admin"]
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),  # the first time it fetches 231 MB
    pytest.mark.django_db(transaction=True),
]
CATALOGS = "metalakes/demo/catalogs"
COLUMNS = """
    TRUE a, CAST(1 AS TINYINT) b, CAST(1 AS SMALLINT) c, 1 d, CAST(1 AS BIGINT) e, CAST(1 AS FLOAT) f,
    CAST(1 AS DOUBLE) g, CAST(1.5 AS DECIMAL(10, 2)) h, 'abc' i, CAST('x' AS VARCHAR(10)) j, CAST('x' AS STRING) k,
    x'00' l, CAST(x'00' AS BYTES) m, DATE '2020-01-01' n, TIME '10:00:00' o, TIMESTAMP '2020-01-01 00:00:00.123' p,
    CAST(TIMESTAMP '2020-01-01 00:00:00' AS TIMESTAMP_LTZ(9)) q, ARRAY[ROW(1, 'x')] r,
    CAST(ROW(1, 'x') AS ROW<`fRom` INT, `to ``b` VARCHAR(3)>) s, MAP['a', 1.5] t, INTERVAL '1' HOUR u,
    INTERVAL '1' YEAR v, CAST(NULL AS INT) w, CAST(x'00' AS VARBINARY(3)) x, COLLECT(1) y
"""
RECORDED = ("everything", "named", "altered", "renamed", "mended")
WORDS = "SELECT id, LOWER(word) AS word FROM words"


@pytest.fixture(scope="module")
def database(hms: HiveMetastore, flink: Flink) -> str:
    """A database with the recorded views, made again by a catalog `hive`; it is the current one in Flink."""
    name = hms.create_database()
    flink.attach_hive("hive", hms)
    for statement in (
        "USE CATALOG hive",
        f"USE {name}",
        "CREATE VIEW words AS SELECT * FROM (VALUES (CAST(1 AS BIGINT), 'ONE'), (2, 'TWO')) AS v (id, word)",
        f"CREATE VIEW everything COMMENT 'all types' AS SELECT {COLUMNS}",
        "CREATE VIEW named (`the Id`, `Word`) COMMENT 'two' AS SELECT id, word FROM words WHERE word <> 'it''s'",
        "CREATE VIEW altered AS SELECT * FROM words",
        "ALTER VIEW altered AS SELECT word FROM words",
        "CREATE VIEW before AS SELECT * FROM words",
        "ALTER VIEW before RENAME TO renamed",
        "CREATE VIEW lost AS SELECT * FROM words",
        "ALTER VIEW lost RENAME TO mended",
        "ALTER VIEW mended AS SELECT id FROM words",
    ):
        flink.sql(statement)
    return name


@pytest.fixture
def views(hms: HiveMetastore, database: str, admin: Caller) -> str:
    """The views of the database in a catalog of Metalake's."""
    circuit_breaker.forget_all()
    asked = {"name": "hive", "type": "relational", "provider": "hive", "properties": {"metastore.uris": hms.uri}}
    assert admin.post(CATALOGS, asked)["catalog"]["provider"] == "hive"
    return f"{CATALOGS}/hive/schemas/{database}/views"


def without_times(parameters: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in parameters.items() if not name.endswith("transient_lastDdlTime")}


@pytest.mark.parametrize("name", RECORDED)
def test_flink_writes_what_is_recorded(entry: Callable[[str], HiveTable], database: str, name: str) -> None:
    now, recorded = entry(name), flink_1_20(name)
    complete = (now.view_expanded_text or "").replace(f"`{database}`", "`flights`")
    assert without_times(now.parameters) == without_times(recorded.parameters)
    assert replace(now, parameters=recorded.parameters, view_expanded_text=complete) == recorded


def test_what_flink_wrote_is_listed_and_loaded(views: str, admin: Caller, database: str) -> None:
    listed = {view["name"]: view for view in admin.get(f"{views}?details=true")["views"]}
    for name in RECORDED:
        assert (listed[name]["engine"], listed[name]["dialects"], listed[name]["broken"]) == ("flink", ["flink"], None)
    named = admin.get(f"{views}/named")["view"]
    (only,) = named["representations"]
    assert (only["dialect"], only["sql"]) == ("flink", "SELECT `id`, `word`\nFROM `words`\nWHERE `word` <> 'it''s'")
    assert [(each["name"], each["type"], each["nullable"]) for each in named["columns"]] == [
        ("the Id", "long", False),
        ("Word", "char(3)", False),
    ]
    assert (named["comment"], named["properties"]) == ("two", {})


def test_flink_selects_from_views_that_we_wrote(
    views: str, admin: Caller, entry: Callable[[str], HiveTable], database: str, flink: Flink
) -> None:
    columns = [column("id", "long", "who", nullable=False), column("word", "char(3)", nullable=False)]
    asked = body("ours", sql("flink", WORDS), columns=columns, comment="of us", properties={"flink.team": "ops"})
    assert admin.send("POST", views, asked)["view"]["engine"] == "flink"
    assert entry("ours").columns, "other engines see the columns too"
    assert flink.sql(f"SELECT id, word FROM hive.{database}.ours ORDER BY id") == [[1, "one"], [2, "two"]]
    assert [row[:3] for row in flink.sql("DESCRIBE ours")] == [["id", "BIGINT", False], ["word", "CHAR(3)", False]]
    ((created,),) = flink.sql("SHOW CREATE VIEW ours")
    assert "of us" in created and WORDS in created
    edit = update("updateRepresentation", representation=sql("flink", f"{WORDS} WHERE id = 2"))
    altered = admin.send("PUT", f"{views}/ours", {"updates": [edit, update("updateComment", newComment="altered")]})
    assert altered["view"]["version"] == 2, altered.body
    renamed = admin.send("PUT", f"{views}/ours", {"updates": [update("rename", newName="newer")]})
    assert renamed["view"]["version"] == 3, renamed.body
    assert flink.sql("SELECT id, word FROM newer") == [[2, "two"]]
    flink.sql("ALTER VIEW newer AS SELECT 'x' AS letter")
    again = admin.get(f"{views}/newer")["view"]
    assert (again["version"], again["comment"], again["properties"]) == (4, "altered", {"flink.team": "ops"})
    assert again["columns"] == [column("letter", "char(1)", nullable=False)]
    flink.sql("DROP VIEW newer")
    assert admin.get(f"{views}/newer").status == 404


def test_flink_reads_every_type_that_we_write(views: str, admin: Caller, database: str, flink: Flink) -> None:
    """From another catalog it takes the types that are stored, and still finds what the SQL names without a schema."""
    types = {
        "TINYINT": "byte",
        "DECIMAL(10, 2)": "decimal(10,2)",
        "STRING": "string",
        "BYTES": "binary",
        "BINARY(2)": "fixed(2)",
        "TIME(0)": "time",
        "TIMESTAMP(6)": "timestamp",
        "TIMESTAMP_LTZ(6)": "timestamp_tz",
        "INTERVAL YEAR(2) TO MONTH": "interval_year",
        "INTERVAL DAY(2) TO SECOND(6)": "interval_day",
        "ARRAY<ROW<`from ``x``` STRING>>": array(struct(("from `x`", "string"))),
        "MAP<STRING, DOUBLE>": {"type": "map", "keyType": "string", "valueType": "double", "valueContainsNull": True},
    }
    chosen = ", ".join(f"CAST(NULL AS {flinks}) AS c{number}" for number, flinks in enumerate(types))
    columns = [column(f"c{number}", type) for number, type in enumerate(types.values())]
    asked = body("typed", sql("flink", f"SELECT {chosen} FROM words"), columns=columns)
    assert admin.send("POST", views, asked).status == 200
    flink.sql("USE CATALOG default_catalog")
    try:
        assert [row[1] for row in flink.sql(f"DESCRIBE hive.{database}.typed")] == list(types)
        assert flink.sql(f"SELECT * FROM hive.{database}.typed") == [[None] * len(types)] * 2
    finally:
        flink.sql(f"USE hive.{database}")


def test_flink_loses_its_own_view_by_renaming_it(
    views: str, admin: Caller, entry: Callable[[str], HiveTable], flink: Flink
) -> None:
    """It drops the mark `is_generic` and finds no columns then; we still know whose the view is."""
    with pytest.raises(FlinkError):
        flink.sql("SELECT * FROM renamed")
    assert read(entry("renamed")).engine == "flink"
    assert [each["name"] for each in admin.get(f"{views}/renamed")["view"]["columns"]] == ["id", "word"]
