"""The crawler of AWS Glue. Requires boto3 on the executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import boto3
from botocore import exceptions as aws
from botocore.config import Config

from pipelines.crawlers.systems import Entry, Gone, Json, Unavailable, patiently

PAGE = 100  # Glue's maximum
CONNECT_SECONDS, ANSWER_SECONDS = 3.0, 10.0
BUSY = ("Throttl", "TooManyRequests", "RequestLimitExceeded", "SlowDown", "LimitExceeded")


def crawler(properties: Mapping[str, str], patience: float) -> Glue:
    return Glue(properties, patience)


class Glue:
    """One task reads a whole database, since GetTables pages by token."""

    def __init__(self, properties: Mapping[str, str], patience: float) -> None:
        self._patience = patience
        self._client = _client(properties)
        catalog = properties.get("aws-glue-catalog-id")
        self._catalog = {"CatalogId": catalog} if catalog else {}

    def parts(self, schema: str) -> list[list[str] | None]:
        return [None]

    def read(self, schema: str, names: Sequence[str] | None) -> Iterator[list[Entry]]:
        if names is not None:
            return
        if schema:
            call, what, given = self._client.get_tables, "TableList", {"DatabaseName": schema}
        else:
            call, what, given = self._client.get_databases, "DatabaseList", {}
        token: Json = {}
        while True:
            answer = self._call(call, {**self._catalog, **given, "MaxResults": PAGE, **token})
            yield [_entry(entry, is_table=bool(schema)) for entry in answer[what]]
            if not answer.get("NextToken"):
                return
            token = {"NextToken": answer["NextToken"]}

    def close(self) -> None:
        self._client.close()

    def _call(self, call: Callable[..., Json], given: Json) -> Json:
        return patiently(lambda: _once(call, given), self._patience)


def _client(properties: Mapping[str, str]) -> Any:
    region = properties["aws-region"]
    keys = _keys(
        properties.get("aws-access-key-id"),
        properties.get("aws-secret-access-key"),
        properties.get("aws-session-token"),
    )
    settings = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=ANSWER_SECONDS,
        retries={"total_max_attempts": 1, "mode": "standard"},
        proxies={},
        ignore_configured_endpoint_urls=True,
    )
    session = boto3.session.Session()
    if role := properties.get("aws-role-arn"):
        sts = session.client(
            "sts", region_name=region, endpoint_url=properties.get("aws-sts-endpoint"), config=settings, **keys
        )
        keys = _keys_of_role(sts, role, properties)
    endpoint = properties.get("aws-glue-endpoint")
    return session.client("glue", region_name=region, endpoint_url=endpoint, config=settings, **keys)


def _keys_of_role(sts: Any, role: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The role's temporary keys; they are valid for an hour, longer than a task's crawler lives."""
    asked = {"RoleArn": role, "RoleSessionName": properties.get("aws-role-session-name", "metalake")}
    if external := properties.get("aws-external-id"):
        asked["ExternalId"] = external
    given = _once(sts.assume_role, asked)["Credentials"]
    return _keys(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])


def _keys(access: str | None, secret: str | None, token: str | None) -> dict[str, str]:
    """Client arguments; empty without keys, so that botocore uses the machine's ambient credentials."""
    if not (access and secret):
        return {}
    keys = {"aws_access_key_id": access, "aws_secret_access_key": secret}
    return keys | ({"aws_session_token": token} if token else {})


def _once(call: Callable[..., Json], given: Json) -> Json:
    try:
        return call(**given)
    except aws.ClientError as refusal:
        code = str(refusal.response.get("Error", {}).get("Code", ""))
        status = refusal.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if code == "EntityNotFoundException":
            raise Gone from None
        is_passing = code.startswith(BUSY) or status == 429 or status >= 500
        message = f"AWS refused {refusal.operation_name} ({code or 'no reason given'})."
        raise Unavailable(message, is_final=not is_passing) from None
    except (aws.NoCredentialsError, aws.PartialCredentialsError, aws.CredentialRetrievalError):
        message = "There are no AWS credentials where the tasks run: set the variables that --secrets names."
        raise Unavailable(message, is_final=True) from None
    except aws.BotoCoreError as failure:
        raise Unavailable(f"AWS Glue did not answer ({type(failure).__name__}).") from None


def _entry(entry: Mapping[str, Any], *, is_table: bool) -> Entry:
    """An entry; only tables have versions in Glue, for the rest the server detects changes."""
    described = {name: _json(value) for name, value in entry.items()}
    version = str(entry.get("VersionId") or "") if is_table else ""
    return Entry(entry["Name"], described, described.get("CreateTime") or "", version)


def _json(value: Any) -> Any:
    """JSON with times in UTC, the same on every machine."""
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat()
        case dict():
            return {name: _json(one) for name, one in value.items()}
        case list():
            return [_json(one) for one in value]
    return value
