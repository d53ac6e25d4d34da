"""Version, configuration, health and metrics, for monitoring and for clients that connect.

None needs a credential, and none reveals a user or object to callers without one.
"""

from __future__ import annotations

import hmac
import json
import subprocess
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import Error
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from rest_framework.permissions import AllowAny
from rest_framework.request import Request

from metalake.errors import Unauthenticated
from metalake.metrics import NAMES, STORED, Figures, registries
from metalake.models import Outbox
from metalake.rest.exceptions import error_response
from metalake.rest.views import Endpoint, answers
from server.readiness import checks

WIRE_VERSION = "1.3.1"  # of the native wire: its clients refuse a server older than themselves


@lru_cache
def commit() -> str:
    """The commit of this server's checkout, or "unknown"."""
    try:
        result = subprocess.run(
            ["git", "rev-parse", "HEAD"],  # noqa: S607 (whichever git there is)
            cwd=settings.BASE_DIR,
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except OSError:
        return "unknown"
    return result.stdout.strip() or "unknown"


class OpenEndpoint(Endpoint):
    """An endpoint without authentication."""

    permission_classes = [AllowAny]

    def perform_authentication(self, request: Request) -> None:
        pass


class Version(OpenEndpoint):
    @answers("anyone", reply={"version": dict[str, str]}, id="getVersion")
    def get(self, actor: None) -> dict[str, Any]:
        """The version of the wire, and of this server."""
        started = _started.strftime("%d/%m/%Y %H:%M:%S")
        return {"version": {"version": WIRE_VERSION, "compileDate": started, "gitCommit": commit()}}


_started = timezone.now()


class Live(OpenEndpoint):
    @answers("anyone", reply={"status": str, "checks": list}, id="livenessCheck")
    def get(self, actor: None) -> dict[str, Any]:
        """Whether the process answers."""
        return {"status": "UP", "checks": []}


class Ready(OpenEndpoint):
    @answers("anyone", reply={"status": str, "checks": list}, id="readinessCheck")
    def get(self, actor: None) -> dict[str, Any] | HttpResponse:
        """Whether requests can be served; 503 if not, with what is wrong."""
        results = checks()
        if all(check["status"] != "DOWN" for check in results):
            return {"status": "UP", "checks": results}
        body = json.dumps({"code": 0, "status": "DOWN", "checks": results})
        return HttpResponse(body, status=503, content_type="application/json")


class Configs(Endpoint):
    """Responds without the envelope; an authenticated caller also gets the service administrators."""

    permission_classes = [AllowAny]

    def perform_authentication(self, request: Request) -> None:
        if "HTTP_AUTHORIZATION" in request.META:
            super().perform_authentication(request)
            if self.actor is None:
                raise Unauthenticated

    @answers("anyone", id="getConfigs")
    def get(self, actor: None) -> HttpResponse:
        """The settings of this server that clients need."""
        authorization = settings.METALAKE_AUTHORIZATION == "on"
        body = {
            "gravitino.authenticators": list(settings.METALAKE_AUTHENTICATORS),
            "gravitino.authorization.enable": authorization,
            "gravitino.schema.separator": settings.METALAKE_SCHEMA_SEPARATOR,
        }
        if authorization and self.actor:
            body["gravitino.authorization.serviceAdmins"] = ",".join(sorted(settings.METALAKE_SERVICE_ADMINS))
        return HttpResponse(json.dumps(body), content_type="application/json")


def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus metrics, labelled with ids; with the token also the metrics that map ids to names.

    While the database is down, only that fact and the metrics that need no database.
    """
    given = request.META.get("HTTP_AUTHORIZATION")
    if given is not None and not _is_scraper(given):
        refusal = error_response(Unauthenticated("Send METALAKE_METRICS_TOKEN as a bearer token, or no credential."))
        refusal["WWW-Authenticate"] = 'Bearer realm="Metalake metrics"'
        return refusal
    collectors = [*_database_collectors(named=given is not None), *registries()]
    return HttpResponse(b"".join(map(generate_latest, collectors)), content_type=CONTENT_TYPE_LATEST)


def _database_collectors(named: bool) -> list[Collector]:
    up = GaugeMetricFamily("metalake_database_up", "Whether the database answered this request", value=1)
    try:
        rows = GaugeMetricFamily("metalake_outbox_rows", "Follow-ups that wait", value=Outbox.objects.count())
    except Error:
        up = GaugeMetricFamily(up.name, up.documentation, value=0)
        return [Figures(up)]  # each of the others would wait for the database again
    return [Figures(up, rows), STORED, *([NAMES] if named else [])]


def _is_scraper(header: str) -> bool:
    scheme, _, token = header.partition(" ")
    expected = settings.METALAKE_METRICS_TOKEN
    matches = hmac.compare_digest(token.strip().encode(), expected.encode())
    return bool(expected) and scheme.lower() == "bearer" and matches
