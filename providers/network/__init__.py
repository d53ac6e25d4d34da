"""Opens all of this server's connections to remote systems (docs/decisions/reaching-out.md)."""
