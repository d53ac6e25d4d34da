"""Changes of job templates and schedules, and making the system catalog: each is shown before it is made."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_safe

from authz import operations
from authz.actor import Actor
from frontend.confusables import spelled
from frontend.forms import job_templates as fields
from frontend.page_decorators import keeps_form, require, signed_in
from frontend.pages.catalogs import located
from frontend.proposals import Asked, Family, Fields, Proposal
from jobs.definition import changed_fields
from jobs.services import schedules, system, templates
from jobs.services.templates import Changes, Template
from metalake.errors import Conflict, Invalid
from metalake.kinds import Kind
from metalake.lineage import Located

REGISTER = operations.create_of(Kind.JOB_TEMPLATE)
ALTER, DROP = (operations.OPERATIONS[f"{verb}_job_template"] for verb in ("alter", "drop"))
LONGEST_SHOWN = 200  # characters of a part


@require_http_methods(["GET", "POST"])
@keeps_form
@signed_in
def change(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """Show what a change would do, or make it."""
    return CHANGES.answer(request, actor, located(actor, metalake_id, Kind.METALAKE))


@require_safe
@signed_in
def edit_template(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """The form of a new template, or of the one named `template`."""
    target = located(actor, metalake_id, Kind.METALAKE)
    asked = {key: str(value).replace("\x00", "") for key, value in request.GET.items()} | {"what": "register-template"}
    context: dict[str, Any] = {"target": target, "asked": asked, "back": _list(target, "templates")}
    if name := asked.get("template"):
        template = _own(request, actor, target, name, ALTER)
        texts = fields.as_text(template.content)
        left_out = [part for part in fields.parts_of(template.job_type) if part.name not in texts]
        asked |= {"what": "alter-template", "type": template.job_type, "version": _version(template), **texts}
        asked |= {"name": template.name, "comment": template.comment or ""}
        asked["left_out"] = ",".join(part.name for part in left_out)
        context |= {"template": template, "back": page_of(target, name), "left_out": [each.label for each in left_out]}
    else:
        require(request, REGISTER, target)
    return render(request, "frontend/jobs/template_form.html", context)


def _own(request: HttpRequest, actor: Actor, target: Located, name: str, operation: operations.Operation) -> Template:
    """A template that the actor may change. Raises NotFound, Forbidden, Invalid for a built-in one."""
    template = templates.load_template(actor, target.name, name)
    if template.located is None:
        raise Invalid(f"Job template {name} is built in: nobody changes it.", kind=fields.KIND)
    require(request, operation, template.located)
    return template


def _version(template: Template) -> str:
    """What changes with every alteration."""
    return str(template.row and (template.row.last_modified_time or template.row.create_time))


def register(request: HttpRequest, actor: Actor, target: Located, asked: Asked) -> Proposal:
    require(request, REGISTER, target)
    typed = fields.read_template(asked, asked.get("type", ""), {})
    content = typed.content()
    templates.check_new(target, typed.name, typed.job_type, content)
    return Proposal(
        title=f"Make job template {spelled(typed.name)}",
        says=[
            *(f"{part.label}: {_shown(content[part.name])}" for part in fields.PARTS if content.get(part.name)),
            "You own it. Others run it once they have use_job_template on it, and run_job.",
        ],
        button="Make the template",
        done=f"Job template {spelled(typed.name)} is made.",
        make=lambda: templates.register(actor, target.name, typed.name, typed.job_type, content, typed.comment),
        after=page_of(target, typed.name),
    )


def alter(request: HttpRequest, actor: Actor, target: Located, asked: Asked) -> Proposal:
    template = _own(request, actor, target, asked.get("template", ""), ALTER)
    if asked.get("version") != _version(template):
        raise Conflict("The template was altered in the meantime: open its form again.", kind=fields.KIND)
    texts = fields.as_text(template.content)
    unchanged = {name: value for name, value in template.content.items() if name not in texts}
    typed = fields.read_template(asked, template.job_type, unchanged)
    was = dict(template.content)
    now = {part.name: typed.content().get(part.name) for part in fields.parts_of(template.job_type)}
    content = {name: now.get(name, value) for name, value in was.items()} | {k: v for k, v in now.items() if v}
    says = [
        f"{part.label}: {_shown(was.get(part.name))} → {_shown(content.get(part.name))}"
        for part in fields.PARTS
        if part.name in changed_fields(_filled(was), _filled(content))
    ]
    changes = [Changes(job_type=template.job_type, content=content)] if says else []
    stops = templates.check_altered(template, typed.name, content)
    if (typed.comment or "") != (template.comment or ""):
        says.append(f"Comment: {_shown(template.comment)} → {_shown(typed.comment)}")
        changes.append(Changes(comment=typed.comment, sets_comment=True))
    if typed.name != template.name:
        says.append(f"It is called {spelled(typed.name)} from then on; its runs and schedules go with it.")
        changes.append(Changes(new_name=typed.name))
    if not changes:
        raise Invalid("Nothing of it was changed.", kind=fields.KIND)
    if stops and changes[0].content is not None:
        says.append(
            f"It has {_counted(stops, 'schedule')} at work: those of others stop until their owners start them again."
        )
    return Proposal(
        title=f"Change job template {spelled(template.name)}",
        says=says,
        button="Change the template",
        done=f"Job template {spelled(typed.name)} is changed.",
        make=lambda: templates.alter(actor, target.name, template.name, changes),
        after=page_of(target, typed.name),
    )


def _filled(content: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if value}


def drop(request: HttpRequest, actor: Actor, target: Located, asked: Asked) -> Proposal:
    template = _own(request, actor, target, asked.get("template", ""), DROP)
    runs, waiting = templates.gone_with(template)
    return Proposal(
        title=f"Drop job template {spelled(template.name)}",
        says=[
            f"{_counted(runs, 'run')} with the logs, and {_counted(waiting, 'schedule')}, go with it.",
            "This cannot be undone.",
        ],
        button="Drop the template",
        done=f"Job template {spelled(template.name)} is dropped.",
        make=lambda: templates.drop(actor, target.name, template.name),
        after=_list(target, "templates"),
        is_danger=True,
    )


def drop_schedule(request: HttpRequest, actor: Actor, target: Located, asked: Asked) -> Proposal:
    row = schedules.load(actor, target.name, asked.get("schedule", ""))
    who = "you" if row.user_id == actor.id else spelled(row.user.username)
    return Proposal(
        title=f"Delete schedule {spelled(row.name)}",
        says=[f"It starts no more runs of {spelled(row.template_name)} as {who}. Its runs stay, with their logs."],
        button="Delete the schedule",
        done=f"Schedule {spelled(row.name)} is deleted.",
        make=lambda: schedules.drop(actor, target.name, row.name),
        after=_list(target, "schedules"),
        is_danger=True,
    )


def make_system(request: HttpRequest, actor: Actor, target: Located, asked: Asked) -> Proposal:
    require(request, operations.CREATE_SYSTEM_CATALOG, target)
    system.require_free(actor, target)
    schemas = ", ".join(f"{system.CATALOG}.{name}" for name in system.SCHEMAS)
    return Proposal(
        title=f"Make the system catalog of {spelled(target.name)}",
        says=[
            f"Catalog {system.CATALOG} with {schemas}: jobs write what they find there. What exists already stays.",
            f"User {system.PRINCIPAL}, who cannot sign in, and its role {system.ROLE}: it writes there, nowhere else.",
            f"The owner of {spelled(target.name)} reads its tables, and whoever may read all tables of the metalake. "
            "The tables tell what everybody may do.",
        ],
        button="Make the system catalog",
        done="The system catalog is made: jobs can write their results.",
        make=lambda: system.create(actor, target.name),
        after=_list(target, "templates"),
    )


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) if value else "nothing"
    return spelled(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…") or "nothing"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def page_of(target: Located, name: str) -> str:
    """The page of a template."""
    return f"{reverse('frontend:start-job', args=[target.id])}?{urlencode({'template': name})}"


def _list(target: Located, sort: str) -> str:
    return f"{reverse('frontend:jobs', args=[target.id])}?sort={sort}"


_FORM = Fields("frontend/jobs/typed_template.html", fields.NAMES)
CHANGES = Family(
    readers={
        "register-template": register,
        "alter-template": alter,
        "drop-template": drop,
        "drop-schedule": drop_schedule,
        "make-system": make_system,
    },
    passed_on=(*fields.NAMES, "template", "version", "schedule"),
    fields={"register-template": _FORM, "alter-template": _FORM},
)
