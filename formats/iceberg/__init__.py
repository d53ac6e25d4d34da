"""Iceberg table metadata as plain data: what a table's metadata file says, and how a commit changes it."""
