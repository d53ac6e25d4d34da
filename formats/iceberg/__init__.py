"""Iceberg table metadata as plain data: the content of a table's metadata file, and how a commit changes it."""
