"""Hive partitions: their names, and the native API's identity partitions.

A partition has one value per partition key, stored as text; in its name, such as `day=2026-11-21/carrier=A%2FB`,
special characters of keys and values are escaped. Null is stored as `__HIVE_DEFAULT_PARTITION__`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from formats.hive.tables import HiveColumn
from formats.hive.types import native_type
from formats.native.columns import LiteralValue, is_null
from formats.native.partitions import IdentityPartition
from metalake.errors import Invalid, Unsupported
from metalake.wire import quote

NULL_VALUE = "__HIVE_DEFAULT_PARTITION__"
# Hive's own list (Hive, class FileUtils), which has the opening brace but not the closing one.
_SPECIAL = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""")
_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?")


def escape(text: str) -> str:
    """Escape special characters, as in a partition's name."""
    return _SPECIAL.sub(lambda special: f"%{ord(special[0]):02X}", text)


def unescape(text: str) -> str:
    """Undo `escape`; any other percent sign stays."""
    return _ESCAPED.sub(lambda escaped: chr(int(escaped[1], 16)), text)


def partition_name(keys: Sequence[HiveColumn], values: Sequence[str]) -> str:
    """The name of the partition with these stored values."""
    pairs = zip(keys, values, strict=True)
    return "/".join(f"{escape(key.name.lower())}={escape(value or NULL_VALUE)}" for key, value in pairs)


def partition_values(keys: Sequence[HiveColumn], name: str) -> list[str]:
    """The stored values in a partition's name. Raises Invalid for a name that does not match the keys."""
    pairs = [part.partition("=") for part in name.split("/")]
    named = [unescape(key).lower() for key, _, _ in pairs]
    if named != [key.name.lower() for key in keys] or not all(value for _, _, value in pairs):
        form = "/".join(f"{escape(key.name.lower())}=..." for key in keys)
        raise Invalid(f"{quote(name)} names no partition of this table; use the form {form}", kind="partition")
    return [unescape(value) for _, _, value in pairs]


def native_partition(
    keys: Sequence[HiveColumn], values: Sequence[str], properties: Mapping[str, str]
) -> dict[str, Any]:
    """The native identity partition with these stored values; its literals have the keys' types."""
    return {
        "type": "identity",
        "name": partition_name(keys, values),
        "fieldNames": [[key.name] for key in keys],
        "values": [_native_value(key, value) for key, value in zip(keys, values, strict=True)],
        "properties": dict(properties),
    }


def _native_value(key: HiveColumn, value: str) -> dict[str, Any]:
    if value in ("", NULL_VALUE):
        return {"type": "literal", "dataType": "null", "value": "NULL"}
    return {"type": "literal", "dataType": _literal_type(key), "value": value}


def _literal_type(key: HiveColumn) -> str:
    """The native type of a key's values; string for types that only Hive has."""
    native = native_type(key.type)
    return native if isinstance(native, str) else "string"


def stored_values(keys: Sequence[HiveColumn], partition: IdentityPartition) -> list[str]:
    """The values of a native partition as Hive stores them, in key order.

    A literal has its key's type, or is a string that parses as that type. Raises Invalid for a partition that does not
    match the keys or whose name is not Hive's, Unsupported for a table without partitions.
    """
    if not keys:
        raise Unsupported("The table is not partitioned", kind="partition")
    if len(partition.field_names) != len(partition.values):
        raise Invalid("values: give one value for each of fieldNames", kind="partition")
    paths = [[part.lower() for part in path] for path in partition.field_names]
    if sorted(paths) != sorted([key.name.lower()] for key in keys):
        expected = ", ".join(key.name for key in keys)
        raise Invalid(f"fieldNames: name each partition column once: {expected}", kind="partition")
    places = {path[0]: position for position, path in enumerate(paths)}
    values = []
    for key in keys:
        position = places[key.name.lower()]
        values.append(_stored_value(key, partition.values[position], f"values[{position}]"))
    name = partition_name(keys, values)
    if partition.name and partition.name != name:
        raise Invalid(f"name: Hive calls this partition {quote(name)}; leave the name out", kind="partition")
    return values


def _stored_value(key: HiveColumn, literal: LiteralValue, where: str) -> str:
    if is_null(literal):
        return NULL_VALUE
    wanted = _literal_type(key)
    base = wanted.partition("(")[0]
    if not isinstance(literal.data_type, str) or literal.data_type.partition("(")[0] not in (base, "string"):
        raise Invalid(f"{where}: the literal is not of the type of {quote(key.name)}, {wanted}", kind="partition")
    if not literal.value:
        raise Invalid(f"{where}: Hive keeps no empty partition value; use the null literal", kind="partition")
    try:
        return _CANONICAL.get(base, str)(literal.value)
    except ValueError:
        raise Invalid(f"{where}: {quote(literal.value)} is no {wanted}", kind="partition") from None


def _integer(bits: int) -> Callable[[str], str]:
    def canonical(text: str) -> str:
        if re.fullmatch("[+-]?[0-9]{1,19}", text) is None or not -(2**bits) <= int(text) < 2**bits:
            raise ValueError
        return str(int(text))

    return canonical


def _boolean(text: str) -> str:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower()


def _number(text: str) -> str:
    if _NUMBER.fullmatch(text) is None:
        raise ValueError
    return text


def _timestamp(text: str) -> str:
    if _TIMESTAMP.fullmatch(text) is None:
        raise ValueError
    datetime.fromisoformat(text)  # rejects nonexistent dates and times
    return text.replace("T", " ")


_CANONICAL: dict[str, Callable[[str], str]] = {
    "boolean": _boolean,
    "byte": _integer(7),
    "short": _integer(15),
    "integer": _integer(31),
    "long": _integer(63),
    "float": _number,
    "double": _number,
    "decimal": _number,
    "date": lambda text: date.fromisoformat(text).isoformat(),
    "timestamp": _timestamp,
}
