"""Converts native types to Hive type strings and back.

Hive language manual, "Data Types": a type is one line of text, such as `array<struct<id:bigint,price:decimal(10,2)>>`.
"""

from __future__ import annotations

import re
from typing import Any

from formats.hive.type_parser import MAX_NESTING, NotAType, TypeReader, decimal
from formats.native.columns import (
    DataType,
    ExternalType,
    ListType,
    MapType,
    StructField,
    StructType,
    UnionType,
    UnparsedType,
    parse_primitive,
)
from metalake.errors import Invalid, Unsupported
from metalake.wire import quote

MAX_LENGTHS = {"varchar": 65535, "char": 255}
NATIVE_NAMES = {
    "boolean": "boolean", "tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long",
    "float": "float", "double": "double", "string": "string", "binary": "binary", "date": "date",
    "timestamp": "timestamp", "timestamp with local time zone": "timestamp_tz",
    "interval_year_month": "interval_year", "interval_day_time": "interval_day", "void": "null",
}  # fmt: skip
HIVE_NAMES = {native: hive for hive, native in NATIVE_NAMES.items()} | {
    "timestamp(9)": "timestamp", "timestamp_tz(9)": "timestamp with local time zone",
}  # fmt: skip
SYNONYMS = {"integer": "int", "double precision": "double", "numeric": "decimal", "dec": "decimal"}
INSTEAD = {
    "byte unsigned": "short", "short unsigned": "integer", "integer unsigned": "long",
    "long unsigned": "decimal(20,0)", "varchar": "string", "fixed": "binary", "uuid": "string", "time": "string",
    "timestamp": "timestamp, whose precision is 9", "timestamp_tz": "timestamp_tz, whose precision is 9",
    "variant": "string", "geometry": "binary", "geography": "binary",
}  # fmt: skip
OF_ICEBERG = {
    "long": "bigint", "time": "string", "uuid": "string", "timestamptz": "timestamp", "timestamp_ns": "timestamp",
    "timestamptz_ns": "timestamp",
}  # fmt: skip
NOT_IN_FIELD_NAMES = re.compile(r"[,:;<>`\x00-\x1f\x7f]")

# Each pattern matches one token after optional white space without backtracking: parsing takes linear time.
_WORD = re.compile(
    r"\s*(double\s+precision|timestamp\s+with\s+local\s+time\s+zone|\w+)(?!\w)", re.IGNORECASE | re.ASCII
)
_OPEN, _CLOSE, _COMMA, _COLON = (re.compile(rf"\s*{mark}", re.ASCII) for mark in "<>,:")
_QUOTED_NAME = re.compile(r"\s*`((?:[^`]|``)*)`", re.ASCII)
_COMMENT = re.compile(r"""\s*comment\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")""", re.IGNORECASE | re.DOTALL)
_BEGINS_TYPE = re.compile(r"\s*[A-Za-z_][^\x00-\x1f\x7f;]*\Z")
_CLOSES = {"<": ">", "(": ")"}


class _TooDeep(Exception):
    """The type nests deeper than MAX_NESTING."""


class _Reader(TypeReader):
    """A Hive type string, whose field names may be unquoted."""

    def plain_name(self) -> str:
        """Everything up to the next colon."""
        end = self.text.find(":", self.position)
        name = self.text[self.position : end].strip() if end >= 0 else ""
        if not name or NOT_IN_FIELD_NAMES.search(name):
            raise NotAType
        self.position = end
        return name


def native_type(text: str) -> str | dict[str, Any]:
    """The native JSON of a Hive type string.

    Text that is not a Hive type, or nests deeper than `MAX_NESTING` levels, becomes an external type unchanged.
    """
    reader = _Reader(text)
    try:
        native = _read(reader, 1)
        reader.end()
    except NotAType:
        return {"type": "external", "catalogString": text}
    return native


