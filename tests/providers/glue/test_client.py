"""How Glue is reached: its settings, credentials, refusals and silences."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

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
    as_json,
    from_json,
)
from metalake.kinds import Kind
from providers.glue import client as glue_client
from providers.glue.provider import GlueProvider
from providers.remote_objects import Remote
from tests.cases import each
from tests.glue import ANY, Fault, Glue
from tests.ports import free_port
from tests.providers.glue_catalogs import provider_on, settings
from tests.waiting import eventually

ROLE = "arn:aws:iam::210987654321:role/reader"


@pytest.fixture
def provider(glue: Glue) -> GlueProvider:
    glue.create_bucket("lake")
    return provider_on(glue)


def create(provider: GlueProvider) -> Remote:
    return provider.schemas.create(["flights"], provider.schemas.draft(None, {}))


def names(glue: Glue) -> list[str]:
    return [one["Name"] for one in glue.client().get_databases()["DatabaseList"]]


def refusal(act: Callable[..., Any], *arguments: Any) -> MetalakeError:
    """What a call raises, which tells no secret."""
    with pytest.raises(MetalakeError) as refused:
        act(*arguments)
    assert "wJalr" not in refused.value.message and "AKIA" not in refused.value.message
    assert "Signature=" not in refused.value.message
    return refused.value


# Settings


@each(
    "changed, said",
    [
        ({"aws-region": ""}, "'aws-region'"),
        ({"aws-region": "", "region": "us-east-1"}, "'aws-region'"),
        ({"aws-region": "us-esat-1", "aws-glue-endpoint": ""}, "or us-east-1"),
        ({"aws-region": "US_EAST"}, "'aws-region': 'US_EAST' is not a region"),
        ({"aws-regoin": "us-east-1"}, "did you mean 'aws-region'"),
        ({"s3-access-key-id": "AKIA"}, "did you mean 's3.access-key-id'"),
        ({"s3-region": "eu-west-1"}, "did you mean 's3.region'"),
        ({"aws-secret-access-key": ""}, "'aws-secret-access-key' is missing"),
        ({"aws-access-key-id": ""}, "'aws-access-key-id' is missing"),
        (
            {"aws-access-key-id": "", "aws-secret-access-key": "", "aws-session-token": "t"},
            "'aws-session-token' belongs to keys",
        ),
        ({"aws-external-id": "x12"}, "'aws-role-arn' is missing"),
        ({"aws-role-arn": "reader"}, "no role's ARN"),
        ({"aws-role-arn": ROLE, "aws-role-session-name": "a b"}, "session name"),
        ({"aws-glue-catalog-id": "my account"}, "12 digits"),
        ({"aws-glue-endpoint": "file:///etc/passwd"}, "'aws-glue-endpoint': The URL is not usable"),
        ({"aws-glue-endpoint": "http://169.254.169.254/latest"}, "cloud metadata"),
        ({"aws-glue-endpoint": "http://10.0.0.1"}, "private address"),
        ({"aws-sts-endpoint": "gopher://sts"}, "'aws-sts-endpoint'"),
        ({"s3.endpoint": "http://169.254.169.254"}, "'s3.endpoint'"),
        ({"table-type-filter": "hive,csv"}, "'csv' is none of"),
        ({"table-type-filter": "hive", "table-format-filter": "delta"}, "are one"),
        ({"default-table-format": "delta"}, "'default-table-format'"),
        ({"warehouse": "lake"}, "Location 'lake'"),
        ({"allowed-locations": "s3://lake/a, s3://lake/b?x"}, "query"),
        ({"cache-ttl": "soon"}, "'cache-ttl'"),
    ],
)
def test_what_is_wrong_with_settings_is_said(glue: Glue, changed: dict[str, str], said: str) -> None:
    glue.calls.clear()
    assert said in refusal(GlueProvider.check, settings(glue) | changed).message
    assert glue.calls == []


def test_local_places_and_unknown_hosts_are_not_registered(glue: Glue, monkeypatch: pytest.MonkeyPatch) -> None:
    local = GlueProvider(1, settings(glue, warehouse="file:///tmp/lake"))
    assert isinstance(refusal(local.check_locations), Invalid)
    assert provider_on(glue, allowed_locations="s3a://lake/b/").locations() == ["s3://lake/warehouse", "s3://lake/b"]

    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    elsewhere = GlueProvider(1, settings(glue) | {"aws-glue-endpoint": "https://glue.lan"})
    refused = refusal(elsewhere.test_connection)
    assert isinstance(refused, Invalid) and "Unknown host glue.lan" in refused.message


def test_secrets_are_declared(glue: Glue) -> None:
    assert GlueProvider.settings.secrets() >= {"aws-access-key-id", "aws-secret-access-key", "aws-session-token"}
    assert "wJalr" not in repr(GlueProvider.check(settings(glue)))


# Credentials


def test_a_role_is_assumed(provider: GlueProvider, glue: Glue) -> None:
    create(provider)
    given = {"aws_role_arn": ROLE, "aws_external_id": "x-12", "aws_role_session_name": "nightly"}
    reader = provider_on(glue, aws_sts_endpoint=glue.endpoint, **given)
    assert reader.schemas.list().items == [], "the role is of another account"
    assert provider.schemas.list().items != []
    asked = [parameters for operation, parameters in glue.calls if operation == "AssumeRole"]
    assert len(asked) == 1
    assert asked[0]["RoleArn"] == ROLE
    assert (asked[0]["ExternalId"], asked[0]["RoleSessionName"]) == ("x-12", "nightly")
    assert reader.io.properties["s3.session-token"] == reader.glue.credentials().token


@pytest.mark.parametrize("fault", [Fault.ERROR, Fault.THROTTLED, Fault.EXPIRED, Fault.REPLY_LOST])
def test_without_the_role_nothing_was_written(glue: Glue, fault: Fault) -> None:
    reader = provider_on(glue, aws_sts_endpoint=glue.endpoint, aws_role_arn=f"{ROLE}-{fault.name}")
    glue.fail("AssumeRole", fault)
    assert isinstance(refusal(create, reader), ProviderUnavailable)
    assert "CreateDatabase" not in [operation for operation, _ in glue.calls]
    create(reader)


def test_a_session_token_goes_along(glue: Glue) -> None:
    temporary = provider_on(glue, aws_session_token="IQoJb3JpZ2lu")
    assert temporary.glue.credentials().token == "IQoJb3JpZ2lu"
    assert temporary.io.properties["s3.session-token"] == "IQoJb3JpZ2lu"
    own = GlueProvider(1, settings(glue) | {"s3.access-key-id": "minio", "s3.secret-access-key": "minio-secret"})
    assert own.io.properties["s3.access-key-id"] == "minio" and "s3.session-token" not in own.io.properties


def test_the_servers_own_identity_is_used_without_keys(
    glue: Glue, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Any
) -> None:
    settings.METALAKE_OWN_IDENTITY = ("glue://server/us-east-1", glue.endpoint)
    glue_client._client.cache_clear()
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    keyless = provider_on(glue, aws_access_key_id="", aws_secret_access_key="")
    refused = refusal(keyless.test_connection)
    assert isinstance(refused, ProviderUnavailable) and not refused.retryable and "region" not in refused.message
    assert "no AWS credentials" in refused.message
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", glue.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", glue.secret_key)
    keyless.test_connection()
    glue_client._client.cache_clear()


# Silences


@pytest.mark.parametrize(
    ("fault", "read", "write", "is_written"),
    [
        (Fault.ERROR, ProviderUnavailable, OutcomeUnknown, False),
        (Fault.THROTTLED, ProviderBusy, ProviderBusy, False),
        (Fault.EXPIRED, ProviderUnavailable, ProviderUnavailable, False),
        (Fault.REQUEST_LOST, ProviderUnavailable, OutcomeUnknown, False),
        (Fault.REPLY_LOST, ProviderUnavailable, OutcomeUnknown, True),
    ],
)
def test_what_a_failure_leaves_open(
    provider: GlueProvider, glue: Glue, fault: Fault, read: type, write: type, is_written: bool
) -> None:
    provider.test_connection()
    glue.fail(ANY, fault)
    refused = refusal(provider.schemas.list)
    assert type(refused) is read
    assert isinstance(refused, ProviderUnavailable) and refused.retryable is (fault is not Fault.EXPIRED)
    glue.fail("CreateDatabase", fault)
    assert type(refusal(create, provider)) is write
    assert names(glue) == (["flights"] if is_written else [])


def test_an_answer_that_is_late_is_none(glue: Glue, monkeypatch: pytest.MonkeyPatch) -> None:
    glue_client._client.cache_clear()
    monkeypatch.setattr(glue_client, "aws_client", partial(glue_client.aws_client, read_timeout=1))
    hasty = provider_on(glue)
    glue.fail("GetDatabases", Fault.REPLY_LATE)
    assert type(refusal(hasty.schemas.list)) is ProviderTimeout
    glue.fail("CreateDatabase", Fault.REPLY_LATE)
    assert type(refusal(create, hasty)) is OutcomeUnknown
    assert eventually(lambda: names(glue) == ["flights"])
    glue.fail("DeleteDatabase", Fault.REQUEST_LATE)
    identity = provider_on(glue).schemas.load(["flights"]).identity
    assert type(refusal(hasty.schemas.drop, ["flights"], identity)) is OutcomeUnknown
    assert names(glue) == ["flights"]
    glue.let_through()
    assert eventually(lambda: names(glue) == [])
    glue_client._client.cache_clear()


def test_a_refused_connection_wrote_nothing(glue: Glue) -> None:
    nowhere = provider_on(glue, aws_glue_endpoint=f"http://127.0.0.1:{free_port()}")
    for act in (nowhere.schemas.list, nowhere.test_connection, partial(create, nowhere)):
        refused = refusal(act)
        assert type(refused) is ProviderUnavailable and refused.retryable
        assert "the connection was refused" in refused.message


# Refusals


class Refusing:
    """In the place of a client: every call is refused alike."""

    def __init__(self, code: str, message: str, status: int) -> None:
        answer: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
        self.answer = answer

    def __getattr__(self, name: str) -> Any:
        operation = "".join(word.capitalize() for word in name.split("_"))

        def refuse(**_: Any) -> Any:
            raise ClientError(self.answer, operation)

        return refuse

    def _get_credentials(self) -> Any:
        class Credentials:
            def get_frozen_credentials(self) -> None:
                pass

        return Credentials()


@pytest.mark.parametrize(
    ("code", "message", "status", "read", "write", "said"),
    [
        ("ThrottlingException", "Rate exceeded", 400, ProviderBusy, ProviderBusy, "throttles"),
        ("TooManyRequestsException", "", 429, ProviderBusy, ProviderBusy, "throttles"),
        ("Slow", "", 429, ProviderBusy, ProviderBusy, "throttles"),
        ("UnrecognizedClientException", "", 400, ProviderUnavailable, ProviderUnavailable, "does not know these"),
        ("ExpiredTokenException", "", 400, ProviderUnavailable, ProviderUnavailable, "have expired"),
        (
            *("InvalidSignatureException", "Credential should be scoped to a valid region.", 400),
            *(ProviderUnavailable, ProviderUnavailable, "another region"),
        ),
        ("AccessDeniedException", "User: AKIA...", 400, ProviderUnavailable, ProviderUnavailable, "permission glue:"),
        (
            *("AccessDeniedException", "Insufficient Lake Formation permission(s)", 400),
            *(ProviderUnavailable, ProviderUnavailable, "Lake Formation"),
        ),
        ("EntityNotFoundException", "", 400, NotFound, NotFound, "does not exist"),
        ("AlreadyExistsException", "", 400, AlreadyExists, AlreadyExists, "already exists"),
        ("ConcurrentModificationException", "", 400, Conflict, Conflict, "changed meanwhile"),
        ("InvalidInputException", "bad\n  name", 400, Invalid, Invalid, "bad name"),
        ("ValidationException", "x" * 9000, 400, Invalid, Invalid, "xxx"),
        ("ResourceNumberLimitExceededException", "10000 databases", 400, TooLarge, TooLarge, "quota"),
        ("OperationTimeoutException", "", 400, ProviderUnavailable, OutcomeUnknown, "failed"),
        ("InternalServiceException", "", 500, ProviderUnavailable, OutcomeUnknown, "failed"),
        ("ServiceUnavailable", "", 503, ProviderUnavailable, OutcomeUnknown, "failed"),
        ("GlueEncryptionException", "", 400, ProviderUnavailable, ProviderUnavailable, "GlueEncryptionException"),
    ],
)
def test_what_a_refusal_means(
    glue: Glue,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    message: str,
    status: int,
    read: type,
    write: type,
    said: str,
) -> None:
    monkeypatch.setattr(glue_client, "_client", lambda *_: Refusing(code, message, status))
    provider = provider_on(glue)
    for act, wanted in ((partial(provider.glue.call, "GetDatabase", ["flights"]), read), (provider.schemas.list, read)):
        refused = refusal(act)
        assert type(refused) is wanted and said in refused.message and len(refused.message) < 400
    refused = refusal(partial(provider.glue.call, "CreateTable", ["flights", "delays"]))
    assert type(refused) is write and said in refused.message
    if code == "EntityNotFoundException":
        assert refused.kind == Kind.SCHEMA, "the table's place is missing"
    if code == "AccessDeniedException" and said == "permission glue:":
        assert "glue:CreateTable" in refused.message


def test_an_unknown_host_can_be_told_to_another_process(glue: Glue, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = provider_on(glue, aws_glue_endpoint=glue.endpoint.replace("127.0.0.1", "localhost"))
    provider.test_connection()
    glue_client._client.cache_clear()

    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    refused = refusal(create, provider)
    told = from_json(as_json(refused))
    assert type(told) is ProviderUnavailable and told.retryable and "Unknown host localhost" in told.message


def test_a_region_that_is_none_is_named_when_an_address_of_its_own_fails(glue: Glue) -> None:
    for region, hint in (("us-esat-1", "us-east-1"), ("mars", "is no AWS region of glue")):
        glue.fail("GetDatabases", Fault.ERROR, times=1)
        refused = refusal(provider_on(glue, aws_region=region).test_connection)
        assert hint in refused.message
