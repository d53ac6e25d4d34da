"""Job templates: registering takes REGISTER_JOB_TEMPLATE, using takes USE_JOB_TEMPLATE; owners change them.

Built-in templates exist in every metalake and have no rows: loading them requires USE_JOB_TEMPLATE on the metalake, and
nobody can change them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from access.explain import queries
from access.explain.permissions import Place
from authz import operations, policy
from authz.actor import SYSTEM, Actor
from authz.callers.accounts import account_of
from authz.locks import Lock
from authz.services.change import enter
from catalogs.services.alterations import event, named, row_of, save
from catalogs.services.cascade import remove
from catalogs.services.resolution import find
from catalogs.services.writes import Target, Write, write_to
from jobs.built_in import PREFIX, BuiltIn, offered
from jobs.commands import check
from jobs.definition import changed_fields
from jobs.models import JobRun, JobTemplate, Schedule
from jobs.services import pinning
from metalake.errors import AlreadyExists, InUse, Invalid, NotFound
from metalake.events import gone, record, stands
from metalake.hierarchy import check_strict
from metalake.kinds import Kind
from metalake.lineage import Address, Located, missing
from metalake.models import Metalake
from metalake.privileges import Privilege
from metalake.rest.replies import Audit

KIND = Kind.JOB_TEMPLATE


@dataclass(frozen=True)
class Template:
    """A template as the API and the pages show it; `located` and `row` are None for a built-in one."""

    name: str
    job_type: str
    content: Mapping[str, Any]
    audit: Any
    comment: str | None = None
    located: Located | None = None
    row: JobTemplate | None = None
    built_in: BuiltIn | None = None


@dataclass(frozen=True)
class Changes:
    """Changes to a template; `job_type` is the type of the new `content`, None without one."""

    new_name: str | None = None
    comment: str | None = None
    sets_comment: bool = False
    job_type: str | None = None
    content: Mapping[str, Any] | None = None


def address_of(metalake: str, name: str) -> Address:
    return Address(metalake=metalake, leaf=name, leaf_kind=KIND)


def list_templates(actor: Actor, metalake: str) -> list[Template]:
    """The templates that the actor may load, by name, built-in ones first."""
    top = enter(actor, metalake)
    policy.require(actor, operations.listing(KIND), top)
    rows = policy.visible_leaves(actor, top, JobTemplate.objects.filter(parent_id=top.id), KIND).order_by("name")
    return [*built_in_templates(actor, top), *(_of_row(row) for row in rows)]


def built_in_templates(actor: Actor, top: Located) -> list[Template]:
    if not policy.permits(actor, operations.LOAD_BUILT_IN_TEMPLATES, top):
        return []
    since = Metalake.objects.values_list("create_time", flat=True).get(pk=top.id)
    audit = Audit(SYSTEM, since, None, None)
    return [
        Template(each.name, each.job_type, each.content(), audit, each.comment, built_in=each)
        for _, each in sorted(offered().items())
    ]


def load_template(actor: Actor, metalake: str, name: str) -> Template:
    """A template, perhaps a built-in one. Raises NotFound, Forbidden."""
    if name.startswith(PREFIX):
        return _built_in(actor, enter(actor, metalake), name)
    located = find(actor, address_of(metalake, name))
    policy.require(actor, operations.load_of(KIND), located)
    return _of_row(row_of(JobTemplate, located), located)


def _built_in(actor: Actor, top: Located, name: str) -> Template:
    """A built-in template. Raises NotFound if it is hidden from the actor or not offered."""
    for template in built_in_templates(actor, top):
        if template.name == name:
            return template
    raise missing(KIND, [name])


def _of_row(row: JobTemplate, located: Located | None = None) -> Template:
    return Template(row.name, row.job_type, row.content, row, row.comment, located, row)


def users_of(actor: Actor, metalake: str, template: Template, most: int) -> list[str]:
    """The first members who may use a template. Raises Forbidden for who may not read everybody's access."""
    on = Place(KIND, template.name) if template.located else Place(Kind.METALAKE, metalake)
    _, reached = queries.who_reaches(actor, metalake, on, None, Privilege.USE_JOB_TEMPLATE, "")
    return [access.user for access in islice(reached, most)]


def register(
    actor: Actor, metalake: str, name: str, job_type: str, content: Mapping[str, Any], comment: str | None = None
) -> Template:
    """Register a template; the actor becomes its owner. Raises Invalid for bad content or names, AlreadyExists."""
    top = Address(metalake=metalake)
    target = Target(top, operations.LOAD_METALAKE, Lock.HANGS, check=_require_register, makes=KIND)
    return write_to(actor, target, _register, name, job_type, content, comment)


def _require_register(actor: Actor, top: Located) -> None:
    policy.require(actor, operations.create_of(KIND), top)


def _register(write: Write, name: str, job_type: str, content: Mapping[str, Any], comment: str | None) -> Template:
    actor, top = write.actor, write.located
    check_new(top, name, job_type, content)
    row = JobTemplate.made(
        KIND,
        name,
        top,
        creator=actor.name,
        owner_user_id=account_of(actor),
        comment=comment,
        job_type=job_type,
        content=dict(content),
    )
    row.save(force_insert=True)
    located = find(actor, address_of(top.name, name))
    record(event(actor, "job_template.registered", located, [stands(row)], executable=content["executable"]))
    return _of_row(row, located)


