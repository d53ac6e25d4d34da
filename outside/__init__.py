"""Schemas and tables of outside systems: read there, cached as rows here, written by intents."""