def _read(reader: _Reader, level: int) -> str | dict[str, Any]:
    word = " ".join(reader.need(_WORD)[1].lower().split())
    if word not in _CONTAINERS:
        return _primitive(SYNONYMS.get(word, word), reader.numbers())
    if level > MAX_NESTING:
        raise NotAType
    reader.need(_OPEN)
    container = _CONTAINERS[word](reader, level + 1)
    reader.need(_CLOSE)
    return container


def _primitive(word: str, arguments: list[int]) -> str:
    match word, arguments:
        case "decimal", _:
            return decimal(arguments, 10)
        case "varchar" | "char", [length]:
            if 1 <= length <= MAX_LENGTHS[word]:
                return f"{word}({length})"
        case _, [] if word in NATIVE_NAMES:
            return NATIVE_NAMES[word]
    raise NotAType


def _array(reader: _Reader, level: int) -> dict[str, Any]:
    return {"type": "list", "elementType": _read(reader, level), "containsNull": True}


def _map(reader: _Reader, level: int) -> dict[str, Any]:
    key = _read(reader, level)
    reader.need(_COMMA)
    return {"type": "map", "keyType": key, "valueType": _read(reader, level), "valueContainsNull": True}


def _struct(reader: _Reader, level: int) -> dict[str, Any]:
    fields: list[dict[str, Any]] = []
    empty = _CLOSE.match(reader.text, reader.position)
    while not empty and (not fields or reader.take(_COMMA)):
        fields.append(_field(reader, level))
    return {"type": "struct", "fields": fields}


def _field(reader: _Reader, level: int) -> dict[str, Any]:
    quoted = reader.take(_QUOTED_NAME)
    name = quoted[1].replace("``", "`") if quoted else reader.plain_name()
    if not name.strip():
        raise NotAType
    reader.need(_COLON)
    field = {"name": name, "type": _read(reader, level), "nullable": True}
    if comment := reader.take(_COMMENT):
        field["comment"] = re.sub(r"\\(.)", r"\1", comment[1] or comment[2] or "", flags=re.DOTALL)
    return field


def _union(reader: _Reader, level: int) -> dict[str, Any]:
    types = [_read(reader, level)]
    while reader.take(_COMMA):
        types.append(_read(reader, level))
    return {"type": "union", "types": types}


_CONTAINERS = {"array": _array, "map": _map, "struct": _struct, "uniontype": _union}


def hive_type(native: DataType, where: str) -> str:
    """The Hive type string of a native type.

    Raises Unsupported if Hive has no such type, Invalid for field names that it cannot store; `where` is the path.
    """
    try:
        return _write(native, where, 1)
    except _TooDeep:
        raise Invalid(f"{where}: nests deeper than {MAX_NESTING} levels", kind="column") from None


def _write(native: DataType, where: str, level: int) -> str:
    if level > MAX_NESTING and not isinstance(native, str):
        raise _TooDeep
    match native:
        case str():
            return _write_primitive(native, where)
        case ListType():
            if not native.contains_null:
                raise _no_required_parts(f"{where}.containsNull")
            return f"array<{_write(native.element_type, f'{where}.elementType', level + 1)}>"
        case MapType():
            if isinstance(native.key_type, StructType | ListType | MapType | UnionType):
                raise Unsupported(f"{where}.keyType: the keys of a Hive map are primitive", kind="column")
            if not native.value_contains_null:
                raise _no_required_parts(f"{where}.valueContainsNull")
            key = _write(native.key_type, f"{where}.keyType", level + 1)
            return f"map<{key},{_write(native.value_type, f'{where}.valueType', level + 1)}>"
        case StructType(fields=members):
            return f"struct<{','.join(_write_fields(members, f'{where}.fields', level + 1))}>"
        case UnionType(types=types):
            if not types:
                raise Invalid(f"{where}.types: a union has at least one type", kind="column")
            written = [_write(one, f"{where}.types[{place}]", level + 1) for place, one in enumerate(types)]
            return f"uniontype<{','.join(written)}>"
        case UnparsedType():
            raise Unsupported(f"{where}: unknown type {quote(native.unparsed_type)}", kind="column")
        case _:
            assert isinstance(native, ExternalType)
            if not native.catalog_string.strip():
                raise Invalid(f"{where}.catalogString: must not be blank", kind="column")
            if not is_well_formed(native.catalog_string):
                what = f"{where}.catalogString: {quote(native.catalog_string)} is no type"
                raise Invalid(f"{what}: a name, then what it needs between <> or ()", kind="column")
            return native.catalog_string


