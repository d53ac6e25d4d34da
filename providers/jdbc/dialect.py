"""What the stores need of one database: sessions, and queries of its catalog."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from metalake.errors import MetalakeError
from metalake.interfaces import Interface
from providers.jdbc.connections import Login, Session
from providers.jdbc.ddl import Ddl
from providers.jdbc.errors import About
from providers.jdbc.url import Tls
from providers.remote_objects import Json, Remote

Checked = dict[str, Any]
Statements = Callable[[Session], Sequence[str]]


class Dialect(Interface):
    word: ClassVar[str]  # the dialect of its views
    schemes: ClassVar[Mapping[str, str]]  # what a JDBC URL begins with, and the scheme of its endpoint
    tls: ClassVar[Mapping[str, Mapping[str, Tls]]]
    drivers: ClassVar[frozenset[str]]
    hidden_definition: ClassVar[str]  # why a view has no SQL here
    ddl: Ddl

    # Sessions

    @abstractmethod
    def connect(self, login: Login, *, writes: bool = False) -> Session:
        """A new session. Raises the driver's errors, ProviderUnavailable, and Unsupported for another product."""

    @abstractmethod
    def write(self, session: Session, login: Login, marker: str, statements: Statements) -> None:
        """Run the statements, all or none, while nobody else has the lock of `marker`.

        Raises the driver's errors if they certainly did nothing, else OutcomeUnknown.
        """

    def check_case(self, session: Session, about: About) -> None:
        """Raise Invalid for a name that the server would store in other letters."""

    @abstractmethod
    def wait_for(self, session: Session, marker: str) -> None:
        """Wait until no session writes under this marker. Raises ProviderUnavailable."""

    @abstractmethod
    def lock_table(self, session: Session, schema: str, table: str) -> None:
        """Let nobody else change a table until the session ends."""

    @abstractmethod
    def error(self, failure: Exception, about: About, where: str) -> MetalakeError:
        """Our error for the driver's, for a call that certainly did nothing."""

    # Reading

    @abstractmethod
    def schemas(self, session: Session, name: str | None = None) -> list[Remote]:
        """The schemas that are no system's, in order of name."""

    @abstractmethod
    def names(self, session: Session, schema: str) -> list[Remote]:
        """The tables and views of a schema by name and kind alone, in order of name."""

    @abstractmethod
    def relations(
        self, session: Session, schema: str, names: Sequence[str] | None, after: str, views_only: bool = False
    ) -> tuple[list[Remote], str | None]:
        """Tables and views with their definitions, in order of name from behind `after`, by three statements.

        The second part is the name to go on behind, None at the end.
        """

    def alterable(self, session: Session, schema: str, table: Remote) -> Json:
        """A table's definition with what else an alteration must repeat of its columns (`kept`)."""
        return table.definition

    @abstractmethod
    def check_view(self, session: Session, schema: str, view: str) -> Checked | None:
        """What the database's planner says of a view, as `RemoteViews.check`. Raises the driver's errors."""

    @abstractmethod
    def require_empty(self, session: Session, schema: str) -> None:
        """Raise NotEmpty for a schema that contains anything, unless the database itself refuses to drop one."""