def check_new(top: Located, name: str, job_type: str, content: Mapping[str, Any]) -> None:
    """Raise what registering such a template would: Invalid, AlreadyExists."""
    _check_name(name)
    check(job_type, content)
    _require_free(top.id, name)


def check_altered(template: Template, new_name: str, content: Mapping[str, Any]) -> int:
    """How many schedules of other owners may stop by this alteration. Raises what it would: Invalid, AlreadyExists."""
    assert template.row is not None
    check(template.job_type, content)
    if new_name != template.name:
        _check_name(new_name)
        _require_free(template.row.parent_id or 0, new_name)
    if not changed_fields(template.content, content):
        return 0
    return Schedule.objects.filter(template_id=template.row.pk, enabled=True).count()


def alter(actor: Actor, metalake: str, name: str, changes: Sequence[Changes]) -> Template:
    """Change a template, as its owner. Queued runs keep the old content, and other users' schedules stop."""
    renames = any(each.new_name is not None for each in changes)
    target = _to_change(actor, metalake, name, "alter_job_template", Lock.MOVES if renames else Lock.CHANGES)
    return write_to(actor, target, _alter, changes)


def _alter(write: Write, changes: Sequence[Changes]) -> Template:
    actor, located = write.actor, write.located
    row = row_of(JobTemplate, located)
    before = {field: getattr(row, field) for field in ("name", "comment", "content")}
    for each in changes:
        _apply(row, each)
    fields = [field for field, old in before.items() if old != getattr(row, field)]
    if "name" in fields:
        _check_name(row.name)
        _require_free(located.metalake.id, row.name)
        for of_it in (JobRun, Schedule):
            of_it.objects.filter(template_id=row.pk).update(template_name=row.name)
    if "content" in fields:
        check(row.job_type, row.content)
        JobTemplate.objects.filter(pk=row.pk).update(content=row.content)
    if fields:
        save(row, actor, [field for field in fields if field != "content"])
        pinning.follow(actor, row, before["content"])
        record(event(actor, "job_template.altered", located, named(row, fields), changed=sorted(fields)))
    return _of_row(row, located)


def gone_with(template: Template) -> tuple[int, int]:
    """How many runs and schedules are dropped with a template. Raises InUse while any run of it has not ended."""
    assert template.located is not None
    _require_ended(template.located)
    of_it = {"template_id": template.located.id}
    return JobRun.objects.filter(**of_it).count(), Schedule.objects.filter(**of_it).count()


def drop(actor: Actor, metalake: str, name: str) -> bool:
    """Drop a template with its runs; False if the actor sees none. Raises InUse while any run of it has not ended."""
    try:
        write_to(actor, _to_change(actor, metalake, name, "drop_job_template", Lock.MOVES), _drop)
    except NotFound as miss:
        if miss.kind != KIND:
            raise
        return False
    return True


def _drop(write: Write) -> None:
    located = write.located
    _require_ended(located)
    remove(located)
    record(event(write.actor, "job_template.dropped", located, [gone(located.id)]))


def _require_ended(located: Located) -> None:
    if JobRun.objects.filter(template_id=located.id, status__in=JobRun.LIVE).exists():
        raise InUse(f"Job template {located.name} has runs that have not ended: cancel them first.", kind=KIND)


def admit(actor: Actor, asked: str, address: Address) -> None:
    """Raise what changing the template at this address would raise (see catalogs.services.admission)."""
    _to_change(actor, address.metalake, address.leaf or "", asked).permitted(actor)


def _to_change(actor: Actor, metalake: str, name: str, operation: str, lock: Lock = Lock.CHANGES) -> Target:
    """The write target for changing a template. Raises Invalid for a built-in one."""
    if name.startswith(PREFIX):
        _built_in(actor, enter(actor, metalake), name)
        raise Invalid(f"Job template {name} is built in: nobody changes it.", kind=KIND)
    return Target(address_of(metalake, name), operations.OPERATIONS[operation], lock)


def _apply(row: JobTemplate, changes: Changes) -> None:
    if changes.new_name is not None:
        row.name = changes.new_name
    if changes.sets_comment:
        row.comment = changes.comment
    if changes.content is not None:
        if changes.job_type != row.job_type:
            raise Invalid(f"It is a template of a {row.job_type} job, not of a {changes.job_type} job.", kind=KIND)
        row.content = row.content | dict(changes.content)


def _check_name(name: str) -> None:
    check_strict(name, KIND)
    if name.startswith(PREFIX):
        raise Invalid(f"Names that begin with {PREFIX} are those of templates that are built in.", kind=KIND)


def _require_free(metalake_id: int, name: str) -> None:
    if JobTemplate.objects.filter(parent_id=metalake_id, name=name).exists():
        raise AlreadyExists(f"Job template {name} already exists.", kind=KIND)
