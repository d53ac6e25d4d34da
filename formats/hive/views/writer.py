"""Writes new views in the form of their dialect's engine, and alters existing ones in their form.

Anything that a form cannot store is rejected; anything that an alteration does not change stays as the engine wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from formats.hive.tables import HiveTable
from formats.hive.views.columns import require_different_names
from formats.hive.views.form_writers import WRITERS, Change, empty_entry
from formats.hive.views.forms import Form, properties_of, why_reserved
from formats.hive.views.reader import read
from formats.native.view_definition import Representation, SecurityMode, ViewDefinition
from metalake.errors import Invalid, Unsupported
from metalake.kinds import Kind
from metalake.wire import quote

DIALECTS = tuple(form.value for form in WRITERS)


def written(
    name: str,
    schema: str,
    definition: ViewDefinition,
    *,
    owner: str | None = None,
    query_columns: Sequence[str] | None = None,
) -> HiveTable:
    """A new view in the form of its one dialect, with its name in lower case.

    `schema` is its database. Trino runs a DEFINER view with the rights of `owner`; without a security mode it gets an
    INVOKER view. Spark maps the query's columns to the view's by name: `query_columns` are the query's names, by
    default those of the columns.
    Raises Invalid if the form cannot store it, Unsupported if its engine lacks it; both name the path.
    """
    only = _only(definition)
    if only.key not in DIALECTS:
        known = f"views are stored in forms for {', '.join(DIALECTS)}"
        raise Invalid(f"representations[0].dialect: {known}, not for {quote(only.dialect)}", kind=Kind.VIEW)
    form = Form(only.key)
    _check(form, definition)
    _check_columns(form, definition)
    change = Change(None, definition, schema, query_columns)
    return WRITERS[form](_with_properties(empty_entry(form, name.lower(), owner), definition), change)


def rewritten(
    table: HiveTable,
    definition: ViewDefinition,
    *,
    owner: str | None = None,
    query_columns: Sequence[str] | None = None,
) -> HiveTable:
    """The view's entry with another definition, in its present form; the same entry if nothing changes.

    A view that becomes a DEFINER view gets this `owner`, which Trino reads from the entry.
    Raises Invalid and Unsupported as `written` does, Unsupported for materialized and Glue's views, Unreadable.
    """
    view = read(table)
    if view.is_materialized:
        raise Unsupported("A materialized view is altered by the engine that fills it.", kind=Kind.VIEW)
    if view.form not in WRITERS:
        raise Unsupported(
            "A view of several dialects in AWS Glue is governed by Lake Formation, which checks each dialect with its "
            "engine; alter it there.",
            kind=Kind.VIEW,
        )
    if definition == view.definition:
        return table
    dialect = _only(definition).dialect
    if dialect.casefold() != view.form:
        stays = f"the view is stored in the form of {view.form}"
        raise Invalid(f"representations[0].dialect: {stays}, not of {quote(dialect)}; drop it first", kind=Kind.VIEW)
    _check(view.form, definition)
    if definition.columns != view.definition.columns:
        _check_columns(view.form, definition)
    if definition.is_definer and not view.definition.is_definer:
        table = replace(table, owner=owner)
    change = Change(view.definition, definition, query_columns=query_columns)
    return WRITERS[view.form](_with_properties(table, definition), change)


def _only(definition: ViewDefinition) -> Representation:
    """The only representation. Raises Invalid, naming the second."""
    only, *more = definition.representations
    if more:
        second = f"a view in Hive has exactly one representation, and {quote(more[0].dialect)} is a second one"
        instead = "give it a view of its own, or create an Iceberg view, there or beside our own Iceberg tables"
        raise Invalid(f"representations[1]: {second}; {instead}", kind=Kind.VIEW)
    return only


def _check(form: Form, definition: ViewDefinition) -> None:
    if definition.security_mode is not None and form is not Form.TRINO:
        none = f"a view in the form of {form} has none, which counts as {SecurityMode.INVOKER}"
        raise Unsupported(f"securityMode: {none}; leave it out", kind=Kind.VIEW)
    for name in definition.properties:
        if reason := why_reserved(name):
            raise Invalid(f"properties.{name}: reserved; {reason}", kind=Kind.VIEW)


def _check_columns(form: Form, definition: ViewDefinition) -> None:
    require_different_names(definition.columns)
    if not definition.columns and form is not Form.HIVE:
        raise Invalid(f"columns: a view in the form of {form} stores its columns; list them", kind=Kind.VIEW)


def _with_properties(table: HiveTable, definition: ViewDefinition) -> HiveTable:
    before = properties_of(table)
    others = {name: value for name, value in table.parameters.items() if name not in before}
    return replace(table, parameters=others | dict(definition.properties))
