"""Calls to AWS Glue; its errors and connection failures become ours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from botocore import exceptions as aws
from botocore import xform_name
from botocore.client import BaseClient
from botocore.credentials import ReadOnlyCredentials

from metalake.errors import (
    AlreadyExists,
    Conflict,
    Invalid,
    MetalakeError,
    NotFound,
    OutcomeUnknown,
    ProviderBusy,
    ProviderTimeout,
    ProviderUnavailable,
    TooLarge,
)
from providers.deadline import require_time
from providers.glue.settings import GlueSettings
from providers.network.aws import Keys, Role, aws_client, regions
from providers.network.response_budget import ResponseTooLarge, places_returned

KINDS = ("catalog", "schema", "table", "partition")
THROTTLED = frozenset(
    {
        "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled", "RequestThrottledException",
        "RequestLimitExceeded", "TooManyRequestsException", "SlowDown", "LimitExceededException",
    }
)  # fmt: skip
BAD_CREDENTIALS = frozenset(
    {
        "UnrecognizedClientException", "InvalidClientTokenId", "InvalidAccessKeyId", "SignatureDoesNotMatch",
        "InvalidSignatureException", "IncompleteSignature", "IncompleteSignatureException", "AuthFailure",
        "MissingAuthenticationToken", "MissingAuthenticationTokenException",
    }
)  # fmt: skip
EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})
DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "NotAuthorizedException"})
WRONG = frozenset({"ValidationException", "InvalidInputException", "SerializationException"})
CHANGED = frozenset({"ConcurrentModificationException", "VersionMismatchException"})
MAY_BE_DONE = frozenset({"OperationTimeoutException"})
NOT_SENT = (
    aws.EndpointConnectionError,
    aws.ConnectTimeoutError,
    aws.ProxyConnectionError,
    aws.NoCredentialsError,
    aws.PartialCredentialsError,
    aws.CredentialRetrievalError,
)


class GlueClient:
    """A client with a catalog's settings; cheap to create, as connections are shared."""

    def __init__(self, given: GlueSettings) -> None:
        self._where = (given.region, given.glue_endpoint, given.keys, given.role)
        self._sts = given.sts_endpoint if given.keys else None  # only AWS knows the account of the server's identity
        self._catalog = {"CatalogId": given.catalog_id} if given.catalog_id else {}

    def call(self, operation: str, place: Sequence[str] = (), /, **parameters: Any) -> dict[str, Any]:
        """Make one call for the database, table or partition at `place`, its names from the database down.

        Raises the errors of a remote store's verbs; for a creation, NotFound names the missing parent.
        """
        self.credentials()
        if not operation.startswith("Get"):
            require_time()
        with _answering(operation, place):
            act = getattr(_client(*self._where), xform_name(operation))
            answer: dict[str, Any] = act(**self._catalog | parameters)
        return answer

    def credentials(self) -> ReadOnlyCredentials:
        """The current keys. Raises ProviderUnavailable if there are none, without calling Glue."""
        with _answering("GetCredentials", ()):
            frozen: ReadOnlyCredentials = _client(*self._where)._get_credentials().get_frozen_credentials()
        return frozen

    def account(self) -> str:
        """The account of the current keys, from STS. Raises ProviderUnavailable."""
        region, _, keys, role = self._where
        with _answering("GetCallerIdentity", ()):
            asked = _client(region, self._sts, keys, role, "sts").get_caller_identity()
        return str(asked["Account"])

    def writable(self, shape: str) -> frozenset[str]:
        """The fields that a request's structure, such as TableInput, accepts."""
        with _answering("GetCredentials", ()):
            return frozenset(_client(*self._where).meta.service_model.shape_for(shape).members)


@lru_cache(maxsize=64)
def _client(
    region: str, endpoint: str | None, keys: Keys | None, role: Role | None, service: str = "glue"
) -> BaseClient:
    if service == "sts" and not endpoint and region not in regions(service):
        region = "us-east-1"
    client = aws_client(service, region, endpoint, keys=keys, role=role, own_identity=not keys)  # `glue` checked it
    if client._get_credentials() is None:
        raise aws.NoCredentialsError  # not cached, so the next call checks again
    return client


