"""Every kind of object that `gcli` has commands for, each one declaration."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind: `above` are the kinds on the way to it, below the metalake.

    `changes` are what `alter` can change; `switches`: it can be enabled and disabled; `drops` are the options of its
    `drop`, as the query parameters of the wire; `creates` says that `create` needs no more than a name, a comment,
    properties and `fields`.
    """

    name: str
    plural: str
    above: tuple[str, ...] = ()
    changes: tuple[str, ...] = ("properties",)
    fields: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    switches: bool = False
    creates: bool = True
    columns: tuple[str, ...] = ("name",)
    help: str = ""

    @property
    def way(self) -> tuple[str, ...]:
        """The options that lead to one of this kind: the kinds above it, and itself."""
        return (*self.above, self.name)

    def path(self, names: dict[str, str], *, is_list: bool = False) -> list[str]:
        """The parts of its path below /api/, or of the path of its list."""
        parts = ["metalakes"] if self.name == "metalake" else ["metalakes", names["metalake"]]
        for kind in self.above:
            parts += [KINDS[kind].plural, names[kind]]
        if self.name != "metalake":
            parts.append(self.plural)
        return parts if is_list else [*parts, names[self.name]]


_ALL = (
    Kind(
        name="metalake",
        plural="metalakes",
        changes=("name", "comment", "properties"),
        drops=("force",),
        switches=True,
        columns=("name", "comment"),
        help="Metalakes: each holds catalogs, people and roles of its own.",
    ),
    Kind(
        name="catalog",
        plural="catalogs",
        changes=("name", "comment", "properties"),
        fields=("provider", "type"),
        drops=("force",),
        switches=True,
        columns=("name", "provider", "type", "comment"),
        help="Catalogs: Iceberg's, or those of another system.",
    ),
    Kind(
        name="schema",
        plural="schemas",
        above=("catalog",),
        drops=("cascade",),
        help="Schemas; one in another is named by its whole path, as in sales:emea.",
    ),
    Kind(
        name="table",
        plural="tables",
        above=("catalog", "schema"),
        changes=("name", "comment", "properties"),
        fields=("file",),
        drops=("purge",),
        help="Tables.",
    ),
    Kind(
        name="view",
        plural="views",
        above=("catalog", "schema"),
        changes=("name", "comment", "properties"),
        fields=("file",),
        help="Views: one SQL for each dialect, in versions.",
    ),
)
KINDS = {kind.name: kind for kind in _ALL}
