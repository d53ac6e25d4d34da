"""The native wire's endpoints of grants as code; parsing and shape only."""

from __future__ import annotations

from typing import IO, Any

from django.http import HttpResponse
from rest_framework.parsers import BaseParser

from authz.actor import Actor
from authz.plans import applying, planning
from authz.plans import file as plan_file
from authz.plans.exporting import export
from authz.plans.wanted import Wanted
from authz.wire import plans as wire
from metalake.rest.declarations import Declaration
from metalake.rest.parsers import plain_type
from metalake.rest.views import Endpoint, answers

YAML = "application/yaml"


class Export(Endpoint):
    @answers("grant_on", reply={"access": wire.AccessReply}, query=("type", "fullName"), id="exportAccess")
    def get(self, actor: Actor, metalake: str) -> dict[str, Any] | HttpResponse:
        """Write down all grants of the metalake, or of an object and all below it, in the form that a plan takes.

        The whole metalake asks to read every role, an object to grant on it. Accept: application/yaml answers the file.
        """
        state = export(actor, metalake, self.place())
        if YAML in self.request.META.get("HTTP_ACCEPT", ""):
            return HttpResponse(plan_file.as_yaml(state), content_type=f"{YAML}; charset=utf-8")
        return {"access": plan_file.as_data(state)}


class FileParser(BaseParser):
    """A file of wanted grants, YAML or JSON."""

    media_type = YAML

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Wanted:
        """Raises Invalid with the place of the mistake, TooLarge."""
        return plan_file.read_sent(plain_type(media_type), stream.read())


class Plan(Endpoint):
    parser_classes = [FileParser]

    def read_body(self, declaration: Declaration) -> Wanted:
        return self.read_data()

    @answers("load_metalake", body=plan_file.AccessFile, reply={"plan": wire.PlannedReply}, id="planAccess")
    def post(self, actor: Actor, metalake: str, body: Wanted) -> dict[str, Any]:
        """Tell what leads from the present grants to those of a file, and who gains and loses by it; changes nothing.

        Asks what every change asks. The body is JSON, or YAML with Content-Type: application/yaml.
        """
        return {"plan": wire.planned_reply(planning.plan(actor, metalake, body))}


class Apply(Endpoint):
    @answers("load_metalake", body=wire.ApplyRequest, reply={"applied": wire.AppliedReply}, id="applyAccess")
    def post(self, actor: Actor, metalake: str, body: wire.ApplyRequest) -> dict[str, Any]:
        """Make the changes of a plan, all or none; refused where rights changed since it was made."""
        made = applying.apply_plan(actor, metalake, body.token)
        return {"applied": {"changes": list(map(wire.change_reply, made))}}
