"""Views as engines store them in a Hive Metastore or AWS Glue: each engine in a form of its own, private to it."""
