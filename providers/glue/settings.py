"""The declared properties of a Glue catalog, and checks that need no connection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field, SecretStr, model_validator

from formats.hive.tables import read_filter
from metalake.errors import Invalid, at
from providers.network.aws import SCHEMES, Keys, Role, check_region, check_role
from providers.network.endpoints import parse_endpoint
from providers.places import PlacedSettings
from providers.settings import CACHE_TTL, REFRESH_INTERVAL, ExternalSettings

CATALOG_ID = re.compile(r"[0-9]{12}(?::[A-Za-z0-9_./-]{1,240})?")
ENDPOINTS = ("aws-glue-endpoint", "aws-sts-endpoint")


class GlueSettings(PlacedSettings, ExternalSettings):
    """Settings in which blank counts as missing, except for seconds, which all catalogs parse alike."""

    model_config = ConfigDict(populate_by_name=False)
    groups = {
        "Connection": ["aws-region", "aws-glue-catalog-id"],
        "Access": ["aws-access-key-id", "aws-secret-access-key", "aws-session-token"],
        "A role to assume": ["aws-role-arn", "aws-external-id", "aws-role-session-name"],
        "Other addresses": ENDPOINTS,
        "Tables": ["default-table-format", "table-type-filter", "table-format-filter"],
    }
    leads = {
        **ExternalSettings.leads,
        "Connection": "Which Glue Data Catalog it is.",
        "Access": "The keys of an account at AWS.",
        "A role to assume": "For catalogs of another account.",
        "Other addresses": "For VPC endpoints and stand-ins of AWS.",
    }
    rare = ExternalSettings.rare | {"A role to assume", "Other addresses"}

    region: str = Field(
        alias="aws-region", description="The AWS region of the Glue Data Catalog, such as eu-central-1."
    )
    catalog_id: str | None = Field(
        None, alias="aws-glue-catalog-id", description="Which Glue catalog; the caller's own account where left out."
    )
    access_key_id: SecretStr | None = Field(
        None, alias="aws-access-key-id", description="The server's own identity is used where keys are left out."
    )
    secret_access_key: SecretStr | None = Field(None, alias="aws-secret-access-key", description="Its secret.")
    session_token: SecretStr | None = Field(
        None, alias="aws-session-token", description="What STS gave with temporary keys."
    )
    role_arn: str | None = Field(None, alias="aws-role-arn", description="A role to assume with the keys.")
    external_id: SecretStr | None = Field(
        None, alias="aws-external-id", description="What the role's trust policy asks for."
    )
    role_session_name: str | None = Field(
        None,
        alias="aws-role-session-name",
        description="The name under which AWS logs the use of the role; metalake where left out.",
    )
    glue_endpoint: str | None = Field(
        None, alias="aws-glue-endpoint", description="Another address of Glue, such as a VPC endpoint's."
    )
    sts_endpoint: str | None = Field(None, alias="aws-sts-endpoint", description="Another address of STS.")
    default_table_format: Literal["iceberg", "hive"] = Field(
        "iceberg", alias="default-table-format", description="The format of new tables that name none by table_type."
    )
    table_type_filter: str | None = Field(
        None,
        alias="table-type-filter",
        description="Which tables are shown: all, or some of hive, iceberg, delta, parquet, divided by commas.",
    )
    table_format_filter: str | None = Field(
        None,
        alias="table-format-filter",
        description="Another name of table-type-filter.",
        json_schema_extra={"synonym": True},
    )

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, given: Any) -> Any:
        seconds = (CACHE_TTL, REFRESH_INTERVAL)
        return {
            key: value for key, value in given.items() if key in seconds or not isinstance(value, str) or value.strip()
        }

    @property
    def keys(self) -> Keys | None:
        if not (self.access_key_id and self.secret_access_key):
            return None
        token = self.session_token.get_secret_value() if self.session_token else None
        return Keys(self.access_key_id.get_secret_value(), self.secret_access_key.get_secret_value(), token)

    @property
    def role(self) -> Role | None:
        if not self.role_arn:
            return None
        external_id = self.external_id.get_secret_value() if self.external_id else None
        return Role(self.role_arn, external_id, self.role_session_name or "metalake", self.sts_endpoint)

    @property
    def account(self) -> str | None:
        """The Glue catalog's owner according to the settings: its id, or the role's account; None if unknown."""
        return self.catalog_id or (self.role_arn.split(":")[4] if self.role_arn else None)

    @property
    def shown_formats(self) -> frozenset[str]:
        return read_shown_formats(self.table_type_filter, self.table_format_filter)


def read_shown_formats(table_type_filter: str | None, table_format_filter: str | None) -> frozenset[str]:
    """The formats in the first filter that is not blank. Raises Invalid for an unknown one."""
    text = next((each for each in (table_type_filter, table_format_filter) if each and each.strip()), "")
    return read_filter(text, "Property 'table-type-filter'")


def check_settings(given: GlueSettings) -> None:
    """Raise Invalid for contradictions and values that AWS would reject, without a DNS lookup."""
    with at("Property 'aws-region'"):
        check_region("glue", given.region, given.glue_endpoint)
    if given.catalog_id and not CATALOG_ID.fullmatch(given.catalog_id):
        raise Invalid(
            "Property 'aws-glue-catalog-id' is an account's 12 digits, or those of a nested catalog such as "
            "123456789012:s3tablescatalog/lake.",
            kind="catalog",
        )
    _check_keys(given)
    _check_filter(given)
    for name, url in zip(ENDPOINTS, (given.glue_endpoint, given.sts_endpoint), strict=True):
        if url:
            with at(f"Property {name!r}"):
                parse_endpoint(url, SCHEMES)


def _check_keys(given: GlueSettings) -> None:
    pair: Mapping[str, object] = {
        "aws-access-key-id": given.access_key_id,
        "aws-secret-access-key": given.secret_access_key,
    }
    missing = [name for name, value in pair.items() if not value]
    if len(missing) == 1:
        other = next(name for name in pair if name not in missing)
        raise Invalid(f"Property {missing[0]!r} is missing: {other} says nothing without it.", kind="catalog")
    if given.session_token and missing:
        raise Invalid("Property 'aws-session-token' belongs to keys; give the two that came with it.", kind="catalog")
    if not given.role_arn and (given.external_id or given.role_session_name):
        raise Invalid("Property 'aws-role-arn' is missing: which role is to be assumed?", kind="catalog")
    if role := given.role:
        with at("Property 'aws-role-arn'"):
            check_role(Role(role.arn, role.external_id, role.session_name))


def _check_filter(given: GlueSettings) -> None:
    one, other = given.table_type_filter, given.table_format_filter
    if one and other and read_filter(one, "") != read_filter(other, ""):
        raise Invalid("Properties 'table-type-filter' and 'table-format-filter' are one; give one.", kind="catalog")
    given.shown_formats  # noqa: B018 (raises)
