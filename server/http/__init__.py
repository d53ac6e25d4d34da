"""The HTTP server (docs/decisions/server.md)."""
