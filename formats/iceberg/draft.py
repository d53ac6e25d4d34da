"""A table's or view's metadata while a commit is changing it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from typing import Any

from formats.iceberg.parsing import Json
from metalake.errors import Invalid

ADDED_NAMES = {"schema": "schema", "spec": "spec", "order": "sort order", "version": "view version"}
LISTS = {"schema": "schemas", "spec": "partition-specs", "order": "sort-orders", "version": "versions"}
# The key of an element's id, for each list in the metadata whose elements have one.
TABLE_IDS = {
    "schemas": "schema-id",
    "partition-specs": "spec-id",
    "sort-orders": "order-id",
    "snapshots": "snapshot-id",
    "statistics": "snapshot-id",
    "partition-statistics": "snapshot-id",
    "encryption-keys": "key-id",
}
IDS = TABLE_IDS | {"versions": "version-id"}


class Known:
    """The elements of one kind by their shape, a string that equal elements share.

    With it, a request that adds and removes a thousand of them computes each shape once.
    """

    def __init__(self) -> None:
        self._ids: dict[str, dict[int, None]] = {}  # of each shape, in order
        self._shapes: dict[int, str] = {}
        self._highest: list[int] = []  # a heap of negated ids, some of them removed

    @property
    def next_id(self) -> int:
        while self._highest and -self._highest[0] not in self._shapes:
            heappop(self._highest)
        return 1 - self._highest[0] if self._highest else 0

    def first(self, shape: str) -> int | None:
        """The id of the first element of this shape."""
        return next(iter(self._ids.get(shape, ())), None)

    def add(self, shape: str, element_id: int) -> None:
        self.discard(element_id)
        self._ids.setdefault(shape, {})[element_id] = None
        self._shapes[element_id] = shape
        heappush(self._highest, -element_id)

    def discard(self, element_id: int) -> None:
        if (shape := self._shapes.pop(element_id, None)) is not None:
            del self._ids[shape][element_id]


class Draft:
    """Metadata being changed, copy-on-write: it copies a list or dict of its base before the first change.

    Lists whose elements have ids are changed by id, and written once, by `settle`, so that a commit of a thousand
    updates takes linear time. `changed` becomes true with the first real change; writing an equal value is not one.
    """

    def __init__(self, base: Json, *, now_ms: int) -> None:
        self.metadata: Json = dict(base)
        self.now_ms = now_ms
        self.changed = False
        self.layout_changed = False  # current schema, default spec or order, which must match at the end
        self.updated_ms: int | None = None  # the time of the last snapshot added
        self.added_snapshots: dict[int, Json] = {}
        self.added_mains: set[int] = set()  # snapshots added and made current by this request
        self.snapshots_removed = False
        self._copied: set[str] = set()
        self._added: dict[str, set[int]] = {kind: set() for kind in ADDED_NAMES}
        self._last_added: dict[str, int | None] = dict.fromkeys(ADDED_NAMES)
        self.ref_names: dict[int, list[str]] | None = None  # by snapshot; some may point elsewhere by now
        self.field_ids: dict[tuple[int, str], int] | None = None  # of partition fields, by source and transform
        self.indexed: tuple[Json, Any] | None = None  # a schema and its columns, to check specs and orders against
        self._by_id: dict[str, dict[Any, Json]] = {}
        self._earlier: dict[str, dict[Any, list[Json]]] = {}  # duplicates of an id before the last one, by id
        self._unsettled: set[str] = set()
        self._known: dict[str, Known] = {}

    @property
    def format_version(self) -> int:
        return int(self.metadata["format-version"])

    def by_id(self, key: str) -> Mapping[Any, Json]:
        """The current elements of a list of `IDS`, in order; of those that share an id, the last."""
        if key not in self._by_id:
            by_id, earlier = self._by_id.setdefault(key, {}), self._earlier.setdefault(key, {})
            for each in self.metadata.get(key) or ():
                element_id = each.get(IDS[key]) or 0
                if element_id in by_id:
                    earlier.setdefault(element_id, []).append(by_id[element_id])
                by_id[element_id] = each
        return self._by_id[key]

    def add(self, key: str, element: Json) -> None:
        """Append an element to a list of `IDS`, or replace the one that has its id."""
        self.by_id(key)
        self._by_id[key][element[IDS[key]]] = element
        self._unsettled.add(key)
        self.changed = True

    def drop(self, key: str, ids: Iterable[Any]) -> set[Any]:
        """Remove elements of a list of `IDS`; returns the ids of those that existed."""
        existing = self.by_id(key)
        removed = {each for each in ids if each in existing}
        for each in removed:
            del self._by_id[key][each]
            self._earlier[key].pop(each, None)
            if key in self._known:
                self._known[key].discard(each)
        if removed:
            self._unsettled.add(key)
            self.changed = True
        return removed

    def settle(self) -> None:
        """Write the lists that were changed by id into the metadata; duplicates of an id are kept together."""
        for key in self._unsettled:
            earlier = self._earlier[key]
            self.metadata[key] = [
                each for element_id, last in self._by_id[key].items() for each in (*earlier.get(element_id, ()), last)
            ]
        self._unsettled.clear()

    def known(self, kind: str, shape: Callable[[Json], str]) -> Known:
        """The elements of a kind by shape; code that adds an element must add it here too."""
        key = LISTS[kind]
        if key not in self._known:
            self._known[key] = known = Known()
            for element_id, each in self.by_id(key).items():
                known.add(shape(each), element_id)
        return self._known[key]

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

    def remember_added(self, kind: str, added_id: int) -> None:
        """Record an element that this request added: -1 refers to it from now on."""
        self._added[kind].add(added_id)
        self._last_added[kind] = added_id

    def remember_reused(self, kind: str, reused_id: int) -> None:
        """Record that an equal element existed: it counts as last added only if this request added it."""
        self._last_added[kind] = reused_id if reused_id in self._added[kind] else None

    def last_added(self, kind: str) -> int:
        """The id that -1 refers to. Raises Invalid if this request added none."""
        last = self._last_added[kind]
        if last is None:
            name = ADDED_NAMES[kind]
            raise Invalid(f"Cannot set last added {name}: no {name} has been added")
        return last

    def make_current(self, kind: str, chosen: int, pointer: str, described_as: str) -> None:
        """Set `pointer` to the id of a schema, spec or order; -1 is the one last added by this request."""
        if chosen == -1:
            chosen = self.last_added(kind)
        if chosen not in self.by_id(LISTS[kind]):
            raise Invalid(f"Cannot set {described_as} to unknown {described_as.rpartition(' ')[2]}: {chosen}")
        if self.put(pointer, chosen):
            self.layout_changed = True

    def remove(self, kind: str, ids: list[int], pointer: str, described_as: str) -> None:
        """Remove schemas or specs; unknown ids are ignored. Raises Invalid for the one that `pointer` names."""
        removed = set(ids)
        if self.metadata.get(pointer) in removed:
            raise Invalid(f"Cannot remove the {described_as}")
        self.drop(LISTS[kind], removed)

    def _own(self, key: str, kind: Callable[..., Any]) -> Any:
        self.changed = True
        if key not in self._copied:
            self.metadata[key] = kind(self.metadata.get(key) or ())
            self._copied.add(key)
        return self.metadata[key]
