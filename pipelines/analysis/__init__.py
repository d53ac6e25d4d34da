"""Analysis of view SQL by Spark's own analyzer: its sources, its output columns and its problems."""
