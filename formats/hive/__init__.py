"""Hive tables as a metastore or AWS Glue stores them, as plain data: parsing, creating and altering them."""
