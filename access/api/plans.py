"""The native wire's endpoints of grants as code; parsing and shape only."""

from __future__ import annotations

from typing import IO, Any

from django.http import HttpResponse
from rest_framework.parsers import BaseParser

from access.plans import apply, blast_radius, plan, plan_file, proposals, removals, undo
from access.plans.desired import Change, Wanted
from access.plans.export import export
from access.plans.plan_file import YAML, AccessFile, ChangesFile
from access.wire import plans as wire
from authz.actor import Actor
from metalake.rest.declarations import Declaration
from metalake.rest.parsers import plain_type
from metalake.rest.views import Endpoint, answers


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
    model: type[AccessFile | ChangesFile] = AccessFile

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        """What is wanted. Raises Invalid with the place of the mistake, TooLarge."""
        return plan_file.read_file(stream.read(), plain_type(media_type), self.model)


class ChangesParser(FileParser):
    """A list of changes, YAML or JSON."""

    model = ChangesFile


class _Planning(Endpoint):
    def read_body(self, declaration: Declaration) -> Any:
        return self.read_data()


class Plan(_Planning):
    parser_classes = [FileParser]

    @answers("load_metalake", body=AccessFile, reply={"plan": wire.PlannedReply}, id="planAccess")
    def post(self, actor: Actor, metalake: str, body: Wanted) -> dict[str, Any]:
        """Tell what leads from the present grants to those of a file, and who gains and loses by it; changes nothing.

        Asks what every change asks. The body is JSON, or YAML with Content-Type: application/yaml.
        """
        return {"plan": wire.planned_reply(plan.plan(actor, metalake, body))}


class Changes(_Planning):
    parser_classes = [ChangesParser]

    @answers("load_metalake", body=ChangesFile, reply={"plan": wire.PlannedReply}, id="planAccessChanges")
    def post(self, actor: Actor, metalake: str, body: list[Change]) -> dict[str, Any]:
        """Plan these changes and no others, and tell who gains and loses by them; changes nothing.

        Asks what every change asks. The body is JSON, or YAML with Content-Type: application/yaml.
        """
        return {"plan": wire.planned_reply(plan.plan_changes(actor, metalake, body))}


class Apply(Endpoint):
    @answers("load_metalake", body=wire.TokenRequest, reply={"applied": wire.AppliedReply}, id="applyAccess")
    def post(self, actor: Actor, metalake: str, body: wire.TokenRequest) -> dict[str, Any]:
        """Make the changes of a plan, all or none.

        Where rights changed since it was made, a plan of a state is refused; a plan of changes is made again and
        refused if it comes to something else.
        """
        applied = apply.apply_plan(actor, metalake, body.token)
        return {"applied": wire.applied_reply(applied)}


class Undo(Endpoint):
    @answers("load_metalake", body=wire.TokenRequest, reply={"plan": wire.PlannedReply}, id="undoAccess")
    def post(self, actor: Actor, metalake: str, body: wire.TokenRequest) -> dict[str, Any]:
        """Plan the inverse of a plan that the caller applied within the last hour; changes nothing.

        What moved since it was applied stays as it is, and `left` says what that is.
        """
        return {"plan": wire.planned_reply(undo.plan_undo(actor, metalake, body.token))}


class Proposals(Endpoint):
    @answers("load_metalake", body=wire.WishRequest, reply={"proposal": wire.ProposalReply}, id="proposeAccess")
    def post(self, actor: Actor, metalake: str, body: wire.WishRequest) -> dict[str, Any]:
        """Propose by which role people are given privileges on an object, with a plan that does it; changes nothing.

        Takes the right to grant there. Who may not assign roles is told whom to ask.
        """
        proposal = proposals.propose(actor, metalake, body.access_request())
        return {"proposal": wire.proposal_reply(proposal)}


class Removals(Endpoint):
    @answers("load_metalake", body=wire.RemovalRequest, reply={"removal": wire.RemovalReply}, id="removeAccess")
    def post(self, actor: Actor, metalake: str, body: wire.RemovalRequest) -> dict[str, Any]:
        """Plan to take away somebody's access to an object and all below it, or to lift a DENY; changes nothing.

        Takes the right to grant there, and for each change what it asks by itself.
        """
        removal = removals.remove_access(actor, metalake, *body.asked())
        planned = plan.plan_changes(actor, metalake, removal.changes, budget=blast_radius.PREVIEW)
        return {"removal": wire.removal_reply(removal, planned)}
