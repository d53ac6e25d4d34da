"""PyMySQL's connection, kept from giving a password away and from reading without end."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from pymysql.connections import Connection

from metalake.errors import ProviderUnavailable
from providers.network.response_budget import ResponseTooLarge


def in_the_clear(*_: Any) -> Any:
    """Instead of an authentication that would send the password so."""
    raise ProviderUnavailable(
        "The database asks for the password in the clear, which is not sent; use TLS, such as sslMode=REQUIRED.",
        kind="catalog",
        retryable=False,
    )


class GuardedConnection(Connection):
    """Sends the password itself over TLS alone, and reads no answer of more than METALAKE_MAX_ANSWER bytes."""

    def __init__(self, **options: Any) -> None:
        plugins = dict.fromkeys(("mysql_clear_password", b"mysql_clear_password", "dialog"), in_the_clear)
        self._answered = 0
        super().__init__(auth_plugin_map=plugins, **options)

    @property
    def server_public_key(self) -> Any:
        """Read where the password would be encrypted for whoever sent this key (Connector/J asks before, too)."""
        return in_the_clear()

    @server_public_key.setter
    def server_public_key(self, key: Any) -> None:
        pass

    def write_packet(self, payload: Any) -> None:
        self._answered = 0
        super().write_packet(payload)

    def _read_bytes(self, num_bytes: int) -> Any:
        self._answered += num_bytes
        if self._answered > settings.METALAKE_MAX_ANSWER:
            self._force_close()
            raise ResponseTooLarge
        return super()._read_bytes(num_bytes)

    def _force_close(self) -> None:
        if self._result is not None:
            self._result.unbuffered_active = False  # else it reads the rest when it is closed
        super()._force_close()
