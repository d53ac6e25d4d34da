"""Views in a Hive Metastore or AWS Glue, which each engine stores in its own private form."""
