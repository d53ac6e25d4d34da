"""What `gcli` prints of one object, for people and for programs."""

from __future__ import annotations

import json

import pytest

from metalake_client.cli.output import Format, print_object

MOOD = {"type": "external", "catalogString": "mood"}
CALM = {"type": "literal", "dataType": "string", "value": "calm"}
NOW = {"type": "function", "funcName": "current_timestamp", "funcArgs": []}
UUID = {"type": "unparsed", "unparsedExpression": "gen_random_uuid()"}
TABLE = {
    "columns": [
        {"name": "id", "type": "long", "autoIncrement": True},
        {"name": "mood", "type": MOOD, "defaultValue": CALM},
        {"name": "at", "defaultValue": NOW},
        {"name": "ref", "defaultValue": UUID},
    ],
    "indexes": [{"indexType": "PRIMARY_KEY", "name": "pk", "fieldNames": [["id"], ["at"]]}],
    "name": "visits",
}


def test_a_table_is_printed_with_its_keys_and_readable_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    print_object(TABLE, Format.TABLE)
    assert capsys.readouterr().out.splitlines() == [
        "name\tvisits", "",
        "columns", "name\ttype\tautoIncrement\tdefaultValue", "id\tlong\tyes\t", "mood\tmood\t\tcalm",
        "at\t\t\tcurrent_timestamp()", "ref\t\t\tgen_random_uuid()", "",
        "indexes", "indexType\tname\tfieldNames", "PRIMARY_KEY\tpk\tid, at",
    ]  # fmt: skip
    print_object(TABLE, Format.JSON)
    assert json.loads(capsys.readouterr().out) == TABLE, "programs get what the server answers"
