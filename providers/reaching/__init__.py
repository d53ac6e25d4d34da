"""Reaching out of the server: every connection to a remote system starts here (docs/decisions/reaching-out.md)."""
