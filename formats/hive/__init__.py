"""Hive tables as plain data, as a metastore or AWS Glue keeps them: what they say, and how a change alters them."""
