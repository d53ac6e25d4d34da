"""Job templates on the native wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from authz.actor import Actor
from jobs import wire
from jobs.replies import template_reply
from jobs.services import templates
from jobs.services.templates import Changes
from metalake.rest.views import Endpoint, answers

TEMPLATE = {"jobTemplate": wire.TemplateReply}


class JobTemplates(Endpoint):
    @answers(
        "list_job_templates",
        reply={"names": list[str] | None, "jobTemplates": list[wire.TemplateReply] | None},
        query=("details",),
    )
    def get(self, actor: Actor, metalake: str) -> dict[str, Any]:
        """List the job templates that the caller may use."""
        listed = templates.list_templates(actor, metalake)
        if self.flag("details"):
            return {"jobTemplates": [template_reply(template) for template in listed]}
        return {"names": [template.name for template in listed]}

    @answers("register_job_template", body=wire.RegisterRequest, reply={})
    def post(self, actor: Actor, metalake: str, body: wire.RegisterRequest) -> dict[str, Any]:
        """Register a job template; its files lie in places that the operator names."""
        asked = body.job_template
        templates.register(actor, metalake, asked.name, asked.job_type, asked.content(), asked.comment)
        return {}


class JobTemplate(Endpoint):
    @answers("load_job_template", reply=TEMPLATE)
    def get(self, actor: Actor, metalake: str, job_template: str) -> dict[str, Any]:
        """Load a job template."""
        return {"jobTemplate": template_reply(templates.load_template(actor, metalake, job_template))}

    @answers("alter_job_template", body=wire.TemplateUpdatesRequest, reply=TEMPLATE)
    def put(self, actor: Actor, metalake: str, job_template: str, body: wire.TemplateUpdatesRequest) -> dict[str, Any]:
        """Alter a job template; runs that are under way go on as they were started."""
        altered = templates.alter(actor, metalake, job_template, changes_of(body.updates))
        return {"jobTemplate": template_reply(altered)}

    @answers("drop_job_template", reply={"dropped": bool})
    def delete(self, actor: Actor, metalake: str, job_template: str) -> dict[str, Any]:
        """Delete a job template and its runs, once all of them have ended."""
        return {"dropped": templates.drop(actor, metalake, job_template)}


def changes_of(updates: Sequence[Any]) -> list[Changes]:
    return [_changes(update) for update in updates]


def _changes(update: Any) -> Changes:
    match update:
        case wire.RenameTemplate():
            return Changes(new_name=update.new_name)
        case wire.UpdateTemplateComment():
            return Changes(comment=update.new_comment, sets_comment=True)
    return Changes(job_type=update.new_template.action, content=update.new_template.changes())
