"""AWS clients that connect only to checked addresses."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache, partial
from socket import IPPROTO_TCP, TCP_NODELAY
from ssl import SSLContext
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from botocore import UNSIGNED
from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
    AWSPreparedRequest,
    AWSResponse,
)
from botocore.client import BaseClient
from botocore.config import Config
from botocore.credentials import CredentialResolver, Credentials, DeferredRefreshableCredentials
from botocore.exceptions import HTTPClientError
from botocore.httpsession import URLLib3Session
from botocore.loaders import create_loader
from botocore.session import Session

from metalake.errors import Invalid, MetalakeError, ProviderTimeout
from providers.deadline import require_time
from providers.network import timed_sockets
from providers.network.endpoints import CONNECT_SECONDS, READ_SECONDS, check_endpoint, connect, parse_endpoint
from providers.network.identity import ROLE
from providers.network.response_budget import PART, ResponseBudget, ResponseTooLarge

SCHEMES = ("https", "http")
CHUNK = 64 * 2**10
BEGINNINGS = (b"{", b"[", b"<", b"=")  # of the parts of JSON, and of XML elements and attributes
# Keep-alive connections, without Nagle's delay for small requests.
SENDING: dict[str, Any] = {"max_pool_connections": 16, "socket_options": [(IPPROTO_TCP, TCP_NODELAY, 1)]}
REGION = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
SESSION_NAME = re.compile(r"[\w+=,.@-]{2,64}", re.ASCII)
EXTERNAL_ID = re.compile(r"[\w+=,.@:/-]{2,1224}", re.ASCII)


@dataclass(frozen=True)
class Keys:
    """Static keys, or temporary ones if there is a session token."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Role:
    """A role to assume with the catalog's keys or with the server's own identity."""

    arn: str
    external_id: str | None = field(default=None, repr=False)
    session_name: str = "metalake"
    sts_endpoint: str | None = None


def check_region(service: str, region: str, endpoint: str | None = None) -> None:
    """Raise Invalid, with near misses, for a region without the service; a custom endpoint may use any name."""
    if endpoint:
        if not REGION.fullmatch(region):
            raise Invalid(f"{region!r:.80} is not a region's name.", kind="catalog")
    elif wrong := wrong_region(service, region):
        raise Invalid(wrong, kind="catalog")


def wrong_region(service: str, region: str) -> str:
    """Why the region is wrong, with near misses; empty if it has the service."""
    if region in regions(service):
        return ""
    near = get_close_matches(region.lower(), sorted(regions(service)), n=3, cutoff=0.6)
    suggestion = f"; did you mean {' or '.join(near)}?" if near else ", such as us-east-1 or eu-central-1."
    return f"{region!r:.80} is no AWS region of {service}{suggestion}"


def check_role(role: Role) -> None:
    """Raise Invalid for a role that AWS would reject, or an STS endpoint that the server must not connect to."""
    if not ROLE.fullmatch(role.arn):
        raise Invalid(
            f"{role.arn!r:.80} is no role's ARN, such as arn:aws:iam::123456789012:role/reader.", kind="catalog"
        )
    if not SESSION_NAME.fullmatch(role.session_name):
        raise Invalid("A role's session name is 2 to 64 letters, digits or any of _=,.@+-", kind="catalog")
    if role.external_id is not None and not EXTERNAL_ID.fullmatch(role.external_id):
        raise Invalid("A role's external id is 2 to 1224 letters, digits or any of _=,.@:/+-", kind="catalog")
    if role.sts_endpoint:
        check_endpoint(role.sts_endpoint, SCHEMES)


@lru_cache(maxsize=16)
def regions(service: str) -> frozenset[str]:
    """The regions of all AWS partitions with a service, according to this botocore version."""
    session = _session()
    return frozenset(
        region
        for partition in session.get_available_partitions()
        for region in session.get_available_regions(service, partition_name=partition)
    )


