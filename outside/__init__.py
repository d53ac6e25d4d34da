"""Schemas and tables of outside systems: read there, mirrored as rows here, written by intents."""
