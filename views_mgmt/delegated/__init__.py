"""The delegated store: views that are Iceberg view metadata files, to which our rows point."""
