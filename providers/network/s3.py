"""Files in S3, or in Alibaba's OSS over the same protocol: botocore on checked connections.

PyArrow's own client follows redirects to any address and takes the response for the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import SEEK_END, BytesIO
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError, ParamValidationError

from formats.iceberg.storage import Refused
from metalake.errors import Invalid, ProviderUnavailable
from providers.network.aws import Keys, Role, aws_client
from providers.network.identity import ADVICE
from providers.network.response_budget import ResponseTooLarge, places_returned

ATTEMPTS = 3
MOST_PAGES, PAGE = 50, 100  # pages of a folder's listing, objects per page
# Hosts that allow virtual-hosted buckets; elsewhere that would be a host that was not checked.
BUCKET_HOSTS = (".amazonaws.com", ".amazonaws.com.cn", ".aliyuncs.com")
MISSING = {"404", "NoSuchKey", "NoSuchBucket"}
REFUSED = {"401", "403"}


class S3Files:
    """Files by location, `s3://bucket/key`; without keys the requests are anonymous."""

    def __init__(self, settings: Mapping[str, str], scheme: str, is_own: bool) -> None:
        """`is_own`: whether to use the server's own identity if the settings have no keys."""

        def given(name: str) -> str | None:
            return settings.get(f"s3.{name}") or settings.get(f"client.{name}") or None

        key, secret, endpoint = given("access-key-id"), given("secret-access-key"), settings.get("s3.endpoint") or None
        if (key or secret or given("session-token")) and not (key and secret):
            missing = "s3.secret-access-key" if key else "s3.access-key-id"
            message = f"The catalog has a part of S3's keys alone, without {missing}."
            raise ProviderUnavailable(message, kind="storage", retryable=False)
        keys = Keys(key, secret, given("session-token")) if key and secret else None
        if settings.get("s3.anonymous", "").lower() in ("true", "1", "yes"):
            keys, is_own = None, False
        self._is_anonymous = not (keys or is_own)
        arn = None if self._is_anonymous else given("role-arn")
        external = settings.get("client.assume-role.external-id")
        wanted = settings.get("s3.force-virtual-addressing", str(scheme == "oss")).lower() == "true"
        self._client = aws_client(
            "s3",
            given("region") or "us-east-1",  # AWS returns the bucket's region instead
            endpoint,
            keys=keys,
            role=Role(arn, external, given("role-session-name") or "metalake") if arn else None,
            own_identity=is_own and not keys,
            connect_timeout=float(settings["s3.connect-timeout"]),
            read_timeout=float(settings["s3.request-timeout"]),
            attempts=ATTEMPTS,
            bucket_in_host=wanted and (urlsplit(endpoint or "").hostname or "").endswith(BUCKET_HOSTS),
        )

    def new_input(self, location: str) -> S3File:
        return S3File(self, location)

    new_output = new_input

    def delete(self, location: str) -> None:
        self.ask("head_object", location)
        self.ask("delete_object", location)

    def holds_files(self, location: str) -> bool:
        """Whether a folder contains anything but folder markers; also True if it has too many of these to tell."""
        bucket, key = _parts(location.rstrip("/"))
        asked: dict[str, Any] = {"Prefix": f"{key}/" if key else "", "MaxKeys": PAGE}
        for _ in range(MOST_PAGES):
            try:
                page = self.ask("list_objects_v2", f"s3://{bucket}", **asked)
            except FileNotFoundError:
                return False
            if any(not one["Key"].endswith("/") for one in page.get("Contents", ())):
                return True
            if not page.get("IsTruncated"):
                return False
            asked["ContinuationToken"] = page.get("NextContinuationToken", "")
        return True

    def ask(self, operation: str, location: str, **given: Any) -> Any:
        """Call S3 on a location. Raises FileNotFoundError, PermissionError, Refused, ProviderUnavailable, Invalid."""
        bucket, key = _parts(location)
        with self._errors(location), places_returned():
            return getattr(self._client, operation)(Bucket=bucket, **({"Key": key} if key else {}), **given)

    @contextmanager
    def _errors(self, location: str) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if code in MISSING and error.operation_name != "PutObject":
                raise FileNotFoundError from None
            if 300 <= status < 400:
                message = f"The storage redirects to another address, where this server does not follow: {location}"
                raise ProviderUnavailable(message, kind="storage", retryable=False) from None
            if status == 403 and self._is_anonymous:
                message = f"The storage refused access to {location}. {ADVICE}"
                raise ProviderUnavailable(message, kind="storage", retryable=False) from None
            if code in REFUSED:
                raise PermissionError from None
            raise Refused(f"HTTP status {code}" if code.isdigit() else code) from None
        except ResponseTooLarge as heavy:
            message = f"The storage's answer about {location} {heavy}."
            raise ProviderUnavailable(message, kind="storage", retryable=False) from None
        except (ParamValidationError, UnicodeEncodeError):
            message = f"Location {location!r:.200} has a bucket or a key that S3 does not take."
            raise Invalid(message, kind="location") from None


class S3File:
    """One object: the part of pyiceberg's InputFile and OutputFile that we use."""

    def __init__(self, files: S3Files, location: str) -> None:
        self._files, self._location = files, location

    def exists(self) -> bool:
        """Whether the object, folder or bucket exists."""
        is_bucket = not _parts(self._location)[1]
        return self._is_there("head_bucket" if is_bucket else "head_object") or (
            not is_bucket and self._files.holds_files(self._location)
        )

    def _is_there(self, question: str) -> bool:
        try:
            self._files.ask(question, self._location)
        except FileNotFoundError:
            return False
        return True

    def open(self) -> _Stream:
        answer = self._files.ask("get_object", self._location)
        if answer.get("ContentLength", -1) >= 0:
            return _Stream(answer)
        answer["Body"].close()
        message = f"The storage does not say how long {self._location} is (Content-Length), so that it is not read."
        raise ProviderUnavailable(message, kind="storage", retryable=False)

    def create(self, overwrite: bool = False) -> _Upload:
        if not overwrite and self._is_there("head_object"):
            raise FileExistsError
        return _Upload(self._files, self._location)


class _Stream:
    """An object that is read once, from the start; seeking only returns its size."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self._body, self._size = answer["Body"], int(answer["ContentLength"])

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._size + offset if whence == SEEK_END else offset

    def read(self, size: int = -1) -> bytes:
        content: bytes = self._body.read(None if size < 0 else size)
        return content

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self._body.close()


class _Upload(BytesIO):
    """Uploads the object when the block exits without an error."""

    def __init__(self, files: S3Files, location: str) -> None:
        super().__init__()
        self._files, self._location = files, location

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if kind is None:
            self._files.ask("put_object", self._location, Body=self.getvalue())
        super().__exit__(kind, *rest)


def _parts(location: str) -> tuple[str, str]:
    """The bucket and the key ("" if none)."""
    bucket, _, key = location.partition("://")[2].partition("/")
    return bucket, key
