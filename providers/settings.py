"""Declared catalog properties, and those that every external catalog has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

CACHE_TTL, REFRESH_INTERVAL = "cache-ttl", "refresh-interval"  # both in seconds
NESTED = "nested-namespaces"
DIGITS = re.compile(r"[0-9]+")


class Settings(BaseModel):
    """A catalog's declared properties, by their names in the API; secrets are SecretStr. Unknown ones are allowed."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)
    # Titles of the class's own properties in a form, in their order, each with the names that stand below it.
    groups: ClassVar[Mapping[str, Sequence[str]]] = {}
    # A sentence for each title, and the titles that few catalogs need: a form folds these.
    leads: ClassVar[Mapping[str, str]] = {
        "Connection": "Where the system is, and the account that this server uses there.",
        "Locations": "Where tables may lie.",
        "Tables": "Which tables are shown, and how new ones are made.",
        "Schemas": "How schemas are arranged.",
        "Freshness": "How old an answer may be, and when the whole catalog is compared with its system.",
    }
    rare: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def declared(cls) -> list[str]:
        return [field.alias or name for name, field in cls.model_fields.items()]

    @classmethod
    def grouped(cls) -> dict[str, list[str]]:
        """The groups of this class and then of those that it extends; properties of no group are in none."""
        grouped = dict[str, list[str]]()
        for each in cls.__mro__:
            for title, names in vars(each).get("groups", {}).items():
                grouped[title] = list(dict.fromkeys([*grouped.get(title, []), *names]))
        return grouped

    @classmethod
    def declares_secret(cls) -> dict[str, bool]:
        """Declared property name -> whether it is a secret, never shown."""
        return {name: name in cls.secrets() for name in cls.declared()}

    @classmethod
    def secrets(cls) -> frozenset[str]:
        """The names of the declared secrets, which are never shown."""
        return frozenset(
            field.alias or name
            for name, field in cls.model_fields.items()
            if SecretStr in (field.annotation, *get_args(field.annotation))
        )


class ExternalSettings(Settings):
    """The declared properties of every external catalog."""

    groups = {"Freshness": [CACHE_TTL, REFRESH_INTERVAL], "Schemas": [NESTED]}
    rare = frozenset({"Schemas", "Tables"})
    cache_ttl: int = Field(
        0,
        alias=CACHE_TTL,
        ge=0,
        le=86_400,
        description="How long an answer of the outside system is good. In seconds over the API; 0 asks every time.",
        json_schema_extra={"duration": "for {}", "none": "not at all: it is asked every time"},
    )
    refresh_interval: int | None = Field(
        None,
        alias=REFRESH_INTERVAL,
        ge=60,
        le=31_536_000,
        description="How often the whole catalog is walked and compared. In seconds over the API.",
        json_schema_extra={"duration": "every {}", "none": "only on demand"},
    )
    nested_namespaces: Literal["true", "false"] = Field(
        "false", alias=NESTED, description="Whether schemas may lie inside schemas."
    )

    @field_validator("cache_ttl", "refresh_interval", mode="before")
    @classmethod
    def _in_digits(cls, given: Any) -> Any:
        """Accept ASCII digits only, so that every parser reads the same number."""
        if isinstance(given, str) and not DIGITS.fullmatch(given):
            raise ValueError("must be a whole number of seconds, in digits alone, such as 60")
        return given


def seconds_of(properties: Mapping[str, str], name: str) -> int | None:
    """CACHE_TTL or REFRESH_INTERVAL in seconds; the default if unset, or invalid as in some older rows."""
    given = {name: properties[name]} if name in properties else {}
    try:
        read = ExternalSettings.model_validate(given)
    except ValidationError:
        read = ExternalSettings()
    return read.cache_ttl if name == CACHE_TTL else read.refresh_interval
