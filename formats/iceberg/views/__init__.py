"""Iceberg views: the metadata file of a view, its next state after a commit, and its translation to the native wire."""
