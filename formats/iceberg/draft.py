"""A table's or view's metadata while a commit is changing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from formats.iceberg.parsing import Json
from metalake.errors import Invalid

ADDED_NAMES = {"schema": "schema", "spec": "spec", "order": "sort order", "version": "view version"}
# Each kind's list in the metadata, and the key of an element's id.
LISTED = {
    "schema": ("schemas", "schema-id"),
    "spec": ("partition-specs", "spec-id"),
    "order": ("sort-orders", "order-id"),
    "version": ("versions", "version-id"),
}


class Known:
    """The elements of one kind: all ids, and the first id of each shape, a text that equal elements share.

    With it a request that adds a thousand of them takes linear time.
    """

    def __init__(self) -> None:
        self.ids: set[int] = set()
        self.by_shape: dict[str, int] = {}
        self.next_id = 0

    def add(self, shape: str, element_id: int) -> None:
        self.ids.add(element_id)
        self.by_shape.setdefault(shape, element_id)
        self.next_id = max(self.next_id, element_id + 1)


class Draft:
    """Metadata being changed: it shares everything with its base, and copies a list or dict before its first change.

    `changed` becomes true with the first real change; writing an equal value is not one.
    """

    def __init__(self, base: Json, *, now_ms: int) -> None:
        self.metadata: Json = dict(base)
        self.now_ms = now_ms
        self.changed = False
        self.layout_changed = False  # current schema, default spec or order, which must fit each other at the end
        self.updated_ms: int | None = None  # the time of the last snapshot added
        self.added_snapshots: dict[int, Json] = {}
        self.added_mains: set[int] = set()  # snapshots added and made current by this request
        self.snapshots_removed = False
        self._copied: set[str] = set()
        self._added: dict[str, set[int]] = {kind: set() for kind in ADDED_NAMES}
        self._last_added: dict[str, int | None] = dict.fromkeys(ADDED_NAMES)
        self._snapshot_ids: set[int] | None = None
        self._known: dict[str, Known] = {}

    @property
    def format_version(self) -> int:
        return int(self.metadata["format-version"])

    @property
    def snapshot_ids(self) -> set[int]:
        """Ids of all snapshots; whoever adds or removes snapshots updates this set too."""
        if self._snapshot_ids is None:
            self._snapshot_ids = {snapshot["snapshot-id"] for snapshot in self.metadata["snapshots"]}
        return self._snapshot_ids

    def known(self, kind: str, shape: Callable[[Json], str]) -> Known:
        """The elements of a kind; whoever adds one adds it here too."""
        if kind not in self._known:
            key, id_name = LISTED[kind]
            self._known[kind] = known = Known()
            for each in self.metadata[key]:
                known.add(shape(each), each.get(id_name) or 0)
        return self._known[kind]

    def put(self, key: str, value: Any) -> bool:
        """Set one value; True if that changed it."""
        if key in self.metadata and self.metadata[key] == value:
            return False
        self.metadata[key] = value
        self.changed = True
        return True

    def edit_list(self, key: str) -> list[Any]:
        """The list under `key`, to be changed by the caller."""
        return self._own(key, list)

    def edit_dict(self, key: str) -> Json:
        """The dict under `key`, to be changed by the caller."""
        return self._own(key, dict)

    def keep_only(self, key: str, keep: Callable[[Any], bool]) -> None:
        """Drop the elements of a list that `keep` refuses."""
        known = self.metadata.get(key) or []
        remaining = [each for each in known if keep(each)]
        if len(remaining) != len(known):
            self.metadata[key] = remaining
            self._known.clear()
            self._copied.add(key)
            self.changed = True

    def remember_added(self, kind: str, added_id: int) -> None:
        """Record an element that this request added: -1 means it from now on."""
        self._added[kind].add(added_id)
        self._last_added[kind] = added_id

    def remember_reused(self, kind: str, reused_id: int) -> None:
        """Record that an equal element existed: it counts as last added only if this request added it."""
        self._last_added[kind] = reused_id if reused_id in self._added[kind] else None

    def last_added(self, kind: str) -> int:
        """The id that -1 means. Raises Invalid if this request added none."""
        last = self._last_added[kind]
        if last is None:
            name = ADDED_NAMES[kind]
            raise Invalid(f"Cannot set last added {name}: no {name} has been added")
        return last

    def make_current(self, kind: str, chosen: int, pointer: str, described_as: str) -> None:
        """Set `pointer` to the id of a schema, spec or order; -1 is the one last added by this request."""
        key, id_name = LISTED[kind]
        if chosen == -1:
            chosen = self.last_added(kind)
        if all(each[id_name] != chosen for each in self.metadata[key]):
            raise Invalid(f"Cannot set {described_as} to unknown {described_as.rpartition(' ')[2]}: {chosen}")
        if self.put(pointer, chosen):
            self.layout_changed = True

    def remove(self, kind: str, ids: list[int], pointer: str, described_as: str) -> None:
        """Remove schemas or specs; unknown ids are ignored. Raises Invalid for the one that `pointer` names."""
        removed = set(ids)
        if self.metadata.get(pointer) in removed:
            raise Invalid(f"Cannot remove the {described_as}")
        key, id_name = LISTED[kind]
        self.keep_only(key, lambda each: each[id_name] not in removed)

    def _own(self, key: str, kind: Callable[..., Any]) -> Any:
        self.changed = True
        if key not in self._copied:
            self.metadata[key] = kind(self.metadata.get(key) or ())
            self._copied.add(key)
        return self.metadata[key]
