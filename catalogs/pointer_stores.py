"""The stores of pointers to Iceberg metadata: what creating, registering and committing need of them, of any kind.

We write the metadata files, of tables and of views; the store says where the pointer to the current one is, in a row of
ours or in an outside system. `catalogs.services.commits` is the way of a commit.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar
from uuid import UUID

from authz.actor import Actor
from authz.operations import Operation
from metalake.errors import OutcomeUnknown, Unsupported
from metalake.interfaces import Interface
from metalake.lineage import Address, Located
from providers.metadata_files import MetadataFiles

Json = dict[str, Any]


class Pointed(Protocol):
    """A table or view with its metadata, as its store had it at one moment."""

    @property
    def published(self) -> Located: ...
    @property
    def metadata_location(self) -> str | None: ...
    @property
    def metadata(self) -> Json: ...


class Draft(Protocol):
    """A request to create a table or view, in Iceberg's terms."""

    @property
    def location(self) -> str | None: ...

    def metadata(self, uuid: UUID, location: str) -> Json:
        """The first metadata. Raises Invalid, saying what is wrong with the request."""


R = TypeVar("R", bound=Pointed)
D = TypeVar("D", bound=Draft)


@dataclass(frozen=True)
class Change(Generic[R]):
    """What a commit asks for: `operation` is the right that it takes, `event` what it is recorded as.

    `updated` makes the new metadata from the object as it is now, again after a lost race: the same metadata if nothing
    changes. It raises Conflict if a requirement fails. With a `target`, the object gets that name in the same
    transaction.
    """

    operation: Operation
    event: str
    updated: Callable[[R], Json]
    target: Address | None = None


@dataclass(frozen=True)
class NewState:
    """Metadata that was written to `location` as `content`."""

    files: MetadataFiles
    metadata: Json
    location: str
    content: bytes


@dataclass(frozen=True)
class PreparedCommit(Generic[R]):
    """A commit whose file is written and whose pointer is not moved, with the state that it was made from."""

    address: Address
    current: R
    change: Change[R]
    new: NewState


@contextmanager
def discard_on_failure(written: Iterable[NewState]) -> Iterator[None]:
    """If the block certainly fails, remove these written files, which are then orphans."""
    try:
        yield
    except OutcomeUnknown:
        raise
    except Exception:
        for new in written:
            new.files.discard(new.location)
        raise


def now_ms() -> int:
    """The time that new metadata has, in milliseconds."""
    return int(time.time() * 1000)


class PointerStore(Interface, Generic[R, D]):
    """Objects of one kind that are a pointer to an Iceberg metadata file, wherever the pointer is stored."""

    commits_together: ClassVar[bool] = False
    """Whether the pointers of several objects can be moved at once."""

    @abstractmethod
    def create(self, actor: Actor, address: Address, home: Located, draft: D) -> R:
        """Make an object in a schema. Raises AlreadyExists, Invalid."""

    @abstractmethod
    def register(self, actor: Actor, address: Address, home: Located, location: str) -> R:
        """Register an object from an existing metadata file."""

    @abstractmethod
    def current(self, actor: Actor, located: Located) -> R:
        """The object as it is now, with its metadata. Raises NotFound for one in another format."""

    @abstractmethod
    def files(self, record: R) -> MetadataFiles:
        """The metadata files of the object, to read and write."""

    @abstractmethod
    def require_allowed(self, actor: Actor, current: R, files: MetadataFiles, metadata: Json) -> None:
        """Check new metadata before it is written: raises Forbidden for new places that the object may not use."""

    def unchanged(self, actor: Actor, address: Address, current: R, change: Change[R]) -> R:
        """The object after a commit that changes nothing of its metadata."""
        return current

    @abstractmethod
    def swap(self, actor: Actor, commit: PreparedCommit[R]) -> R | None:
        """Point the object to its new state; None if it is not in its `current` state any more.

        The new file is removed unless the object points to it, or may do so: then OutcomeUnknown is raised.
        """

    def swap_all(self, actor: Actor, commits: Sequence[PreparedCommit[R]]) -> list[R] | None:
        """As `swap`, for several objects at once, all or none. Raises Unsupported unless it `commits_together`."""
        raise Unsupported("Such objects are committed one at a time.")

    @abstractmethod
    def find_again(self, actor: Actor, commit: PreparedCommit[R]) -> Located:
        """The object as it is after a lost race. Raises NotFound."""
