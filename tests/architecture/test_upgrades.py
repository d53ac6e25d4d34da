"""Nodes of the version before go on while a new one alters the database (docs/operations.md, "Upgrading")."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.migrations.loader import MigrationLoader
from django.db.models import NOT_PROVIDED

# The last migrations of 1.0.0.
BEFORE = [("metalake", "0001_initial"), ("authz", "0007_sign_in_tries"), ("catalogs", "0008_more_secrets")]
Columns = dict[tuple[str, str | None], "models.Field[Any, Any]"]


def columns(nodes: list[tuple[str, str]] | None = None) -> Columns:
    """Every column of our tables after these migrations, or after all, by table and name."""
    apps = MigrationLoader(None).project_state(nodes).apps
    ours = [model for model in apps.get_models(include_auto_created=True) if model._meta.app_label in dict(BEFORE)]
    return {
        (model._meta.db_table, field.column): field for model in ours for field in model._meta.local_concrete_fields
    }


def test_an_upgrade_only_adds() -> None:
    before, now = columns(BEFORE), columns()
    assert before, "the names of the migrations are right"
    assert not before.keys() - now.keys(), "nodes of before ask for these columns"
    tables = {table for table, _ in before}
    added = {key: field for key, field in now.items() if key not in before and key[0] in tables}
    unfilled = [key for key, field in added.items() if not field.null and field.db_default is NOT_PROVIDED]
    assert unfilled == [], "nodes of before write rows without these columns"
