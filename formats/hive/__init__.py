"""Hive tables as plain data, as a metastore or AWS Glue stores them: how to read them, and how a change alters them."""
