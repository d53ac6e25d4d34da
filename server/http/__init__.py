"""The server: how requests come in and answers go out (docs/decisions/server.md)."""
