"""A catalog of the AWS Glue Data Catalog: its settings, its client, its tables' places, and which Glue it leads to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar

from formats.hive.names import GLUE, ICEBERG_IN_GLUE
from formats.hive.tables import FILE_FORMATS
from formats.iceberg import storage
from metalake.errors import MetalakeError, ProviderUnavailable, at
from providers.answers import Remote
from providers.glue.client import GlueClient
from providers.glue.settings import ENDPOINTS, GlueSettings, check_settings, read_shown_formats
from providers.hive_like.catalog import HiveLikeCatalog
from providers.hive_like.meaning import MADE_HERE
from providers.hive_like.places import HiveLikePlaces
from providers.reaching.aws import SCHEMES, check_role, wrong_region
from providers.reaching.endpoints import check_endpoint
from providers.reaching.storage import reach_storage
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
        """The settings without the two in seconds, which `seconds_of` reads: older rows may have invalid ones."""
        others = {key: value for key, value in self.properties.items() if key not in (CACHE_TTL, REFRESH_INTERVAL)}
        return GlueSettings.model_validate(others)

    @classmethod
    def shown_formats(cls, properties: Mapping[str, str]) -> frozenset[str]:
        words = read_shown_formats(properties.get("table-type-filter"), properties.get("table-format-filter"))
        return MADE_HERE if "all" in words else MADE_HERE & words

    @property
    def only_formats(self) -> frozenset[str] | None:
        """The table formats of the filter; a Hive table also has a file format, so those are added for `hive`."""
        words = self.given.shown_formats
        if "all" in words:
            return None
        return words.union(FILE_FORMATS.values() if "hive" in words else ())

    @cached_property
    def glue(self) -> GlueClient:
        return GlueClient(self.given)

    @cached_property
    def io(self) -> FileIO:
        """The storage, with Glue's region and credentials unless the storage properties give others."""
        reach_storage(self.properties)
        ours = {} if "client.region" in self.properties else {"s3.region": self.given.region}
        if self.properties.keys().isdisjoint(("s3.access-key-id", "client.access-key-id")):
            keys = self.glue.credentials()
            ours |= {"s3.access-key-id": keys.access_key, "s3.secret-access-key": keys.secret_key}
            ours |= {"s3.session-token": keys.token} if keys.token else {}
        return storage.file_io(ours | self.properties)

    def check_locations(self) -> None:
        super().check_locations()
        for name, url in zip(ENDPOINTS, (self.given.glue_endpoint, self.given.sts_endpoint), strict=True):
            if url:
                with at(f"Property {name!r}"):
                    check_endpoint(url, SCHEMES)
        if self.given.role:
            check_role(self.given.role)

    def system_names(self) -> list[str]:
        """The account and region; without a known account, the keys or the server's identity, which imply one."""
        given = self.given
        if given.account:
            return [f"glue://{given.account}/{given.region}"]
        if not given.keys:
            return [f"glue://server/{given.region}"]
        key = sha256(given.keys.access_key_id.encode()).hexdigest()[:32]
        return [f"glue://key-{key}/{given.region}/{given.glue_endpoint or ''}".rstrip("/")]

    def system(self) -> list[str]:
        """`system_names`, and the account as STS gives it; a custom Glue endpoint has accounts that AWS's STS lacks."""
        names, given = self.system_names(), self.given
        if given.account or (given.keys and given.glue_endpoint and not given.sts_endpoint):
            return names
        with suppress(MetalakeError):
            names.append(f"glue://{self.glue.account()}/{given.region}")
        return names

    def test_connection(self) -> None:
        """List one database."""
        self.check_locations()
        try:
            self.glue.call("GetDatabases", MaxResults=1)
        except ProviderUnavailable as failure:  # with a custom endpoint the region is not checked before the call
            if wrong := wrong_region("glue", self.given.region):
                failure.message += f" By the way, {wrong}"
            raise
