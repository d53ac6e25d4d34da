"""Reading SQL safely: in a process of its own that ends whatever the SQL is (docs/decisions/reading-sql.md)."""