def aws_client(
    service: str,
    region: str,
    endpoint: str | None = None,
    *,
    keys: Keys | None = None,
    role: Role | None = None,
    own_identity: bool = False,
    connect_timeout: float = CONNECT_SECONDS,
    read_timeout: float = READ_SECONDS,
    attempts: int = 1,
    bucket_in_host: bool = False,
) -> BaseClient:
    """A client without redirects, proxies or, by default, retries; timeouts are in seconds.

    Raises Invalid for an unknown region or a malformed endpoint. Its calls raise botocore's exceptions, but Invalid for
    an address that the server must not connect to, ProviderUnavailable if no connection was made, ProviderTimeout for
    an incomplete response, ResponseTooLarge, and ProviderBusy instead of a large response. Without keys it is anonymous
    or, with `own_identity`, uses botocore's default chain, which may call this machine's metadata service. Reuse the
    client: it is thread-safe, and creating one takes longer than a call.
    """
    check_region(service, region, endpoint)
    if endpoint:
        parse_endpoint(endpoint, SCHEMES)
    timeouts = Timeouts(connect_timeout, read_timeout)
    session = _session()
    config = _config(endpoint, timeouts, attempts, bucket_in_host)
    if role:
        sts = _sts_client(region, role, keys, own_identity, timeouts)
        session.register_component("credential_provider", CredentialResolver([_AssumedRole(sts, role)]))
    elif keys:
        session.set_credentials(keys.access_key_id, keys.secret_access_key, keys.session_token)
    elif not own_identity:
        config = config.merge(Config(signature_version=UNSIGNED))
    client = session.create_client(service, region_name=region, endpoint_url=endpoint, config=config)
    sender = CheckedSession(trusted=not endpoint, timeout=timeouts, verify=_trust(session), **SENDING)
    client.meta.events.register_first("before-send", sender.answer)
    if endpoint:
        client.meta.events.register("before-call.s3", _ask_no_other_region)
    return client


def _ask_no_other_region(context: dict[str, Any], **_: object) -> None:
    """Do not follow redirects: S3's client would look up the bucket's region, in an endless loop if redirected."""
    context.get("s3_redirect", {})["redirected"] = True


class Timeouts(NamedTuple):
    """Seconds."""

    connect: float
    read: float


def _sts_client(region: str, role: Role, keys: Keys | None, own_identity: bool, timeouts: Timeouts) -> BaseClient:
    """The client that gets a role's keys: in the service's region, or in us-east-1 if that has no STS."""
    sts_region = region if region in regions("sts") else "us-east-1"
    return aws_client(
        "sts",
        sts_region,
        role.sts_endpoint,
        keys=keys,
        own_identity=own_identity,
        connect_timeout=timeouts.connect,
        read_timeout=timeouts.read,
    )


def _config(endpoint: str | None, timeouts: Timeouts, attempts: int, bucket_in_host: bool) -> Config:
    return Config(
        connect_timeout=timeouts.connect,
        read_timeout=timeouts.read,
        retries={"total_max_attempts": attempts, "mode": "standard"},
        proxies={},
        ignore_configured_endpoint_urls=True,
        inject_host_prefix=not endpoint,
        # With virtual addressing the bucket would become part of a host that is not configured.
        s3={"addressing_style": "virtual" if bucket_in_host else "path"} if endpoint else None,
        request_checksum_calculation="when_required",  # storages other than AWS's lack the newer checksums
        response_checksum_validation="when_required",
    )


class CheckedSession(URLLib3Session):
    """botocore's HTTP session, on checked connections."""

    def __init__(self, *, trusted: bool, **options: Any) -> None:
        super().__init__(**options)
        self._manager.pool_classes_by_scheme = TRUSTED_POOLS if trusted else POOLS

    def _get_ssl_context(self) -> SSLContext:
        context: SSLContext = super()._get_ssl_context()
        context.sslsocket_class = timed_sockets.TimedTLSSocket
        return context

    def answer(self, request: AWSPreparedRequest, **_: object) -> AWSResponse:
        """Send a request. Raises botocore's exceptions, which the client retries, and ours, which it does not."""
        require_time()
        began = monotonic()
        try:
            return self.send(request)
        except HTTPClientError as failure:
            refused = failure.kwargs.get("error")
            if isinstance(refused, MetalakeError | ResponseTooLarge):
                raise refused from None
            if monotonic() - began >= timed_sockets.ANSWER_SECONDS:
                host = urlsplit(request.url).netloc
                message = f"The answer of {host} was not whole after {timed_sockets.ANSWER_SECONDS:g} seconds."
                raise ProviderTimeout(message, kind="catalog") from None
            raise


