"""Request bodies and replies of the native API for job templates, runs and schedules.

Source: Gravitino's documented API of jobs. Progress, logs and schedules are not part of it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from formats.native.columns import Name
from metalake.rest.replies import AuditReply
from metalake.wire import Body, Moment, Reply

MOST_ARGUMENTS, MOST_ITEMS, MOST_VALUES = 256, 64, 256
LONGEST = 8192  # characters of one text

Text = Annotated[str, Field(min_length=1, max_length=LONGEST)]
Key = Annotated[str, Field(min_length=1, max_length=255)]
Value = Annotated[str, Field(max_length=LONGEST)]
Arguments = Annotated[list[Value], Field(max_length=MOST_ARGUMENTS)]
Files = Annotated[list[Text], Field(max_length=MOST_ITEMS)]
Pairs = Annotated[dict[Key, Value], Field(max_length=MOST_ITEMS)]
Values = Annotated[dict[Key, Value], Field(max_length=MOST_VALUES)]


class _Template(Body):
    name: Name
    comment: str | None = None
    executable: Text
    arguments: Arguments = []
    environments: Pairs = {}
    custom_fields: Pairs = {}
    audit: Any = Field(None, description="Not read; clients send it as null", exclude=True)

    def content(self) -> dict[str, Any]:
        """What is stored."""
        return self.model_dump(by_alias=True, exclude_none=True, exclude={"name", "comment", "job_type"})


class ShellTemplate(_Template):
    """A program, with scripts that are linked into the folder that it runs in."""

    job_type: Literal["shell"]
    scripts: Files = []


class SparkTemplate(_Template):
    """A jar with its class, or a Python file, for spark-submit."""

    job_type: Literal["spark"]
    class_name: Text | None = None
    jars: Files = []
    files: Files = []
    archives: Files = []
    configs: Pairs = {}


Template = Annotated[ShellTemplate | SparkTemplate, Field(discriminator="job_type")]


class RegisterRequest(Body):
    """A new job template."""

    job_template: Template


class RenameTemplate(Body):
    action: Literal["rename"] = Field(alias="@type")
    new_name: Name


class UpdateTemplateComment(Body):
    action: Literal["updateComment"] = Field(alias="@type")
    new_comment: str | None = None


class _Content(Body):
    new_executable: Text | None = None
    new_arguments: Arguments | None = None
    new_environments: Pairs | None = None
    new_custom_fields: Pairs | None = None

    def changes(self) -> dict[str, Any]:
        """The fields of the content that are replaced, by their names there."""
        given = self.model_dump(exclude_none=True, exclude={"action"})
        return {_field(name): value for name, value in given.items()}


def _field(name: str) -> str:
    """`new_class_name` as `className`."""
    first, *more = name.removeprefix("new_").split("_")
    return first + "".join(word.capitalize() for word in more)


class ShellContent(_Content):
    action: Literal["shell"] = Field(alias="@type")
    new_scripts: Files | None = None


class SparkContent(_Content):
    action: Literal["spark"] = Field(alias="@type")
    new_class_name: Text | None = None
    new_jars: Files | None = None
    new_files: Files | None = None
    new_archives: Files | None = None
    new_configs: Pairs | None = None


class UpdateTemplate(Body):
    action: Literal["updateTemplate"] = Field(alias="@type")
    new_template: Annotated[ShellContent | SparkContent, Field(discriminator="action")]


TemplateUpdate = Annotated[RenameTemplate | UpdateTemplateComment | UpdateTemplate, Field(discriminator="action")]


class TemplateUpdatesRequest(Body):
    """Alterations of a job template, applied in order, all or none. An empty list changes nothing."""

    updates: list[TemplateUpdate]


class RunRequest(Body):
    """A run of a template, with the values of its placeholders."""

    job_template_name: Name
    job_conf: Values = {}


class CancelRequest(Body):
    """Nothing is said about a cancellation."""


class ProgressRequest(Body):
    """How far a run is: `done` of `total`, where that is known, and what it does now."""

    done: int = Field(ge=0, le=2**62)
    total: int | None = Field(None, ge=0, le=2**62)
    stage: str | None = Field(None, max_length=200)


class ScheduleRequest(Body):
    """When a template runs by itself: by `cron` (five fields, UTC) or `every` so many seconds."""

    name: Name
    job_template_name: Name
    job_conf: Values = {}
    cron: str | None = Field(None, max_length=255)
    every: int | None = Field(None, ge=60, le=10**9)
    starts_at: Moment | None = None
    ends_at: Moment | None = None
    enabled: bool = True


class EnableScheduleRequest(Body):
    """Whether it starts runs."""

    enabled: bool


class TemplateReply(Reply):
    """A job template; fields of the other type of job are left out."""

    job_type: Literal["shell", "spark"]
    name: str
    comment: str | None = None
    executable: str
    arguments: list[str]
    environments: dict[str, str]
    custom_fields: dict[str, str]
    scripts: list[str] | None = None
    class_name: str | None = None
    jars: list[str] | None = None
    files: list[str] | None = None
    archives: list[str] | None = None
    configs: dict[str, str] | None = None
    audit: AuditReply


class JobReply(Reply):
    """A run: its process ended with `exitCode`, or it failed for the reason in `error`."""

    job_id: str
    job_template_name: str
    status: Literal["queued", "started", "failed", "succeeded", "cancelling", "cancelled"]
    audit: AuditReply
    queued_at: str
    started_at: str | None = None
    finished_at: str | None = None
    exit_code: int | None = None
    error: str | None = None
    schedule: str | None = None


class ProgressReply(Reply):
    """`rate` is what is done in a second, `eta` the seconds until the end; unknown ones are left out."""

    status: str
    done: int | None = None
    total: int | None = None
    stage: str | None = None
    rate: float | None = None
    eta: int | None = None
    updated_at: str | None = None


class LogReply(Reply):
    """A part of what a run wrote: from byte `offset`, to be continued at `next`, of `total` bytes so far.

    Only the beginning and the end are kept; `leftOut` bytes between them are not.
    """

    text: str
    offset: int
    next: int
    total: int
    left_out: int


class ScheduleReply(Reply):
    """A schedule; `nextAt` is when it starts its next run, and `lastFailure` why it started none.

    Where `templateChanges` has fields of the template that were altered, with what each `was` and `is`, it starts none
    until its owner enables it again.
    """

    name: str
    job_template_name: str
    job_conf: dict[str, str]
    owner: str
    cron: str | None = None
    every: int | None = None
    starts_at: str | None = None
    ends_at: str | None = None
    enabled: bool
    next_at: str | None = None
    last_failure: str | None = None
    template_changes: list[dict[str, Any]] | None = None
    audit: AuditReply


class SystemReply(Reply):
    """The catalog of jobs' results: what this call made, who writes there, and who may read the tables of a schema.

    Owners of the catalog and of the metalake are among the readers, of whom the first 1,000 are named.
    """

    catalog: str
    principal: str
    role: str
    privileges: list[str]
    made: list[str]
    readers: dict[str, list[str]]
    more_readers: bool
