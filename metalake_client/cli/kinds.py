"""Every kind of object that `gcli` has commands for, each one declaration."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind: `above` are the kinds on the way to it, below the metalake.

    `changes` are what `alter` can change, nothing if there is no `alter`; `fields` are what `create` takes beside a
    name, a comment and properties; `drops` are the options of its `drop`, as the query parameters of the wire.
    `switches`: it can be enabled and disabled; `is_nested`: one may lie in another; `refreshes`: an outside system may
    be asked anew; `is_named_by_content`: `create` sends a list of one, whose name the server makes; `lists_details`:
    its list has more than names. `columns` are what a table shows of each in a list.
    """

    name: str
    plural: str
    above: tuple[str, ...] = ()
    changes: tuple[str, ...] = ("properties",)
    fields: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    switches: bool = False
    is_nested: bool = False
    refreshes: bool = False
    is_named_by_content: bool = False
    lists_details: bool = False
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
        lists_details=True,
        columns=("name", "provider", "type", "comment"),
        help="Catalogs: Iceberg's, or those of another system.",
    ),
    Kind(
        name="schema",
        plural="schemas",
        above=("catalog",),
        drops=("cascade",),
        is_nested=True,
        refreshes=True,
        help="Schemas; one in another is named by its whole path, as in sales:emea.",
    ),
    Kind(
        name="table",
        plural="tables",
        above=("catalog", "schema"),
        changes=("name", "schema", "comment", "properties", "file"),
        fields=("file",),
        drops=("purge",),
        refreshes=True,
        help="Tables.",
    ),
    Kind(
        name="partition",
        plural="partitions",
        above=("catalog", "schema", "table"),
        changes=(),
        fields=("file",),
        drops=("purge",),
        is_named_by_content=True,
        lists_details=True,
        columns=("name", "properties"),
        help="Partitions of tables whose system keeps a list of them, as Hive does.",
    ),
    Kind(
        name="view",
        plural="views",
        above=("catalog", "schema"),
        changes=("name", "schema", "comment", "properties", "file"),
        fields=("file",),
        refreshes=True,
        help="Views: one SQL for each dialect, in versions.",
    ),
)
KINDS = {kind.name: kind for kind in _ALL}

PEOPLE = {name: Kind(name=name, plural=f"{name}s") for name in ("user", "group", "role")}
"""Objects of a metalake other than catalogs; they have their own commands, and share name completion."""
