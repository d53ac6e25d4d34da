"""Strict validation of native API JSON bodies; errors name the field's path.

Null and absent mean the same for every optional field (clients send both); unknown fields are rejected by name.
"""

from __future__ import annotations

from datetime import UTC, datetime
from difflib import get_close_matches
from json import JSONDecoder
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from metalake.errors import Invalid
from metalake.kinds import Kind
from metalake.privileges import Privilege, parse_privilege

MAX_BODY_NESTING = 100
LONGEST_QUOTE = 80
MOMENT = "has to be a moment in ISO 8601 such as 2026-08-01T12:00:00Z"

# By pydantic's error types.
COMPLAINTS = {
    "missing": "is required",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dict_type": "must be an object",
    "list_type": "must be a list",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "too_short": "must have {min_length} or more items",
    "too_long": "must have {max_length} items or fewer",
    "string_too_short": "must have {min_length} or more characters",
    "string_too_long": "must have {max_length} characters or fewer",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "literal_error": "must be {expected}",
}


class Body(BaseModel):
    """A JSON object of the native wire: camelCase names, no unknown fields, no coercion, immutable once read."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel)

    @model_validator(mode="before")
    @classmethod
    def _null_means_absent(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        optional = {field.alias or name for name, field in cls.model_fields.items() if not field.is_required()}
        return {name: item for name, item in value.items() if item is not None or name not in optional}

    def to_wire(self) -> dict[str, Any]:
        """The JSON object as sent, without unset fields."""
        return self.model_dump(by_alias=True, exclude_none=True)


class Reply(BaseModel):
    """A JSON object of a reply, for the OpenAPI document; replies themselves are built as plain data."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


AnyBody = TypeVar("AnyBody", bound=BaseModel)


def read(model: type[AnyBody], body: object, *, kind: str | None = None) -> AnyBody:
    """Read `body` as `model`.

    Raises Invalid, of this `kind`, naming the path of the first error: `columns[2].type: is required`.
    """
    if nests_deeper_than(MAX_BODY_NESTING, body):
        raise Invalid(f"The body nests deeper than {MAX_BODY_NESTING} levels", kind=kind)
    try:
        return model.model_validate(body)
    except ValidationError as error:
        raise Invalid(explain(error, body), kind=kind) from None


def nests_deeper_than(limit: int, body: object) -> bool:
    """Whether objects and arrays are nested deeper than `limit`; safe for any depth."""
    level = [body]
    for _ in range(limit + 1):
        level = [item for container in level for item in _items(container)]
        if not level:
            return False
    return True


def _items(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


ESCAPED_BACKSLASH = rb"\\"


def holds_nul(content: bytes) -> bool:
    """Whether a JSON string contains NUL, which JSON can only write as an escape."""
    return rb"\u0000" in content and rb"\u0000" in content.replace(ESCAPED_BACKSLASH, b"")


def explain(error: ValidationError, body: object = None) -> str:
    """The first validation error as text, with its path in the body if given, and the number of further ones."""
    # Only the first one is parsed: a body may have a hundred thousand errors of a dozen objects each.
    mistakes = error.json(include_url=False, include_input=False)
    first, _ = JSONDecoder().raw_decode(mistakes, 1)
    text, count = _sentence(first, body), error.error_count()
    return text if count == 1 else f"{text} (and {count - 1} more)"


def _sentence(mistake: ErrorDetails, body: object) -> str:
    location = mistake["loc"]
    if mistake["type"] == "extra_forbidden":
        place = _place(location[:-1], body)
        return f"{place}: unknown field {quote(str(location[-1]))}"
    return f"{_place(location, body, missing=mistake['type'] == 'missing')}: {complaint(mistake)}"


def complaint(mistake: ErrorDetails) -> str:
    """What is wrong with a value, as text that follows its name: `is required`."""
    context = mistake.get("ctx", {})
    # A discriminator reads 'action' | '@type'; only the last name is in the JSON.
    discriminator = str(context.get("discriminator", "")).rpartition("| ")[2]
    match mistake["type"]:
        case "union_tag_not_found":
            return f"{discriminator} is required"
        case "union_tag_invalid":
            return f"{discriminator} is {quote(str(context['tag']))}, not one of {context['expected_tags']}"
        case known if known in COMPLAINTS:
            return COMPLAINTS[known].format(**context)
        case _:
            return mistake["msg"].removeprefix("Value error, ")


def _place(location: tuple[int | str, ...], body: object, *, missing: bool = False) -> str:
    """A location as text: `columns[2].type`, without pydantic's names of union members."""
    path = ""
    for position, step in enumerate(location):
        last = position == len(location) - 1
        if isinstance(step, int):
            path += f"[{step}]"
            body = body[step] if isinstance(body, list) and step < len(body) else None
        elif isinstance(body, dict) and (step in body or (missing and last)):
            path += f".{step}" if path else step
            body = body.get(step)
    return path or "body"


def quote(text: str) -> str:
    """`text` in quotes, truncated to LONGEST_QUOTE characters."""
    return repr(text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "...")


def kind_of(word: str) -> Kind:
    """The kind named in a path or body, case-insensitive. Raises Invalid."""
    try:
        return Kind(word.lower())
    except ValueError:
        raise Invalid(f"{word!r} is no object type; known are {', '.join(Kind)}.", kind="object") from None


def known_privilege(name: str) -> Privilege:
    """The privilege named in a path or body. Raises Invalid, suggesting the closest one, or else listing all."""
    privilege = parse_privilege(name)
    if privilege is None:
        near = get_close_matches(name[:LONGEST_QUOTE].lower(), list(Privilege), n=1)
        hint = f"did you mean {near[0].upper()}?" if near else f"known are {', '.join(sorted(Privilege))}."
        raise Invalid(f"{quote(name)} is no privilege; {hint}", kind="privilege")
    return privilege


def utc(text: Any) -> Any:
    """Parse ISO 8601 into a UTC datetime (no offset: UTC); returns other types unchanged. Raises ValueError."""
    if not isinstance(text, str):
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{quote(text)} {MOMENT}") from None
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError(f"{text} lies beyond the calendar in UTC") from None


Moment = Annotated[datetime, BeforeValidator(utc, json_schema_input_type=str)]


def written(moment: datetime) -> str:
    """An aware datetime in the API's format: ISO 8601 in UTC, with microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
