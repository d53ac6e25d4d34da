"""The declared properties of database catalogs, by the names that Gravitino's clients send."""

from __future__ import annotations

from typing import Any

from pydantic import Field, SecretStr, field_validator

from providers.settings import DIGITS, ExternalSettings

URL, DATABASE = "jdbc-url", "jdbc-database"


class JdbcSettings(ExternalSettings):
    groups = {
        "Connection": [URL, DATABASE, "jdbc-user", "jdbc-password", "jdbc-driver"],
        "Pool": ["jdbc.pool.min-size", "jdbc.pool.max-size"],
    }
    leads = {**ExternalSettings.leads, "Pool": "How many connections are open at a time."}
    rare = ExternalSettings.rare | {"Pool"}
    url: str = Field(
        alias=URL,
        description="Where the database listens: jdbc:postgresql://db.lan:5432/sales, jdbc:mysql://db.lan:3306.",
    )
    driver: str | None = Field(
        None, alias="jdbc-driver", description="The class of the JDBC driver that engines use; none is loaded here."
    )
    database: str | None = Field(
        None, alias=DATABASE, description="The database; left out, the one that the URL names.", max_length=64
    )
    user: str = Field(
        alias="jdbc-user",
        description="The account; what it may not see there, the catalog does not show.",
        min_length=1,
    )
    password: SecretStr = Field(alias="jdbc-password", description="Its password.", min_length=1)
    least_pooled: int = Field(
        2, alias="jdbc.pool.min-size", ge=0, le=1_000, description="Of the pools of engines; without effect here."
    )
    most_pooled: int = Field(
        10,
        alias="jdbc.pool.max-size",
        ge=1,
        le=1_000,
        description="How many connections each process of this server has open at most.",
    )

    @field_validator("least_pooled", "most_pooled", mode="before")
    @classmethod
    def _whole(cls, given: Any) -> Any:
        if isinstance(given, str) and not DIGITS.fullmatch(given):
            raise ValueError("must be a whole number, in digits alone, such as 10")
        return given
