"""All connections from this server to remote systems are opened here (docs/decisions/reaching-out.md)."""
