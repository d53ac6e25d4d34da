"""A catalog in the AWS Glue Data Catalog: its settings, client, table locations, and the identity of its Glue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar

from formats.hive.names import GLUE, ICEBERG_IN_GLUE
from formats.hive.tables import FILE_FORMATS
from metalake.errors import Invalid, MetalakeError, ProviderUnavailable, at
from providers.glue.client import GlueClient
from providers.glue.resource_links import target_of
from providers.glue.settings import ENDPOINTS, GlueSettings, check_settings, read_shown_formats
from providers.hive_like.catalog import HiveLikeCatalog, HiveLikePlaces
from providers.hive_like.parameters import MADE_HERE
from providers.network.aws import SCHEMES, check_role, wrong_region
from providers.network.endpoints import check_endpoint, parse_endpoint
from providers.network.identity import ADVICE, are_named
from providers.network.storage import open_storage
from providers.remote_objects import Remote
from providers.settings import CACHE_TTL, REFRESH_INTERVAL

if TYPE_CHECKING:
    from pyiceberg.io import FileIO


class GluePlaces(HiveLikePlaces):
    def home_of(self, schema: Remote) -> str | None:
        if own := schema.definition["location"]:
            return str(own)
        warehouse = self.catalog.warehouse
        return f"{warehouse.removesuffix('/')}/{schema.name}" if warehouse else None


class GlueCatalog(HiveLikeCatalog):
    label = "AWS Glue"
    settings = GlueSettings
    immutable: ClassVar[Mapping[str, str]] = {
        "aws-region": "another region has other databases",
        "aws-glue-catalog-id": "another Glue catalog has other databases",
    }
    longest_name = GLUE.longest
    rule, iceberg_rule = GLUE, ICEBERG_IN_GLUE

    @classmethod
    def check(cls, properties: Mapping[str, str]) -> Any:
        given = super().check(properties)
        check_settings(given)
        return given

    @property
    def file_roots(self) -> Sequence[str]:
        return ()

    @cached_property
    def places(self) -> GluePlaces:
        return GluePlaces(self)

    @cached_property
    def given(self) -> GlueSettings:
        """The settings without the two in seconds, which `seconds_of` reads, as older rows may have invalid ones."""
        others = {key: value for key, value in self.properties.items() if key not in (CACHE_TTL, REFRESH_INTERVAL)}
        return GlueSettings.model_validate(others)

    @classmethod
    def shown_formats(cls, properties: Mapping[str, str]) -> frozenset[str]:
        words = read_shown_formats(properties.get("table-type-filter"), properties.get("table-format-filter"))
        return MADE_HERE if "all" in words else MADE_HERE & words

    @property
    def only_formats(self) -> frozenset[str] | None:
        """The table formats of the filter; `hive` adds the file formats, which Hive tables have as well."""
        words = self.given.shown_formats
        if "all" in words:
            return None
        return words.union(FILE_FORMATS.values() if "hive" in words else ())

    @cached_property
    def glue(self) -> GlueClient:
        """Raises ProviderUnavailable without keys if the server's own identity is not allowed for this Glue."""
        self.require_identity()
        return GlueClient(self.given)

    def require_identity(self) -> None:
        given = self.given
        if given.keys:
            return
        urls = [parse_endpoint(url, SCHEMES).url for url in (given.glue_endpoint, given.sts_endpoint) if url]
        needed = [
            f"glue://{given.account or 'server'}/{given.region}",
            *([given.role_arn] if given.role_arn else []),
            *urls,
        ]
        if not are_named(needed):
            message = f"Nothing opens this Glue catalog. {ADVICE} It needs {', '.join(needed)}."
            raise ProviderUnavailable(message, kind="catalog", retryable=False)

    @cached_property
    def io(self) -> FileIO:
        """FileIO with Glue's region and the catalog's keys or role, unless the storage properties override them."""
        given = self.given
        ours = {} if "client.region" in self.properties else {"s3.region": given.region}
        if self.properties.keys().isdisjoint(("s3.access-key-id", "client.access-key-id")):
            ours |= self._keys_for_storage() if given.keys else self._role_for_storage()
        return open_storage(self.catalog_id, self.properties, ours)

    def _keys_for_storage(self) -> dict[str, str]:
        keys = self.glue.credentials()
        given = {"s3.access-key-id": keys.access_key, "s3.secret-access-key": keys.secret_key}
        return given | ({"s3.session-token": keys.token} if keys.token else {})

    def _role_for_storage(self) -> dict[str, str]:
        """The role, which the server's identity assumes where it is allowed."""
        role = self.given.role
        if not role:
            return {}
        given = {"s3.role-arn": role.arn, "s3.role-session-name": role.session_name}
        return given | ({"client.assume-role.external-id": role.external_id} if role.external_id else {})

    def check_locations(self) -> None:
        super().check_locations()
        for name, url in zip(ENDPOINTS, (self.given.glue_endpoint, self.given.sts_endpoint), strict=True):
            if url:
                with at(f"Property {name!r}"):
                    check_endpoint(url, SCHEMES)
        if self.given.role:
            check_role(self.given.role)
        try:
            self.require_identity()
        except ProviderUnavailable as refused:
            raise Invalid(refused.message, kind="catalog") from None

    def system_names(self) -> list[str]:
        """Account and region; without a known account, the keys or the server's identity, which imply one."""
        given = self.given
        if given.account:
            return [f"glue://{given.account}/{given.region}"]
        if not given.keys:
            return [f"glue://server/{given.region}"]
        key = sha256(given.keys.access_key_id.encode()).hexdigest()[:32]
        return [f"glue://key-{key}/{given.region}/{given.glue_endpoint or ''}".rstrip("/")]

    def system(self) -> list[str]:
        """`system_names`, plus the account from STS; AWS's STS does not know the accounts of a custom Glue endpoint."""
        names, given = self.system_names(), self.given
        if given.account or (given.keys and given.glue_endpoint and not given.sts_endpoint):
            return names
        with suppress(MetalakeError):
            names.append(f"glue://{self.glue.account()}/{given.region}")
        return names

    @classmethod
    def target_of(cls, definition: Mapping[str, Any]) -> str | None:
        return target_of(dict(definition))

    def test_connection(self) -> None:
        """List one database."""
        self.check_locations()
        try:
            self.glue.call("GetDatabases", MaxResults=1)
        except ProviderUnavailable as failure:  # a custom endpoint's region is not checked before the call
            if wrong := wrong_region("glue", self.given.region):
                failure.message += f" By the way, {wrong}"
            raise
