"""What an outside system is asked to do, by the names that messages and metrics have for it."""

READS = frozenset({"list_schemas", "load_schema", "list_tables", "load_table", "list_partitions", "load_partition"})
WRITES = frozenset(
    {
        *("create_schema", "alter_schema", "drop_schema"),
        *("create_table", "alter_table", "rename_table", "drop_table", "commit_table"),
        *("add_partition", "drop_partition"),
    }
)
