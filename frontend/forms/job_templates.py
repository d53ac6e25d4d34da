"""The fields of a job template: its content as text, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django import forms

from frontend.forms.properties import as_lines, numbered
from jobs import wire
from metalake.errors import Invalid
from metalake.wire import read

KIND = "job_template"
TYPES = ("shell", "spark")


@dataclass(frozen=True)
class Part:
    """A part of a template's content: one text, a list with one item a line, or pairs as `name=value`."""

    name: str
    label: str
    help: str
    shape: Literal["text", "lines", "pairs"] = "lines"
    types: tuple[str, ...] = TYPES


PARTS = (
    Part("executable", "Program", "A file in a place that the operator allows (METALAKE_JOB_PATHS).", "text"),
    Part("arguments", "Arguments", "One a line. {{day}} is a value that whoever runs it types."),
    Part("environments", "Environment", "One a line, as NAME=value; the names are those the operator allows.", "pairs"),
    Part("scripts", "Scripts", "Files that are linked into the folder it runs in, one a line.", types=("shell",)),
    Part("className", "Main class", "Of a jar.", "text", ("spark",)),
    Part("jars", "Jars", "One a line.", types=("spark",)),
    Part("files", "Files", "One a line.", types=("spark",)),
    Part("archives", "Archives", "One a line.", types=("spark",)),
    Part("configs", "Spark settings", "One a line, as name=value.", "pairs", ("spark",)),
)
NAMES = ("name", "comment", "type", *(part.name for part in PARTS))


def parts_of(job_type: str | None) -> list[Part]:
    return [part for part in PARTS if job_type is None or job_type in part.types]


def as_text(content: Mapping[str, Any]) -> dict[str, str]:
    """The parts as their fields show them, without those whose text would be read back as something else."""
    texts = {part.name: _text(part, content.get(part.name)) for part in PARTS}
    return {name: text for name, text in texts.items() if text is not None}


def _text(part: Part, value: Any) -> str | None:
    if part.shape == "text":
        return value or ""
    if part.shape == "pairs":
        lines = as_lines(value or {})
        return None if lines.raw else lines.text
    text = "\n".join(value or [])
    return text if _lines(text) == (value or []) else None


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def read_template(asked: Mapping[str, str], job_type: str, also: Mapping[str, Any]) -> wire.ShellTemplate:
    """The typed template, with the parts in `also` instead of typed ones. Raises Invalid."""
    if job_type not in TYPES:
        raise Invalid("Choose what it is: shell or Spark.", kind=KIND)
    body: dict[str, Any] = {"name": asked.get("name", "").strip(), "jobType": job_type}
    body["comment"] = asked.get("comment", "").strip() or None
    for part in parts_of(job_type):
        body[part.name] = also[part.name] if part.name in also else _value(part, asked.get(part.name, ""))
    for part in parts_of(None):
        if job_type not in part.types and asked.get(part.name, "").strip():
            raise Invalid(f"{part.label}: only for a {part.types[0]} job.", kind=KIND)
    given = {name: value for name, value in body.items() if value not in ("", [], {}, None)}
    template: Any = read(wire.RegisterRequest, {"jobTemplate": given}, kind=KIND).job_template
    return template


def _value(part: Part, text: str) -> Any:
    if part.shape == "text":
        return text.strip()
    if part.shape == "lines":
        return _lines(text)
    try:
        return {name: value for _, name, value in numbered(text)}
    except forms.ValidationError as wrong:
        raise Invalid(f"{part.label}: {' '.join(wrong.messages)}", kind=KIND) from None
