"""Files in GCS, Azure storage and HDFS, through PyArrow, whose clients for these follow no redirects."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from pyarrow.fs import FileSelector, FileSystem, FileType, GcsFileSystem
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.utils.datetime import millis_to_datetime

from metalake.errors import ProviderUnavailable
from providers.network.identity import ADVICE

RETRIED = timedelta(seconds=30)  # instead of a quarter of an hour
NEVER = 4_102_444_800_000  # milliseconds, the year 2100: for a token without an expiry
AZURE_KEYS = (
    ("adls.account-key",),
    ("adls.sas-token",),
    ("adls.client-id", "adls.client-secret", "adls.tenant-id"),
)


class ArrowFiles(PyArrowFileIO):
    """pyiceberg's FileIO, which falls back to the server's own identity only if `is_own`."""

    def __init__(self, settings: Mapping[str, str], scheme: str, is_own: bool) -> None:
        super().__init__(dict(settings))
        self._is_own = is_own

    def holds_files(self, location: str) -> bool:
        scheme, host, path = self.parse_location(location, self.properties)
        return _holds_a_file(self.fs_by_scheme(scheme, host), path)

    def _initialize_gcs_fs(self) -> FileSystem:
        scheme, _, host = self.properties.get("gcs.service.host", "").rpartition("://")
        given = {"scheme": scheme or None, "endpoint_override": host or None, "retry_time_limit": RETRIED}
        if token := self.properties.get("gcs.oauth2.token"):
            until = millis_to_datetime(int(self.properties.get("gcs.oauth2.token-expires-at", NEVER)))
            return GcsFileSystem(access_token=token, credential_token_expiration=until, **given)
        return GcsFileSystem(anonymous=not self._is_own, **given)

    def _initialize_azure_fs(self) -> FileSystem:
        has_keys = any(all(map(self.properties.get, keys)) for keys in AZURE_KEYS)
        if not (has_keys or self._is_own):
            raise keys_are_missing("abfss")
        return super()._initialize_azure_fs()

    def _initialize_hdfs_fs(self, scheme: str, netloc: str | None) -> FileSystem:
        if not self._is_own:
            raise keys_are_missing(scheme)
        return super()._initialize_hdfs_fs(scheme, netloc)


def keys_are_missing(scheme: str) -> ProviderUnavailable:
    return ProviderUnavailable(f"Nothing opens {scheme}:// locations. {ADVICE}", kind="storage", retryable=False)


def _holds_a_file(storage: FileSystem, folder: str) -> bool:
    entries = storage.get_file_info(FileSelector(folder, allow_not_found=True))
    if any(entry.type != FileType.Directory for entry in entries):
        return True
    try:
        return any(_holds_a_file(storage, entry.path) for entry in entries)
    except OSError:
        return True  # an unreadable folder may not be empty
