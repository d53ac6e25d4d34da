"""The delegated store: Iceberg view metadata files that our rows point to."""
