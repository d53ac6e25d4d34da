"""Sandboxed SQL analysis: in a subprocess that always terminates, whatever the SQL (docs/decisions/reading-sql.md)."""
