"""Iceberg views: their metadata files, the updates of commits, and their translation to and from the native API."""
