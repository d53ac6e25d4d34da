"""Schemas and tables that lie in another system: read through, mirrored, written by intents."""