@contextmanager
def _answering(operation: str, place: Sequence[str]) -> Iterator[None]:
    """Translate botocore's exceptions to ours; AWS's own text is quoted only if it is about the request's content."""
    try:
        with places_returned():
            yield
    except aws.ClientError as refusal:
        raise _refused(refusal, operation, place) from None
    except aws.ParamValidationError as wrong:
        raise Invalid(f"AWS Glue does not take this: {_plain(wrong.kwargs['report'])}", kind=_kind(place)) from None
    except (aws.NoCredentialsError, aws.PartialCredentialsError, aws.CredentialRetrievalError):
        message = "There are no AWS credentials: give the catalog keys, or the server an identity of its own."
        raise _unavailable(message, retryable=False) from None
    except NOT_SENT as failure:
        raise _unavailable(f"AWS Glue cannot be reached ({type(failure).__name__}).") from None
    except (ProviderBusy, ProviderTimeout) as cut:  # the response was not read to the end
        raise cut if _is_read(operation) else OutcomeUnknown(cut.message, kind="catalog") from None
    except ResponseTooLarge as heavy:
        raise _lost(f"The answer of AWS Glue to {operation} {heavy}.", operation, retryable=False) from None
    except aws.BotoCoreError as failure:
        raise _silence(failure, operation) from None


def _silence(failure: aws.BotoCoreError, operation: str) -> MetalakeError:
    if isinstance(failure, aws.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(failure):
        return _unavailable("The certificate that AWS Glue's address shows is not trusted.", retryable=False)
    if isinstance(failure, aws.ReadTimeoutError):
        if not _is_read(operation):
            return OutcomeUnknown(f"AWS Glue did not answer {operation} in time.", kind="catalog")
        return ProviderTimeout(f"AWS Glue did not answer {operation} in time.", kind="catalog")
    return _lost(f"AWS Glue ended the connection without an answer to {operation}.", operation)


def _refused(refusal: aws.ClientError, operation: str, place: Sequence[str]) -> MetalakeError:
    error = refusal.response.get("Error", {})
    code, message = str(error.get("Code", "")).rpartition("#")[2], str(error.get("Message", ""))
    status = refusal.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    asked = refusal.operation_name or operation
    if code in THROTTLED or status == 429:
        return ProviderBusy("AWS throttles requests; try again in a moment.", kind="catalog")
    if code in BAD_CREDENTIALS or code in EXPIRED:
        return _unavailable(_bad_credentials(code, message), retryable=False)
    if code in DENIED:
        return _unavailable(_denied(asked, message), retryable=False)
    if asked != operation:  # an STS call for credentials
        return _unavailable(f"The role was not given: {asked} failed ({code}).", retryable=status >= 500)
    if status >= 500 or code in MAY_BE_DONE:
        return _lost(f"AWS Glue failed in {operation} ({code}).", operation)
    return _about_the_object(code, message, operation, place)


def _about_the_object(code: str, message: str, operation: str, place: Sequence[str]) -> MetalakeError:
    if code == "EntityNotFoundException":
        missing = place[:-1] if operation.startswith("Create") else place
        return NotFound(f"{_name(missing)} does not exist in AWS Glue.", kind=_kind(missing))
    if code == "AlreadyExistsException":
        return AlreadyExists(f"{_name(place)} already exists in AWS Glue.", kind=_kind(place))
    if code in CHANGED:
        return Conflict(f"{_name(place)} was changed meanwhile; load it and try again.", kind=_kind(place))
    if code in WRONG:
        return Invalid(f"AWS Glue does not take this: {_plain(message)}", kind=_kind(place))
    if code == "ResourceNumberLimitExceededException":
        return TooLarge(f"AWS Glue's quota is used up: {_plain(message)}", kind=_kind(place))
    return _unavailable(f"AWS Glue refused {operation} ({code or 'no reason given'}).", retryable=False)


def _bad_credentials(code: str, message: str) -> str:
    if code in EXPIRED:
        return "The AWS credentials have expired; give the catalog new ones."
    if "region" in message.lower():
        return "The AWS credentials are signed for another region: aws-region is not that of the endpoint."
    return f"AWS does not know these credentials ({code}); check the keys, the session token and the region."


def _denied(operation: str, message: str) -> str:
    if "lake formation" in message.lower():
        return f"AWS Lake Formation does not permit these credentials what {operation} needs."
    action = f"sts:{operation}" if operation.startswith("AssumeRole") else f"glue:{operation}"
    return f"The AWS credentials lack the permission {action}."


def _lost(message: str, operation: str, *, retryable: bool = True) -> MetalakeError:
    return (
        _unavailable(message, retryable=retryable) if _is_read(operation) else OutcomeUnknown(message, kind="catalog")
    )


def _is_read(operation: str) -> bool:
    return operation.startswith("Get")


def _unavailable(message: str, *, retryable: bool = True) -> ProviderUnavailable:
    return ProviderUnavailable(message, kind="catalog", retryable=retryable)


def _name(place: Sequence[str]) -> str:
    return f"{_kind(place).capitalize()} {'.'.join(place)}".strip()


def _kind(place: Sequence[str]) -> str:
    return KINDS[len(place)]


def _plain(message: str) -> str:
    return re.sub(r"\s+", " ", message).strip()[:300]