def is_well_formed(text: str) -> bool:
    """Whether a type unknown to Hive is at least a name, optionally with balanced, non-empty brackets."""
    if not _BEGINS_TYPE.match(text):
        return False
    opened: list[str] = []
    before = ""
    for mark in text:
        if mark in _CLOSES:
            opened.append(_CLOSES[mark])
        elif mark in ">)" and (not opened or opened.pop() != mark or before in "<(,:"):
            return False
        before = before if mark.isspace() else mark
    return not opened and before not in ",:"


def _write_primitive(native: str, where: str) -> str:
    if native in HIVE_NAMES:
        return HIVE_NAMES[native]
    primitive = parse_primitive(native)
    assert primitive is not None, "a read type is a known one"
    match primitive:
        case ("decimal", (precision, scale)):
            return f"decimal({precision},{scale})"
        case ("varchar" | "char" as name, (int() as length,)):
            if length <= MAX_LENGTHS[name]:
                return f"{name}({length})"
            instead = "string" if length > MAX_LENGTHS["varchar"] else f"varchar({length})"
            longest = f"the longest {name} is {name}({MAX_LENGTHS[name]})"
            raise Unsupported(f"{where}: Hive has no type {native}, {longest}; use {instead}", kind="column")
    advice = f"; use {INSTEAD[primitive.name]}" if primitive.name in INSTEAD else ""
    raise Unsupported(f"{where}: Hive has no type {native}{advice}", kind="column")


def _write_fields(members: list[StructField], where: str, level: int) -> list[str]:
    written = []
    seen: set[str] = set()
    for position, member in enumerate(members):
        place = f"{where}[{position}]"
        if member.comment is not None:
            raise Unsupported(f"{place}.comment: Hive keeps no comments inside a type; leave it out", kind="column")
        if not member.nullable:
            raise _no_required_parts(f"{place}.nullable")
        if bad := NOT_IN_FIELD_NAMES.search(member.name):
            raise Invalid(f"{place}.name: Hive cannot keep {bad[0]!r} in the name of a struct's field", kind="column")
        if member.name != member.name.strip():
            raise Invalid(f"{place}.name: Hive keeps no white space around {quote(member.name)}", kind="column")
        if member.name.lower() in seen:
            raise Invalid(
                f"{place}.name: {quote(member.name)} is there already; Hive does not tell names apart by case",
                kind="column",
            )
        seen.add(member.name.lower())
        written.append(f"{member.name}:{_write(member.type, f'{place}.type', level)}")
    return written


def _no_required_parts(where: str) -> Unsupported:
    return Unsupported(f"{where}: everything in a Hive type may be null; leave it out or say true", kind="column")


def type_of_iceberg(type: str | dict[str, Any]) -> str:
    """The Hive type string for a column of an Iceberg table in Glue or Hive 2, as Iceberg's catalogs write it.

    It may lose detail; readers take the type from the table's metadata.
    """
    if isinstance(type, str):
        return "binary" if type.startswith("fixed[") else OF_ICEBERG.get(type, type.replace(" ", ""))
    match type["type"]:
        case "struct":
            fields = (f"{field['name']}:{type_of_iceberg(field['type'])}" for field in type["fields"])
            return f"struct<{','.join(fields)}>"
        case "list":
            return f"array<{type_of_iceberg(type['element'])}>"
        case _:
            return f"map<{type_of_iceberg(type['key'])},{type_of_iceberg(type['value'])}>"
