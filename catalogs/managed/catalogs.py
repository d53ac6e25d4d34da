"""The store of catalogs whose objects are all managed."""

from __future__ import annotations

from collections.abc import Collection

from authz.actor import Actor
from catalogs.stores import CatalogStore
from metalake.lineage import Located
from providers.base import Provider


class ManagedCatalogs(CatalogStore):
    """No outside system, so no conflicts with one."""

    is_mirrored = False

    def require_no_clash(self, provider: Provider, metalake_id: int) -> None:
        pass

    def nesting_conflicts(self, actor: Actor, catalog: Located, divided: Collection[str]) -> list[str]:
        return []

    def flattening_conflicts(self, catalog_id: int) -> list[str]:
        return []

    def forget_answers(self, catalog_id: int, reason: str) -> None:
        pass
