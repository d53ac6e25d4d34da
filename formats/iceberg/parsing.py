"""Reads typed values from a client's JSON, or raises `Invalid`, saying what is wrong with it.

Every message names the key; `of` names the object that the key belongs to. A JSON boolean is never read as a number,
and numbers are within the bounds of Iceberg's int and long.
"""

from __future__ import annotations

from typing import Any

from metalake.errors import Invalid

Json = dict[str, Any]

INT_MAX = 2**31 - 1
INT_MIN = -(2**31)
LONG_MAX = 2**63 - 1


def json_kind(value: object) -> str:
    """The JSON name of a value's type, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "an object"


def has(source: Json, key: str) -> bool:
    """Whether the key is there and not null."""
    return source.get(key) is not None


def as_object(value: object, what: str) -> Json:
    if not isinstance(value, dict):
        raise Invalid(f"{what} must be an object, not {json_kind(value)}")
    return value


def as_list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise Invalid(f"{what} must be a list, not {json_kind(value)}")
    return value


def as_text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise Invalid(f"{what} must be a string, not {json_kind(value)}")
    return value


def as_whole(value: object, what: str, minimum: int, maximum: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Invalid(f"{what} must be a whole number, not {json_kind(value)}")
    if not minimum <= value <= maximum:
        raise Invalid(f"{what} must be between {minimum} and {maximum}")
    return value


def as_text_map(value: object, what: str) -> dict[str, str]:
    return {key: as_text(text, f"{what}[{key}]") for key, text in as_object(value, what).items()}


def get_object(source: Json, key: str, of: str = "") -> Json:
    return as_object(_present(source, key, of), _name(key, of))


def get_list(source: Json, key: str, of: str = "") -> list[Any]:
    return as_list(_present(source, key, of), _name(key, of))


def get_text(source: Json, key: str, of: str = "") -> str:
    return as_text(_present(source, key, of), _name(key, of))


def get_bool(source: Json, key: str, of: str = "") -> bool:
    value = _present(source, key, of)
    if not isinstance(value, bool):
        raise Invalid(f"{_name(key, of)} must be true or false, not {json_kind(value)}")
    return value


def get_int(source: Json, key: str, of: str = "", *, minimum: int = INT_MIN) -> int:
    return as_whole(_present(source, key, of), _name(key, of), minimum, INT_MAX)


def get_long(source: Json, key: str, of: str = "", *, minimum: int = 0) -> int:
    return as_whole(_present(source, key, of), _name(key, of), minimum, LONG_MAX)


def get_ints(source: Json, key: str, of: str = "") -> list[int]:
    return [as_whole(value, _name(key, of), INT_MIN, INT_MAX) for value in get_list(source, key, of)]


def get_longs(source: Json, key: str, of: str = "") -> list[int]:
    return [as_whole(value, _name(key, of), 0, LONG_MAX) for value in get_list(source, key, of)]


def get_texts(source: Json, key: str, of: str = "") -> list[str]:
    return [as_text(value, _name(key, of)) for value in get_list(source, key, of)]


def get_objects(source: Json, key: str, of: str = "") -> list[Json]:
    return [as_object(value, f"{_name(key, of)}[{at}]") for at, value in enumerate(get_list(source, key, of))]


def _present(source: Json, key: str, of: str) -> object:
    value = source.get(key)
    if value is None:
        raise Invalid(f"{_name(key, of)} is required")
    return value


def _name(key: str, of: str) -> str:
    return f"{key} of {of}" if of else key