class _Checked:
    """A mixin that connects urllib3 to checked addresses; TLS still verifies the requested host name."""

    trusted = False
    _dns_host: str
    port: int
    timeout: float
    socket_options: list[tuple[int, int, int]] | None
    sock: timed_sockets.TimedSocket | timed_sockets.TimedTLSSocket | None

    def request(self, *given: Any, **named: Any) -> None:
        if self.sock is not None:  # else `request` connects
            self.sock.until = monotonic() + timed_sockets.ANSWER_SECONDS
        super().request(*given, **named)  # type: ignore[misc]

    def _new_conn(self) -> timed_sockets.TimedSocket:
        connection = timed_sockets.timed(connect(self._dns_host, self.port, seconds=self.timeout, trusted=self.trusted))
        for option in self.socket_options or ():
            connection.setsockopt(*option)
        sys.audit("http.client.connect", self, self._dns_host, self.port)
        return connection


class _CheckedHTTP(_Checked, AWSHTTPConnection):
    pass


class _CheckedHTTPS(_Checked, AWSHTTPSConnection):
    pass


class _TrustedHTTPS(_CheckedHTTPS):
    trusted = True


class _Bounded:
    """A mixin for urllib3's pools that follows no redirects and limits the response size."""

    host: str
    port: int

    def urlopen(self, *args: Any, **options: Any) -> Any:
        response = super().urlopen(*args, **options | {"redirect": False})  # type: ignore[misc]
        response.stream = partial(_weighed, ResponseBudget(f"{self.host}:{self.port}"), response.stream)
        return response


def _weighed(scale: ResponseBudget, stream: Callable[[int], Iterator[bytes]]) -> Iterator[bytes]:
    """The body in chunks. Raises ResponseTooLarge and ProviderBusy."""
    for chunk in stream(CHUNK):
        scale.add(len(chunk) + PART * sum(map(chunk.count, BEGINNINGS)))
        yield chunk


class _HTTPPool(_Bounded, AWSHTTPConnectionPool):
    ConnectionCls = _CheckedHTTP


class _HTTPSPool(_Bounded, AWSHTTPSConnectionPool):
    ConnectionCls = _CheckedHTTPS


class _TrustedPool(_Bounded, AWSHTTPSConnectionPool):
    ConnectionCls = _TrustedHTTPS


POOLS = {"http": _HTTPPool, "https": _HTTPSPool}
TRUSTED_POOLS = {"https": _TrustedPool}


class _AssumedRole:
    """A botocore credential provider that gets keys from STS on demand and renews them before they expire."""

    METHOD = CANONICAL_NAME = "assumed-role"

    def __init__(self, sts: BaseClient, role: Role) -> None:
        self._sts = sts
        self._asked = {"RoleArn": role.arn, "RoleSessionName": role.session_name}
        if role.external_id:
            self._asked["ExternalId"] = role.external_id

    def load(self) -> Credentials:
        return DeferredRefreshableCredentials(self._fetch, self.METHOD)

    def _fetch(self) -> dict[str, str]:
        given = self._sts.assume_role(**self._asked)["Credentials"]
        return {
            "access_key": given["AccessKeyId"],
            "secret_key": given["SecretAccessKey"],
            "token": given["SessionToken"],
            "expiry_time": given["Expiration"].isoformat(),
        }


@lru_cache(maxsize=1)
def _loader() -> Any:
    return create_loader()


def description(service: str) -> Any:
    """botocore's model of the service's API."""
    return _loader().load_service_model(service, "service-2")


def _session() -> Session:
    session = Session()
    session.register_component("data_loader", _loader())  # reading the service models takes longest
    return session


def _trust(session: Session) -> bool | str:
    """The certificate authorities that botocore would use: an operator may have private ones."""
    return session.get_config_variable("ca_bundle") or True
